"""Estimators learn nodes and molecules, and see only what they are given."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from sklearn.metrics import r2_score
from toys import CARBONS, FAMILY, LEARN, NODES, QUICK, RING, SMILES, bits

from edgewise import Graph, MoleculeClassifier, MoleculeRegressor, NodeClassifier, NodeRegressor
from edgewise.core.errors import EdgewiseError


@pytest.mark.slow
def test_nodes_are_classified(graph):
    model = NodeClassifier(graph=graph, **LEARN).fit(NODES, RING)
    assert model.score(NODES, RING) == model.score(NODES[:, None], RING[:, None]) == 1.0
    assert model.classes_.tolist() == ["first", "second"]
    assert model.predict_proba(NODES).shape == (24, 2)
    assert np.allclose(model.predict_proba(NODES).sum(axis=1), 1)
    assert [epoch.number for epoch in model.history_[:3]] == [1, 2, 3]


@pytest.mark.slow
def test_nodes_get_values(graph):
    value = np.where(NODES < 12, -5.0, 20.0)
    model = NodeRegressor(graph=graph, **LEARN).fit(NODES, value)
    assert model.predict(NODES).shape == (24,)
    assert model.score(NODES, value) > 0.95
    columns = NodeRegressor(graph=graph, **QUICK).fit(NODES, value[:, None])
    assert columns.predict(NODES).shape == (24, 1)


@pytest.mark.slow
def test_molecules_get_values():
    model = MoleculeRegressor(**LEARN, validation_fraction=0).fit(SMILES, CARBONS)
    assert model.score(SMILES, CARBONS) > 0.95
    assert model.predict(SMILES).shape == CARBONS.shape


@pytest.mark.slow
def test_molecules_are_classified():
    model = MoleculeClassifier(**LEARN, validation_fraction=0).fit(SMILES, FAMILY)
    assert model.score(SMILES, FAMILY) == 1.0
    assert model.classes_.tolist() == ["amine", "other"]


@pytest.mark.slow
def test_several_binary_labels_with_gaps_are_learnt():
    y = np.stack([FAMILY == "amine", CARBONS > 3], axis=1).astype(float)
    y[:4, 1] = y[4:8, 0] = np.nan
    model = MoleculeClassifier(**LEARN, validation_fraction=0).fit(SMILES, y)
    assert model.score(SMILES, y) == 1.0
    probability, label = model.predict_proba(SMILES), model.predict(SMILES)
    assert probability.shape == label.shape == y.shape
    assert np.array_equal(label, probability > 0.5)
    assert [classes.tolist() for classes in model.classes_] == [[0, 1], [0, 1]]


@pytest.mark.slow
def test_several_values_with_gaps_are_learnt():
    y = np.stack([CARBONS, (FAMILY == "amine") * 100.0], axis=1)
    y[::5, 0] = np.nan
    model = MoleculeRegressor(**LEARN, validation_fraction=0).fit(SMILES, y)
    assert model.predict(SMILES).shape == y.shape
    assert model.score(SMILES, y) > 0.9


@pytest.mark.parametrize(
    "labels", [NODES // 12, NODES // 12 * 2 - 1, NODES < 12, (NODES // 12).astype(float)]
)
def test_labels_come_back_as_they_were_given(graph, labels, tmp_path):
    model = NodeClassifier(graph=graph, **QUICK).fit(NODES, labels)
    assert np.array_equal(model.classes_, np.unique(labels))
    assert model.predict(NODES).dtype == labels.dtype
    model.save(tmp_path)
    again = NodeClassifier.load(tmp_path, graph=graph)
    assert np.array_equal(again.predict(), model.predict())
    assert again.predict().dtype == labels.dtype


def test_labels_of_nodes_outside_x_are_never_seen(graph):
    chosen = NODES[::2]
    results = []
    for y in (torch.zeros(24).long(), torch.arange(24) // 12, torch.arange(24) % 5):
        model = NodeClassifier(graph=replace(graph, y=y), **QUICK).fit(chosen, RING[chosen])
        results.append(bits(model.predict_proba(NODES)))
    assert results[0] == results[1] == results[2]


def test_the_order_of_nodes_changes_nothing(graph):
    order = np.random.default_rng(0).permutation(24)
    one = NodeClassifier(graph=graph, **QUICK).fit(NODES, RING)
    other = NodeClassifier(graph=graph, **QUICK).fit(order, RING[order])
    assert bits(one.predict_proba(NODES)) == bits(other.predict_proba(NODES))


@pytest.mark.slow
def test_the_same_seed_repeats_itself_and_another_does_not():
    one, two, other = (
        MoleculeRegressor(**QUICK, seed=seed).fit(SMILES, CARBONS) for seed in (3, 3, 4)
    )
    assert bits(one.predict(SMILES)) == bits(two.predict(SMILES))
    assert bits(one.predict(SMILES)) != bits(other.predict(SMILES))


def test_without_x_and_y_the_labels_of_the_graph_are_learnt(graph):
    y = torch.arange(24) // 12
    y[3:6] = -1
    labelled = replace(graph, y=y, class_names=("first", "second"))
    known = (y >= 0).nonzero()[:, 0].numpy()
    one = NodeClassifier(graph=labelled, **QUICK).fit()
    other = NodeClassifier(graph=graph, **QUICK).fit(known, RING[known])
    assert bits(one.predict_proba()) == bits(other.predict_proba())


def test_nodes_are_named_by_number_or_id(graph):
    model = NodeClassifier(graph=graph, **QUICK).fit([f"paper {i}" for i in NODES], RING)
    number = model.predict_proba([3, 20])
    assert bits(number) == bits(model.predict_proba(["paper 3", "paper 20"]))
    assert bits(number) == bits(model.predict_proba(np.array([[3], [20]])))
    assert bits(number) == bits(model.predict_proba(pd.Series([3, 20], dtype=object)))


def test_another_graph_with_the_same_columns_is_predicted(graph):
    model = NodeClassifier(graph=graph, **QUICK).fit(NODES, RING)
    part = Graph(graph.x[:12], graph.edge_index[:, :24], graph.channels[:24])
    assert np.allclose(model.predict_proba(graph=part), model.predict_proba(NODES[:12]), atol=1e-6)
    assert model.predict([0, 1], graph=part).shape == (2,)
    with pytest.raises(EdgewiseError, match="give the same columns"):
        model.predict(graph=Graph(graph.x[:, :3], graph.edge_index, graph.channels))


def test_a_validation_part_is_held_out_with_the_shares_of_the_classes(graph):
    y = np.where(NODES < 4, "rare", "frequent")
    seen = []

    class Watched(NodeClassifier):
        def _fit_problem(self, problem, target):
            seen.append(problem.split)
            return super()._fit_problem(problem, target)

    Watched(graph=graph, **QUICK, validation_fraction=0.25).fit(NODES, y)
    Watched(graph=graph, **QUICK, validation_fraction=0).fit(NODES, y)
    Watched(graph=graph, **QUICK, validation_fraction=0.01).fit(NODES, y)
    assert (y[seen[0].validation] == "rare").sum() == 1
    assert [len(split.validation) for split in seen] == [6, 0, 1]
    assert [len(split.train) for split in seen] == [18, 24, 23]


def test_without_validation_all_epochs_are_trained():
    model = MoleculeRegressor(epochs=7, patience=1, hidden=4, validation_fraction=0)
    assert len(model.fit(SMILES, CARBONS).history_) == 7


def test_rows_without_a_target_are_left_out(graph):
    y = RING.astype(object)
    y[2], y[3], y[4] = None, np.nan, pd.NA
    known = np.delete(NODES, [2, 3, 4])
    one = NodeClassifier(graph=graph, **QUICK).fit(NODES, y)
    other = NodeClassifier(graph=graph, **QUICK).fit(known, RING[known])
    assert bits(one.predict_proba()) == bits(other.predict_proba())
    assert one.score(NODES, y) == other.score(known, RING[known])


def test_labels_with_gaps_can_be_scored_whatever_they_are(graph):
    y = RING.astype(object)
    numbers = np.array([None if i == 2 else int(label == y[0]) for i, label in enumerate(y)])
    model = NodeClassifier(graph=graph, **QUICK).fit(NODES, numbers)
    known = np.delete(NODES, 2)
    expected = np.mean(model.predict(known) == numbers[known].astype(int))
    assert expected > 0
    for labels in (numbers, pd.Series(numbers, dtype="Int64")):
        assert model.score(NODES, labels) == expected


def test_a_target_without_values_does_not_spoil_the_score():
    y = np.stack([CARBONS, CARBONS], axis=1).astype(float)
    model = MoleculeRegressor(**QUICK).fit(SMILES, y)
    one = y.copy()
    one[:, 1] = np.nan
    assert model.score(SMILES, one) == r2_score(y[:, 0], model.predict(SMILES)[:, 0])
    assert math.isnan(model.score(SMILES[:1], y[:1]))


def test_molecules_come_as_smiles_or_rdkit_molecules_in_any_container():
    model = MoleculeRegressor(**QUICK).fit(pd.Series(SMILES), pd.Series(CARBONS, name="carbons"))
    assert model.fitted_.task.names == ("carbons",)
    expected = model.predict(["CCO", "CN"])
    molecules = [Chem.MolFromSmiles("CCO"), "CN"]
    for X in (molecules, np.array(molecules, dtype=object), np.array([["CCO"], ["CN"]])):
        assert np.array_equal(model.predict(X), expected)
    assert np.array_equal(model.predict(pd.DataFrame({"smiles": ["CCO", "CN"]})), expected)
