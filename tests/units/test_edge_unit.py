"""A row is an edge: parallel edges stay apart, labels do not leak, times are respected."""

import csv
import json

import numpy as np
import pytest
import torch
from edge_toys import ACCOUNTS, PAYMENTS, QUICK, TARGETS, payments, without

import edgewise as ew
from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import LAYERS
from edgewise.data.edge_reader import load_edge_reader
from edgewise.data.sources import find_source
from edgewise.training.trainer import make_trainer, model_outputs
from edgewise.units.base import resolve

EDGES = {"predict": "edges"}
FRAUD = {**EDGES, **TARGETS["fraud"], **QUICK}
BY_PART = {**FRAUD, "split_column": "part", "ignore": ["loss", "review", "when"]}


def opened(places, **settings):
    source = find_source(places, settings.get("predict", "edges").removesuffix("s"))
    unit, resolved = resolve(source, "default", settings)
    return unit.open(source, resolved)


def table(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("nodes", [True, False])
def test_a_row_of_predictions_is_a_row_of_the_edges_table(tmp_path, target, nodes):
    places = payments(tmp_path, nodes=nodes)
    run = ew.train(places, tmp_path / "run", **EDGES, **TARGETS[target], **QUICK)
    edges, predictions = table(tmp_path / "edges.csv"), table(run.folder / "predictions.csv")
    assert [row["row"] for row in predictions] == [str(i) for i in range(PAYMENTS)]
    for end in ("source", "target"):
        assert [row[end] for row in predictions] == [row[end] for row in edges]
    true = next(name for name in (f"{target}_true", "true") if name in predictions[0])
    for row, edge in zip(predictions, edges, strict=True):
        assert row[true] == edge[target] or float(row[true]) == pytest.approx(float(edge[target]))
    pairs = [(edge["source"], edge["target"]) for edge in edges]
    assert len(set(pairs)) < len(pairs)  # parallel edges are among them


@pytest.mark.parametrize(
    "settings",
    [
        {**FRAUD, "label_messages": True},
        {**FRAUD, "time_column": "when", "ignore": ["loss", "review", "part"]},
        {"predict": "links", "ignore": ["when", "part"], **QUICK},
        {"predict": "links", "time_column": "when", "ignore": ["part"], **QUICK},
    ],
    ids=["edges", "edges by time", "links", "links by time"],
)
def test_every_training_row_is_learnt_from_in_every_epoch(tmp_path, settings, monkeypatch):
    problem = opened(payments(tmp_path), **settings).problem
    trainer, seen = make_trainer(problem), []
    step = trainer._step
    monkeypatch.setattr(trainer, "_step", lambda out, y: (seen.append(y), step(out, y))[1])
    trainer.train_epoch(1)
    learnt, train = torch.cat(seen), problem.split.train
    positive = train[(problem.truth[train] == 1).any(dim=1)]  # what they are told from is drawn
    assert torch.isin(positive, learnt).all()
    assert len(learnt) == len(train)
    assert len(seen) == problem.data.steps(len(problem.split.train), 64) > 1


def test_the_target_is_no_channel_and_columns_of_edges_are(tmp_path):
    problem = opened(payments(tmp_path), **FRAUD).problem
    names = problem.data.graph.channel_names
    assert names == ("amount", "kind=card", "kind=cash", "port")
    assert problem.data.graph.num_nodes == ACCOUNTS
    lone = opened(payments(tmp_path / "lone", nodes=False), **FRAUD).problem
    assert lone.data.graph.num_features == 1  # and what the edges around a node say
    assert lone.data.num_features > 1
    assert (
        "port"
        not in opened(payments(tmp_path), **FRAUD, ports=False).problem.data.graph.channel_names
    )


@pytest.mark.parametrize("layer", LAYERS.names[:3])
@pytest.mark.parametrize("directed", [True, False])
def test_every_layer_predicts_edges(tmp_path, layer, directed):
    settings = {**FRAUD, "layer": layer, "directed": directed, "dropout": 0.0}
    normalize = {} if layer == "gated" else {"normalize": "symmetric"}
    problem = opened(payments(tmp_path), **settings, **normalize).problem
    trainer = make_trainer(problem)
    before = trainer.train_epoch(1)
    for epoch in range(2, 30):
        after = trainer.train_epoch(epoch)
    assert after < before
    assert trainer.outputs().shape == (PAYMENTS, 1)


def test_without_direction_the_order_of_the_ends_does_not_matter(tmp_path):
    def swapped(columns):
        for row in range(0, PAYMENTS, 2):
            columns["source"][row], columns["target"][row] = (
                columns["target"][row],
                columns["source"][row],
            )

    settings = {**FRAUD, "edges": "undirected"}
    first = opened(payments(tmp_path / "a"), **settings).problem
    second = opened(payments(tmp_path / "b", change=swapped), **settings).problem
    model = make_trainer(first).model
    every = torch.arange(PAYMENTS)
    found, again = (model_outputs(model, problem, every) for problem in (first, second))
    assert torch.allclose(found, again, atol=1e-5)
    directed = make_trainer(opened(payments(tmp_path / "a"), **FRAUD).problem)
    other = opened(payments(tmp_path / "b", change=swapped), **FRAUD).problem
    assert not torch.allclose(directed.outputs(), model_outputs(directed.model, other, every))


def noisy(*parts):
    def change(columns):
        generator = np.random.default_rng(7)
        for row, part in enumerate(columns["part"]):
            if part in parts:
                columns["fraud"][row] = int(generator.integers(2))

    return change


@pytest.mark.slow
@pytest.mark.parametrize("label_messages", [True, False])
def test_noise_in_the_labels_of_test_edges_changes_no_prediction(tmp_path, label_messages):
    settings = {**BY_PART, "label_messages": label_messages}
    column = "fraud_probability"
    found = []
    for name, change in (("a", lambda columns: None), ("b", noisy("test"))):
        run = ew.train(
            payments(tmp_path / name, change=change), tmp_path / name / "run", **settings
        )
        found.append(table(run.folder / "predictions.csv"))
    assert [row["fraud_true"] for row in found[0]] != [row["fraud_true"] for row in found[1]]
    assert [row[column] for row in found[0]] == [row[column] for row in found[1]]


def test_noise_in_the_labels_of_validation_edges_changes_no_output_of_a_model(tmp_path):
    settings = {**BY_PART, "label_messages": True}
    first = opened(payments(tmp_path / "a"), **settings).problem
    second = opened(
        payments(tmp_path / "b", change=noisy("validation", "test")), **settings
    ).problem
    assert not torch.equal(first.truth, second.truth)
    trainer = make_trainer(first)
    trainer.train_epoch(1)
    every = torch.arange(PAYMENTS)
    assert torch.equal(
        model_outputs(trainer.model, first, every), model_outputs(trainer.model, second, every)
    )


def test_a_label_changes_predictions_of_others_but_not_its_own(tmp_path):
    settings = {
        **BY_PART,
        "label_messages": True,
        "label_columns": ["loss"],
        "ignore": ["review", "when"],
    }
    first = opened(payments(tmp_path / "a"), **settings).problem
    trainer = make_trainer(first)
    trainer.train_epoch(1)
    every = torch.arange(PAYMENTS)
    before = model_outputs(trainer.model, first, every)
    for row in first.split.train[:3].tolist():

        def change(columns, row=row):
            columns["fraud"][row] = 1 - columns["fraud"][row]
            columns["loss"][row] = -columns["loss"][row]

        problem = opened(payments(tmp_path / "b", change=change), **settings).problem
        after = model_outputs(trainer.model, problem, every)
        assert torch.equal(before[row], after[row])
        assert not torch.equal(before, after)


def test_by_time_earlier_edges_train_and_later_ones_test(tmp_path):
    settings = {**FRAUD, "time_column": "when", "ignore": ["loss", "review", "part"]}
    found = opened(payments(tmp_path), **settings)
    when = np.array([int(row["when"]) for row in table(tmp_path / "edges.csv")])
    train, validation, test = (when[rows] for rows in found.problem.split.parts().values())
    assert train.max() < validation.min()
    assert validation.max() < test.min()
    assert any("by time (when)" in note for note in found.notes)
    assert not any("time" in notice for notice in found.notices)
    random = opened(payments(tmp_path), **{**settings, "time_column": ""})
    assert any("--time-column when" in notice for notice in random.notices)
    by_part = opened(
        payments(tmp_path), **{**settings, "split_column": "part", "ignore": ["loss", "review"]}
    )
    assert any("not by time" in notice for notice in by_part.notices)


def test_dates_are_times(tmp_path):
    def dates(columns):
        columns["when"] = [f"2024-01-{1 + day % 28:02d} 10:00" for day in columns["when"]]

    settings = {**FRAUD, "time_column": "when", "ignore": ["loss", "review", "part"]}
    split = opened(payments(tmp_path, change=dates), **settings).problem.split
    when = np.array([row["when"] for row in table(tmp_path / "edges.csv")])
    assert max(when[split.train]) < min(when[split.test])


@pytest.mark.slow
def test_a_run_is_predicted_as_it_was_trained_and_new_tables_need_no_target(tmp_path):
    for more in ({}, {"label_messages": True}, {"time_column": "when"}):
        name = next(iter(more), "plain")
        ignore = without(FRAUD["ignore"], more.get("time_column"))
        places = payments(tmp_path / name)
        run = ew.train(places, tmp_path / name / "run", **{**FRAUD, **more, "ignore": ignore})
        runs.predict(run.folder, out=tmp_path / "again.csv")
        trained, again = table(run.folder / "predictions.csv"), table(tmp_path / "again.csv")
        assert [r["fraud_probability"] for r in again] == [r["fraud_probability"] for r in trained]
        new = payments(tmp_path / "new", seed=5, change=lambda columns: columns.pop("fraud"))
        assert runs.predict(run.folder, new, tmp_path / "new.csv") == (PAYMENTS, 0)
        assert "fraud_true" not in table(tmp_path / "new.csv")[0]


@pytest.mark.slow
def test_edges_to_unknown_nodes_are_an_error_or_left_out(tmp_path):
    def change(columns):
        columns["target"][4] = "nobody"

    places = payments(tmp_path, change=change)
    with pytest.raises(EdgewiseError, match=r"edges\.csv:6: .* names 'nobody'"):
        opened(places, **FRAUD)
    problem = opened(places, **FRAUD, unknown="drop").problem
    assert len(problem.data) == PAYMENTS - 1
    assert problem.data.rows.tolist() == [i for i in range(PAYMENTS) if i != 4]
    run = ew.train(places, tmp_path / "run", **FRAUD, unknown="drop")
    assert [row["row"] for row in table(run.folder / "predictions.csv")][4] == "5"
    truth = {row["row"]: row["fraud_true"] for row in table(run.folder / "predictions.csv")}
    assert truth == {str(i): r["fraud"] for i, r in enumerate(table(places[1])) if i != 4}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"duplicates": "sum"}, "duplicates = sum merges edges, which are the rows"),
        ({"reciprocal": "max"}, "reciprocal = max merges edges"),
        ({"head": "layer"}, "head = layer gives outputs for nodes, not for edges"),
        ({"target": []}, "name the column to be predicted with --target"),
        ({"target": ["no"]}, "has no column 'no'"),
        ({"time_column": "kind", "ignore": []}, "column 'kind' holds no times"),
        ({"time_column": "when", "stratify": True}, "cannot be balanced"),
        ({"label_columns": ["loss"]}, "set label_messages = true"),
        ({"pooling": "mean"}, r"\[pooling\] does not apply here: what is predicted are edges"),
    ],
)
def test_mistakes_are_sentences(tmp_path, settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        opened(payments(tmp_path), **{**FRAUD, **settings})


def test_data_without_edges_to_predict_are_refused(tmp_path):
    for name in ("cora", "freesolv"):
        with pytest.raises(EdgewiseError, match=f"{name} is .*, which has no edges to predict"):
            resolve(find_source([name], "edge"), "default", EDGES)
    with pytest.raises(EdgewiseError, match="which has no nodes to predict"):
        resolve(
            find_source(payments(tmp_path, nodes=False), "edge"), "default", {"predict": "nodes"}
        )
    problem = opened(payments(tmp_path), **FRAUD).problem
    with pytest.raises(EdgewiseError, match="predicts edges of a graph, not str"):
        problem.unit.as_data("edges", None, torch.device("cpu"))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("shown"),
        lambda content: content["tables"].update(id=5),
        lambda content: content["tables"].pop("features"),
        lambda content: content.update(shown=[{"kind": "Weights", "name": "a"}]),
        lambda content: content.update(format="another"),
    ],
)
def test_a_damaged_reader_is_a_sentence(tmp_path, change):
    reader = opened(payments(tmp_path), **FRAUD).problem.encoder
    content = reader.to_json()
    (tmp_path / "reader.json").write_text(json.dumps(content))
    assert load_edge_reader(tmp_path / "reader.json") == reader
    change(content)
    (tmp_path / "reader.json").write_text(json.dumps(content))
    with pytest.raises(EdgewiseError, match="is not a saved reader of edges"):
        load_edge_reader(tmp_path / "reader.json")


def test_edges_are_registered_as_a_data_set():
    ew.register_dataset(
        "calls for a test",
        lambda: {"source": list("abca") * 8, "target": list("bcad") * 8, "y": [0, 1, 1, 0] * 8},
        unit="edge",
    )
    problem = opened(["calls for a test"], split="0.5,0.25,0.25").problem
    assert (problem.unit.name, len(problem.data)) == ("edge", 32)
    assert problem.task.names == ("y",)
