"""What holds for runs on nodes and molecules holds for graphs from tables."""

import json
import shutil

import networkx
import pytest
import torch
from commands import edgewise
from run_toys import SETTINGS, files_of, rows_of, stopping_after
from torch_geometric.data import Data

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.data import own_datasets, sources
from edgewise.data.sources import find_source
from edgewise.training import load_model
from edgewise.units.base import resolve

TABLES = ("graphs.csv", "nodes.csv", "edges.csv")


def three(folder):
    return [str(folder / name) for name in TABLES]


@pytest.fixture
def run(graph_tables, tmp_path):
    return runs.train(str(graph_tables), tmp_path / "run", target="shape", **SETTINGS)


@pytest.mark.slow
def test_three_tables_and_their_folder_are_the_same_data(graph_tables, run, tmp_path):
    other = runs.train(three(graph_tables), tmp_path / "other", target="shape", **SETTINGS)
    kept = ("predictions.csv", "reader.json", "splits.json", "history.csv")
    for name in kept:
        assert (other.folder / name).read_bytes() == (run.folder / name).read_bytes()
    assert (other.source.name, run.source.name) == ("shapes", "shapes")


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_to_the_same_bytes(graph_tables, tmp_path):
    settings = {**SETTINGS, "target": "size", "ensemble": 2, "dropout": 0.2, "directed": False}
    whole = runs.train(str(graph_tables), tmp_path / "whole", **settings)
    run = runs.train(str(graph_tables), tmp_path / "run", **stopping_after(5), **settings)
    assert not run.finished
    runs.resume(run.folder)
    assert files_of(run.folder) == files_of(whole.folder)
    assert run.settings.model.reciprocal == "sum"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "task"),
    [
        ("shape", "classification"),
        ("size", "regression"),
        ("even", "multilabel"),
    ],
)
def test_every_task_gives_a_row_for_each_graph_in_its_place(graph_tables, tmp_path, target, task):
    run = runs.train(str(graph_tables), tmp_path / "run", target=target, **SETTINGS)
    assert load_model(run.folder).task.name == task
    given = rows_of(graph_tables / "graphs.csv")
    assert runs.predict(run.folder, three(graph_tables), tmp_path / "out.csv") == (30, 0)
    out = rows_of(tmp_path / "out.csv")
    assert [{name: row[name] for name in given[0]} for row in out] == given
    own = {row["graph"]: row for row in rows_of(run.folder / "predictions.csv")}
    predicted = next(name for name in out[0] if name not in given[0])
    assert [row[predicted] for row in out] == [own[row["graph"]][predicted] for row in out]
    unlabelled = [row for row in own.values() if not row["split"]]
    assert len(unlabelled) == (target != "size")
    assert runs.evaluate(run.folder)["test"] == run.metrics["test"]


def test_the_order_and_the_names_of_rows_mean_nothing(graph_tables, run, tmp_path):
    before = {row["graph"]: row["p_ring"] for row in rows_of(run.folder / "predictions.csv")}
    folder = tmp_path / "turned"
    shutil.copytree(graph_tables, folder)
    for name in TABLES:
        header, *lines = (folder / name).read_text().splitlines()
        (folder / name).write_text("\n".join([header, *reversed(lines), ""]))
    runs.predict(run.folder, [str(folder)], tmp_path / "out.csv")
    out = rows_of(tmp_path / "out.csv")
    assert [row["graph"] for row in out] == list(reversed(before))
    for row in out:
        assert float(row["p_ring"]) == pytest.approx(float(before[row["graph"]]), abs=1e-6)


def test_new_graphs_need_no_label_but_to_be_judged(graph_tables, run, tmp_path):
    text = (graph_tables / "graphs.csv").read_text().replace("shape", "unknown")
    (graph_tables / "graphs.csv").write_text(text)
    assert runs.predict(run.folder, three(graph_tables), tmp_path / "out.csv") == (30, 0)
    with pytest.raises(EdgewiseError, match="has no column 'shape'"):
        runs.evaluate(run.folder, three(graph_tables))


@pytest.mark.slow
def test_a_model_of_tables_refuses_molecules_and_the_other_way_round(
    graph_tables, molecule_file, run, tmp_path
):
    with pytest.raises(EdgewiseError, match="not trained on molecules"):
        runs.predict(run.folder, [str(molecule_file)], tmp_path / "out.csv")
    molecules = runs.train(str(molecule_file), tmp_path / "molecules", **SETTINGS)
    with pytest.raises(EdgewiseError, match="not trained on tables of graphs"):
        runs.predict(molecules.folder, three(graph_tables), tmp_path / "out.csv")


@pytest.mark.slow
@pytest.mark.report
def test_the_report_names_the_worst_graphs_with_their_sizes(graph_tables, tmp_path):
    run = runs.train(str(graph_tables), tmp_path / "run", target="size", **SETTINGS)
    page = (run.folder / "report.html").read_text()
    assert "Structure of" not in page
    worst = page[page.index('id="worst-errors"') :]
    assert worst.index(">graph<") < worst.index(">nodes<") < worst.index(">edges<")
    (run.folder / "report.html").unlink()
    runs.resume(run.folder)
    assert (run.folder / "report.html").read_text() == page


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"featurizer": "rich"}, "featurizer"),
        ({"smiles_column": "x"}, "smiles_column"),
        ({"on_invalid": "skip"}, "on_invalid"),
    ],
)
def test_settings_of_molecules_are_refused(graph_tables, settings, sentence):
    with pytest.raises(EdgewiseError, match=rf"\[{sentence}\] does not apply here: .* tables of"):
        resolve(find_source([str(graph_tables)]), "default", settings)


def test_the_column_of_graphs_is_refused_where_there_is_none(graph_folder):
    with pytest.raises(EdgewiseError, match=r"\[graph_column\] does not apply here"):
        resolve(find_source([str(graph_folder)]), "default", {"graph_column": "g"})


def test_without_a_target_the_columns_are_named(graph_tables):
    source = find_source([str(graph_tables)])
    unit, settings = resolve(source, "default", {})
    with pytest.raises(EdgewiseError, match=r"--target; beside the names of graphs there are"):
        unit.open(source, settings)


def test_a_split_column_and_a_split_file_count_rows_of_graphs(graph_tables, tmp_path):
    header, *rows = (graph_tables / "graphs.csv").read_text().splitlines()
    parts = [("train", "validation", "test")[i % 3] for i in range(len(rows))]
    lines = [f"{row},{part}" for row, part in zip(rows, parts, strict=True)]
    (graph_tables / "graphs.csv").write_text("\n".join([f"{header},part", *lines, ""]))
    rows = {part: [i for i in range(30) if parts[i] == part] for part in sorted(set(parts))}
    (tmp_path / "split.json").write_text(json.dumps(rows))
    source = find_source([str(graph_tables)])
    for chosen in ({"split_column": "part"}, {"split": str(tmp_path / "split.json")}):
        unit, settings = resolve(source, "default", {"target": ["size"], **chosen})
        split = unit.open(source, settings).problem.split
        assert {name: part.tolist() for name, part in split.parts().items()} == rows


@pytest.mark.slow
def test_the_commands_take_three_tables(graph_tables, tmp_path):
    places, target = three(graph_tables), ("--target", "shape")
    told = edgewise("check", *places, *target)
    assert "GraphSet(graphs=30" in told.stdout
    assert "kind: categories, 2 wide" in told.stdout
    told = edgewise(
        "train", *places, *target, "--epochs", 2, "--repeat", 2, "--out", "r", cwd=tmp_path
    )
    assert told.returncode == 0, told.stderr
    assert "accuracy" in told.stdout
    told = edgewise("compare", "r-0", "r-1", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    told = edgewise(
        *("tune", *places, *target, "--trials", 2, "--epochs", 2, "--out", "t"), cwd=tmp_path
    )
    assert told.returncode == 0, told.stderr
    told = edgewise("train", graph_tables, "--config", "t/best.toml", "--out", "b", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    (graph_tables / "edges.csv").write_text("graph,source,target,amount\ng0,0,99,1\n")
    told = edgewise("predict", "b", *places, cwd=tmp_path)
    assert told.returncode == 2
    assert "edges.csv:2: the edge from '0' to '99' is one of graph 'g0'" in told.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pyg", "networkx"])
def test_a_list_of_graphs_that_is_registered_is_trained_on_by_name(kind, tmp_path, monkeypatch):
    known = {}
    for module in (own_datasets, sources):
        monkeypatch.setattr(module, "OWN_DATASETS", known)
    sizes = [4 + number % 5 for number in range(30)]

    def ring(size):
        if kind == "networkx":
            return networkx.cycle_graph(size, networkx.DiGraph)
        nodes = torch.arange(size)
        pairs = torch.stack([nodes, (nodes + 1) % size])
        return Data(x=torch.ones(size, 1), edge_index=pairs, y=torch.tensor([size + 0.5]))

    def load():
        graphs = [ring(size) for size in sizes]
        if kind == "networkx":
            for graph, size in zip(graphs, sizes, strict=True):
                graph.graph["y"] = size + 0.5
        return graphs

    own_datasets.register_dataset("mine", load, unit="graph")
    run = runs.train("mine", tmp_path / "run", **stopping_after(2), **SETTINGS)
    runs.resume(run.folder)
    assert run.finished
    assert runs.evaluate(run.folder)["test"] == run.metrics["test"]
    assert runs.predict(run.folder, (), tmp_path / "out.csv") == (30, 0)
    assert [row["y"] for row in rows_of(tmp_path / "out.csv")] == [f"{s}.5" for s in sizes]
