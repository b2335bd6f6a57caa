"""Saved estimators predict the same bits, and learn what the command line learns, bit for bit."""

import csv
import json
import re

import numpy as np
import pytest
from commands import python
from toys import CARBONS, FAMILY, NODES, QUICK, RING, SMILES, bits

from edgewise import MoleculeClassifier, MoleculeRegressor, NodeClassifier, make_settings
from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import find_source
from edgewise.runs.checkpoint import train_run
from edgewise.runs.folder import start_run
from edgewise.units.graph import GRAPH
from edgewise.units.node import NODE


@pytest.mark.slow
def test_a_saved_estimator_predicts_the_same_bits_in_a_new_process(graph, tmp_path):
    model = MoleculeRegressor(**QUICK, ensemble=2, validation_fraction=0.3).fit(SMILES, CARBONS)
    model.save(tmp_path)
    program = (
        "import edgewise\n"
        "edgewise.set_num_threads(1)\n"
        f"model = edgewise.MoleculeRegressor.load({str(tmp_path)!r})\n"
        f"print(model.predict({SMILES!r}).tobytes().hex())\n"
        "print({k: v for k, v in model.get_params().items() if v is not None})"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr
    predicted, parameters = done.stdout.splitlines()
    assert predicted == bits(model.predict(SMILES)).hex()
    assert parameters == str({k: v for k, v in model.get_params().items() if v is not None})


def test_a_model_of_another_sort_is_refused(graph, tmp_path):
    MoleculeRegressor(**QUICK).fit(SMILES, CARBONS).save(tmp_path / "values")
    NodeClassifier(graph=graph, **QUICK).fit(NODES, RING).save(tmp_path / "nodes")
    with pytest.raises(EdgewiseError, match=r"no NodeClassifier; load it with MoleculeRegressor"):
        NodeClassifier.load(tmp_path / "values")
    with pytest.raises(EdgewiseError, match=r"no MoleculeClassifier; load it with MoleculeRegr"):
        MoleculeClassifier.load(tmp_path / "values")
    with pytest.raises(EdgewiseError, match=r"model for nodes \(classification of y into 2 cl"):
        MoleculeClassifier.load(tmp_path / "nodes")
    with pytest.raises(EdgewiseError, match="graph is missing"):
        NodeClassifier.load(tmp_path / "nodes").predict()
    with pytest.raises(EdgewiseError, match="holds no model"):
        NodeClassifier.load(tmp_path)


def test_a_damaged_folder_is_refused(graph, tmp_path):
    NodeClassifier(graph=graph, **QUICK).fit(NODES, RING).save(tmp_path)
    path = tmp_path / "estimator.json"
    content = json.loads(path.read_text())
    for damage, sentence in (
        ("{", "estimator.json cannot be used"),
        (json.dumps({**content, "format": "other"}), "it says 'other'"),
        (json.dumps({**content, "classes": ["first", "third"]}), "classes are not those of"),
        (json.dumps({**content, "parameters": {"hiden": 3}}), "does not fit NodeClassifier"),
    ):
        path.write_text(damage)
        with pytest.raises(EdgewiseError, match=re.escape(sentence)):
            NodeClassifier.load(tmp_path, graph=graph)


def molecule_run(tmp_path, columns, **settings):
    """A run on a file whose rows train, validate and test by turns, and its predictions."""
    parts = ["train", "train", "test", "validation"] * 6
    path = tmp_path / "molecules.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["smiles", "part", *columns])
        for row, text in enumerate(SMILES):
            cells = (column[row] for column in columns.values())
            writer.writerow([text, parts[row], *("" if c != c else c for c in cells)])
    source, columns = find_source([str(path)]), {"target": tuple(columns), "split_column": "part"}
    resolved = make_settings("graph", implied=source.implied, **columns, **settings)
    run = start_run(tmp_path / "run", source, resolved, "default", "edgewise train")
    return np.array(parts), train_run(run, GRAPH.open(source, resolved)).prediction.mean


def one_gap_in_five(values):
    values = np.array(values, dtype=float)
    values[::5] = np.nan
    return values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "columns", "settings"),
    [
        (MoleculeRegressor, {"carbons": CARBONS + 0.1}, {"ensemble": 2}),
        (
            MoleculeRegressor,
            {"carbons": one_gap_in_five(CARBONS + 0.1), "length": np.arange(24) ** 1.5},
            {"layer": "attention"},
        ),
        (MoleculeClassifier, {"family": FAMILY}, {"weighted": True, "task": "classification"}),
        (
            MoleculeClassifier,
            {"amine": one_gap_in_five(FAMILY == "amine"), "long": (CARBONS > 3).astype(float)},
            {"seed": 5},
        ),
    ],
)
def test_molecules_give_the_bits_of_the_command_line(estimator, columns, settings, tmp_path):
    shared = {"epochs": 6, "hidden": 5, "patience": 2, "batch_size": 5, "dropout": 0.1, **settings}
    part, expected = molecule_run(tmp_path, columns, **shared)
    y = np.stack(list(columns.values()), axis=1)
    y = y[:, 0] if len(columns) == 1 else y
    shared.pop("task", None)
    model = estimator(**shared)
    train, stop = (part == "train"), (part == "validation")
    X = np.array(SMILES)
    model.fit(X[train], y[train], validation=(X[stop], y[stop]))
    predict = model.predict if estimator is MoleculeRegressor else model.predict_proba
    assert bits(predict(SMILES).reshape(24, -1)) == bits(expected)
    loaded = estimator.load(tmp_path / "run")
    again = loaded.predict if estimator is MoleculeRegressor else loaded.predict_proba
    assert bits(again(SMILES)) == bits(predict(SMILES))
    assert loaded.get_params()["hidden"] == 5


@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_nodes_give_the_bits_of_the_command_line(layer, tmp_path):
    parts = np.array(["train", "train", "test", "validation"] * 6)
    rows = [f"{i},{i % 7},{RING[i]},{parts[i]}" for i in NODES]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,age,label,part", *rows, ""]))
    lines = [f"{i},{(i + step) % 24},{i % 3 + 1}" for i in NODES for step in (1, 5)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target,weight", *lines, ""]))
    shared = {"epochs": 6, "hidden": 5, "patience": 2, "layer": layer, "seed": 1}
    settings = make_settings("node", split_column="part", **shared)
    source = find_source([str(tmp_path / "nodes.csv"), str(tmp_path / "edges.csv")])
    run = start_run(tmp_path / "run", source, settings, "default", "edgewise train")
    opened = NODE.open(source, settings)
    expected = train_run(run, opened).prediction.mean
    graph = opened.problem.data.graph

    train, stop = (np.flatnonzero(parts == name) for name in ("train", "validation"))
    model = NodeClassifier(graph=graph, **shared)
    model.fit(train, RING[train], validation=(stop, RING[stop]))
    assert bits(model.predict_proba()) == bits(expected)
    loaded = NodeClassifier.load(tmp_path / "run", graph=graph)
    assert bits(loaded.predict_proba()) == bits(expected)
    assert loaded.classes_.tolist() == ["first", "second"]
