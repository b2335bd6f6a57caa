"""The commands list, fetch, draw and check; a mistake is a sentence."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from edgewise.cli.app import app
from edgewise.cli.datasets import datasets
from edgewise.core.errors import EdgewiseError
from edgewise.data.catalogue import CATALOGUE


def run(app, *arguments: str) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception is not None:
        raise result.exception
    return result.output


def test_the_list_names_every_data_set_with_size_origin_and_citation(own_cache):
    output = run(datasets)
    assert all(name in output for name in CATALOGUE)
    assert "7.53 MB" in output
    assert "linqs-data.soe.ucsc.edu, the Python package graphdatascience or pgl" in output
    assert "Sen et al." in output
    assert output.count("not cached") == len(CATALOGUE)


def test_fetching_an_unknown_name_is_a_sentence():
    with pytest.raises(EdgewiseError, match="no data set named 'corra'"):
        run(datasets, "fetch", "corra")


def test_the_command_modules_import_nothing_heavy():
    code = (
        "import sys, edgewise.cli.datasets, edgewise.cli.check;"
        "heavy = {'torch', 'numpy', 'rdkit', 'sklearn', 'matplotlib', 'pandas'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.dataset
def test_the_picture_of_the_classes_is_drawn(tmp_path, need):
    need("cora")
    path = tmp_path / "classes.svg"
    output = run(datasets, "classes", "--name", "cora", "--split", "sparse", "--output", path)
    assert "135 training nodes: Case_Based" in output
    assert path.read_text().startswith("<?xml")


def test_a_graph_is_checked_column_by_column(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,age,side\na,1,x\nb,2,y\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    output = run(app, "check", tmp_path, "--target", "side", "--split", "1,0,0")
    assert "Graph(nodes=2, edges=1, channels=1, features=1)" in output
    assert "classification of side into 2 classes" in output
    assert "age: numbers, 1 wide" in output
    assert "classification of side into 2 classes; Split(train=2" in output


def test_molecules_are_checked_and_bad_rows_listed(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,y\nCCO,1.5\nC(,2\nCC,3\n")
    listed = tmp_path / "bad.csv"
    output = run(app, "check", tmp_path / "m.csv", "--split", "1,0,0", "--invalid-file", listed)
    assert "GraphSet(graphs=2, nodes=5, edges=6" in output
    assert "1 of 3 rows cannot be read" in output
    assert "predicting column 'y', the only one beside the SMILES" in output
    assert listed.read_text().count("\n") == 2
    with pytest.raises(EdgewiseError, match=r"m\.csv:3"):
        run(app, "check", tmp_path / "m.csv", "--on-invalid", "error")
