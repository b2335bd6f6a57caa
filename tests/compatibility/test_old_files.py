"""Config files, searches, estimators, graphs and results of version 0.1.0 are still read."""

import csv
import json
from importlib import import_module
from pathlib import Path

import pytest
import torch
from commands import edgewise

import edgewise as ew
from edgewise import runs
from edgewise.core.config import read_config
from edgewise.core.presets import make_settings
from edgewise.data.graph_files import load_graph
from edgewise.paper.result_store import ResultStore

pytestmark = pytest.mark.slow

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture(autouse=True)
def _no_report(monkeypatch):
    monkeypatch.setattr(import_module("edgewise.runs.train"), "write_report", lambda *_: None)


def tables(old):
    return [str(old / "nodes.csv"), str(old / "edges.csv")]


def test_a_config_file_without_tables_trains(old, tmp_path):
    done = edgewise(
        "train", *tables(old), "--config", old / "config.toml", "--out", tmp_path / "run"
    )
    assert done.returncode == 0, done.stderr
    run = runs.open_run(tmp_path / "run")
    model = run.settings.model
    assert (model.layer, model.hidden, model.heads, model.adapt) == ("attention", 8, 2, False)
    assert run.settings.training.epochs == run.metrics["epochs"][0] == 5
    assert run.settings.data.destination_column == "target"
    assert run.preset == "paper"


def test_the_best_settings_of_a_search_train(old, tmp_path):
    given = read_config(old / "study" / "best.toml")
    run = runs.train(tables(old), tmp_path / "run", config=given)
    assert (run.settings.model.hidden, run.settings.training.epochs) == (56, 4)
    shell = edgewise(
        "train", *tables(old), "--config", old / "study" / "best.toml", "--out", tmp_path / "shell"
    )
    assert shell.returncode == 0, shell.stderr
    assert runs.open_run(tmp_path / "shell").settings == run.settings


def test_a_search_is_refused_with_the_flag_that_goes_on_with_it(old):
    study, given = old / "study", ("--target", "risk", "--epochs", "4", "--trials", "4")
    before = (study / "journal.jsonl").read_bytes()
    refused = edgewise("tune", *tables(old), *given, "--out", study)
    assert refused.returncode == 2
    assert "--fit-on all goes on with it" in refused.stderr
    assert (study / "journal.jsonl").read_bytes() == before
    done = edgewise("tune", *tables(old), *given, "--fit-on", "all", "--out", study)
    assert done.returncode == 0, done.stderr
    with (study / "trials.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert [line["number"] for line in lines] == ["0", "1", "2", "3"]
    assert [line["value"] for line in lines[:3]] == [
        *("0.5714285714285714", "0.7142857142857143", "0.42857142857142855"),
    ]


def test_an_estimator_of_molecules_predicts_what_it_did(old):
    with (old / "molecules.csv").open() as stream:
        smiles = [row["smiles"] for row in csv.DictReader(stream)]
    expected = json.loads((old / "estimator-molecules" / "expected.json").read_text())
    model = ew.MoleculeRegressor.load(old / "estimator-molecules")
    assert model.predict(smiles[: len(expected)]).tolist() == expected
    assert model.get_params()["epochs"] == 4


def test_an_estimator_of_nodes_predicts_what_it_did(old):
    graph = load_graph(old / "graph.safetensors")
    expected = json.loads((old / "estimator-nodes" / "expected.json").read_text())
    model = ew.NodeClassifier.load(old / "estimator-nodes", graph=graph)
    assert model.predict_proba().tolist() == expected
    assert model.classes_.tolist() == ["x", "y"]


def test_every_result_of_the_paper_still_counts():
    lines = sum(len(path.read_text().splitlines()) for path in RESULTS.glob("reproduce-*.jsonl"))
    results = ResultStore(RESULTS)
    assert (len(results.lines), results.outdated) == (lines, 0)
    assert lines >= 2400  # of earlier versions, and what has been run since


def test_a_result_of_unknown_settings_does_not_count(tmp_path):
    path = RESULTS / "reproduce-cora.jsonl"
    line = json.loads(path.read_text().splitlines()[0])
    (tmp_path / path.name).write_text(json.dumps({**line, "settings": "0a0a0a0a"}) + "\n")
    results = ResultStore(tmp_path)
    assert (len(results.lines), results.outdated) == (0, 1)


def test_names_of_then_work_with_a_notice():
    with pytest.warns(FutureWarning, match=r"edgewise.Recipe goes away .* edgewise.make_settings"):
        recipe = ew.Recipe
    assert recipe(hidden=8) == make_settings("node", hidden=8)
    with pytest.warns(FutureWarning, match="use edgewise.make_settings"):
        make_recipe = ew.make_recipe
    assert make_recipe("molecules", "paper", depth=3) == make_settings(
        "graph", "paper", implied={"directed": False}, depth=3
    )
    with pytest.warns(FutureWarning, match="use edgewise.ModelSettings"):
        assert ew.Architecture is ew.ModelSettings


def test_networks_of_then_take_tensors_with_a_notice():
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    with pytest.warns(FutureWarning, match="use edgewise.ChannelNetwork"):
        nodes = ew.NodeModel(5, 3)
    assert nodes(torch.rand(3, 5), edges, torch.ones(3, 1)).shape == (3, 3)
    with pytest.warns(FutureWarning, match="use edgewise.ChannelNetwork"):
        graphs = ew.GraphModel(5, 2, pooling="mean")
    batch = torch.tensor([0, 0, 1])
    assert graphs(torch.rand(3, 5), edges, torch.ones(3, 1), batch).shape == (2, 2)


def test_the_flag_of_then_works_with_a_notice(old, tmp_path):
    text = (old / "edges.csv").read_text().replace("source,target", "source,to", 1)
    (old / "edges.csv").write_text(text)
    done = edgewise("check", *tables(old), "--target", "risk", "--target-column", "to")
    assert done.returncode == 0, done.stderr
    assert "--target-column is called --destination-column today" in done.stderr
    both = ("--target-column", "to", "--destination-column", "to")
    assert edgewise("check", *tables(old), "--target", "risk", *both).returncode == 0


def test_a_graph_of_then_is_read(old):
    graph = load_graph(old / "graph.safetensors")
    assert graph.edge_index.tolist() == [[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]]
    assert torch.equal(graph.x, torch.eye(6))
    assert graph.node_ids == ("a", "b", "c", "d", "e", "f")
