"""Small graphs and molecules, and runs on them that many tests look at."""

import random

import pytest
from run_toys import SETTINGS, SMILES, TRAIN_MODULE, write_graph_tables

from edgewise import runs


@pytest.fixture(autouse=True)
def _no_report(request, monkeypatch):
    """Drawing takes longer than these small runs."""
    if "report" not in request.keywords:
        monkeypatch.setattr(TRAIN_MODULE, "write_report", lambda *_: None)


@pytest.fixture
def graph_folder(tmp_path):
    """Two communities of twenty nodes, one node without a label."""
    folder = tmp_path / "firms"
    folder.mkdir()
    draw = random.Random(0)
    nodes = [f"n{i},{draw.gauss(i % 2, 1):.3f},{'ab'[i % 2]}" for i in range(40)]
    nodes[7] = nodes[7][:-1]
    (folder / "nodes.csv").write_text("id,size,label\n" + "\n".join(nodes) + "\n")
    pairs = {(i, (i + 2 * draw.randint(1, 9)) % 40) for i in range(40) for _ in range(3)}
    edges = [f"n{a},n{b},{draw.random():.3f}" for a, b in sorted(pairs)]
    (folder / "edges.csv").write_text("source,target,amount\n" + "\n".join(edges) + "\n")
    return folder


@pytest.fixture
def molecule_file(tmp_path):
    """Molecules, one of which cannot be read."""
    path = tmp_path / "molecules.csv"
    rows = [f"{smiles},{len(smiles)}.5" for smiles in SMILES * 3]
    path.write_text("smiles,logp\n" + "\n".join([*rows, "C(C,1.0"]) + "\n")
    return path


@pytest.fixture
def graph_tables(tmp_path):
    """Thirty rings and paths in three tables; one has no label."""
    return write_graph_tables(tmp_path / "shapes")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Molecules, and a graph whose label column is not called so."""
    folder = tmp_path_factory.mktemp("data")
    rows = [
        f"m{i},{s},{len(s)}.5,{int('c' in s)},{'long' if len(s) > 4 else 'short'}"
        for i, s in enumerate(SMILES * 2)
    ]
    (folder / "molecules.csv").write_text("name,mol,logp,ring,size\n" + "\n".join(rows) + "\n")
    nodes = [f"{i}\t{i % 3}\t{'xy'[i % 2]}" for i in range(20)]
    (folder / "nodes.tsv").write_text("who\tweight\tside\n" + "\n".join(nodes) + "\n")
    edges = [f"{i},{(i + step) % 20},{step}" for i in range(20) for step in (2, 4)]
    (folder / "edges.csv").write_text("from,to,amount\n" + "\n".join(edges) + "\n")
    return folder


@pytest.fixture(scope="module")
def molecule_run(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "molecules"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TRAIN_MODULE, "write_report", lambda *_: None)
        return runs.train(
            str(place / "molecules.csv"),
            folder,
            target="logp",
            ensemble=2,
            descriptors="none",
            **SETTINGS,
        )


@pytest.fixture(scope="module")
def node_run(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "nodes"
    columns = {"id_column": "who", "source_column": "from", "destination_column": "to"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TRAIN_MODULE, "write_report", lambda *_: None)
        return runs.train(
            [str(place / "nodes.tsv"), str(place / "edges.csv")],
            folder,
            target="side",
            **columns,
            **SETTINGS,
        )
