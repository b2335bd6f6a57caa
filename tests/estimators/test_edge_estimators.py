"""Edges of a graph, learnt in scikit-learn's manner."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from toys import QUICK, bits

from edgewise import EdgeClassifier, EdgeRegressor, MultiGraph, NodeClassifier
from edgewise.core.errors import EdgewiseError

EDGES = np.arange(300)
LEARN = {"epochs": 60, "hidden": 16, "dropout": 0.0, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def payments():
    """Payments between ten accounts; the first channel is the amount."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(10, (2, len(EDGES)), generator=generator)
    amount = torch.rand(len(EDGES), 1, generator=generator)
    return MultiGraph(torch.randn(10, 3, generator=generator), pairs, amount)


@pytest.fixture(scope="module")
def size(payments):
    return np.where(payments.edge_attr[:, 0].numpy() > 0.5, "large", "small")


@pytest.mark.slow
def test_edges_are_classified(payments, size):
    model = EdgeClassifier(graph=payments, **LEARN).fit(EDGES[:200], size[:200])
    assert model.score(EDGES[200:], size[200:]) >= 0.9
    assert model.predict_proba([61, 62]).shape == (2, 2)
    assert list(model.classes_) == ["large", "small"]


@pytest.mark.slow
def test_edges_get_values(payments):
    value = payments.edge_attr[:, 0].numpy() * 3
    model = EdgeRegressor(graph=payments, **LEARN).fit(EDGES[:200], value[:200])
    assert model.score(EDGES[200:], value[200:]) > 0.8
    assert model.predict([1, 2]).shape == (2,)


@pytest.mark.slow
def test_cross_validation_and_clones_share_the_graph(payments, size):
    model = EdgeClassifier(graph=payments, **LEARN)
    assert clone(model).graph is payments
    model.set_params(validation_fraction=0)
    assert cross_val_score(model, EDGES, size, cv=2).mean() > 0.8


def test_a_saved_estimator_predicts_the_same_bits(payments, size, tmp_path):
    model = EdgeClassifier(graph=payments, **QUICK).fit(EDGES[:40], size[:40])
    model.save(tmp_path)
    loaded = EdgeClassifier.load(tmp_path, graph=payments)
    assert bits(loaded.predict_proba(EDGES)) == bits(model.predict_proba(EDGES))
    with pytest.raises(
        EdgewiseError, match=r"no NodeClassifier; load it with EdgeClassifier\.load"
    ):
        NodeClassifier.load(tmp_path)


def test_labels_of_other_edges_are_seen_where_fit_was_given_them_alone(payments, size):
    settings = {**QUICK, "label_messages": True, "validation_fraction": 0}
    model = EdgeClassifier(graph=payments, **settings).fit(EDGES[:40], size[:40])
    before = model.predict_proba()
    other = size.copy()
    other[3] = {"large": "small", "small": "large"}[size[3]]
    again = EdgeClassifier(graph=payments, **settings).fit(EDGES[:40], other[:40])
    again.fitted_.members[0].load_state_dict(model.fitted_.members[0].state_dict())
    after = again.predict_proba()
    assert bits(before[3]) == bits(after[3])
    assert bits(before) != bits(after)
    copy = MultiGraph(payments.x, payments.edge_index, payments.edge_attr)
    with pytest.raises(EdgewiseError, match="labels that fit was given"):
        model.predict(graph=copy)


def test_another_graph_with_the_same_columns_is_predicted(payments, size):
    model = EdgeClassifier(graph=payments, **QUICK).fit(EDGES, size)
    few = MultiGraph(payments.x, payments.edge_index[:, :7], payments.edge_attr[:7])
    assert model.predict(graph=few).shape == (7,)


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        ([300], ["a"], r"X names edge\(s\) \[300\], but the graph has the edges 0 to 299"),
        ([0.5], ["a"], "give edge numbers, whole and from 0"),
        ([[0, 1]], ["a"], "give edge numbers, columns of edge_index"),
        ([1, 1], ["a", "b"], r"edge\(s\) \[1\] are given more than once"),
        (None, None, "edges of a graph have no labels of their own"),
        ([0, 1], [["a", "b"], ["a", "b"]], "edges have one target"),
    ],
)
def test_mistakes_are_sentences(payments, X, y, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        EdgeClassifier(graph=payments, **QUICK).fit(X, y)
