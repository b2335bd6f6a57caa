"""Estimators of whole graphs learn from NetworkX graphs, PyG data and Edgewise's own alike."""

import networkx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from torch_geometric.data import Data
from toys import bits

from edgewise import (
    EdgewiseError,
    Graph,
    GraphClassifier,
    GraphRegressor,
    MoleculeClassifier,
    load_model,
)

SIZES = range(3, 13)
QUICK = {"epochs": 3, "hidden": 4}


def shapes():
    """Rings and paths, whose nodes know their degree."""
    graphs = [networkx.cycle_graph(n) for n in SIZES] + [networkx.path_graph(n) for n in SIZES]
    for graph in graphs:
        networkx.set_node_attributes(graph, {n: float(d) for n, d in graph.degree}, "degree")
    return graphs


def as_data(graph, y=None):
    pairs = torch.tensor(list(graph.to_directed().edges)).T
    x = torch.tensor([[float(d)] for _, d in graph.degree])
    return Data(x=x, edge_index=pairs, y=None if y is None else torch.tensor([y]))


GRAPHS = shapes()
SHAPE = np.repeat(["ring", "path"], len(SIZES))
SIZE = np.array([graph.number_of_nodes() for graph in GRAPHS], dtype=float)


def test_shapes_are_learnt_from_networkx_graphs():
    model = GraphClassifier(epochs=20, hidden=8, learning_rate=0.01, validation_fraction=0)
    model.fit(GRAPHS, SHAPE)
    assert model.score(GRAPHS, SHAPE) == 1
    assert list(model.classes_) == ["path", "ring"]
    assert model.predict_proba(GRAPHS).shape == (20, 2)
    assert not model.fitted_.settings.model.directed  # their edges have no direction


def test_pyg_data_bring_their_own_labels_and_are_graphs_of_tensors():
    data = [as_data(graph, int(name == "ring")) for graph, name in zip(GRAPHS, SHAPE, strict=True)]
    own = GraphClassifier(**QUICK).fit(data)
    ready = [Graph(d.x, d.edge_index) for d in data]
    labels = [int(d.y) for d in data]
    assert bits(own.predict_proba(data)) == bits(
        GraphClassifier(**QUICK).fit(ready, labels).predict_proba(ready)
    )
    assert all(d.y is not None for d in data)  # nothing is changed in what was given


def test_several_values_with_gaps_keep_their_shape():
    y = np.stack([SIZE, -SIZE], axis=1)
    y[3, 1] = np.nan
    model = GraphRegressor(**QUICK, ensemble=2).fit(GRAPHS, y)
    assert model.predict(GRAPHS[:3]).shape == (3, 2)
    assert GraphRegressor(**QUICK).fit(GRAPHS, SIZE).predict(GRAPHS[:3]).shape == (3,)


@pytest.mark.slow
def test_a_saved_model_predicts_the_same_bits(tmp_path):
    for number, graphs in enumerate((GRAPHS, [as_data(graph) for graph in GRAPHS])):
        model = GraphRegressor(**QUICK).fit(graphs, SIZE)
        folder = tmp_path / str(number)
        model.save(folder)
        again = GraphRegressor.load(folder)
        assert bits(again.predict(graphs)) == bits(model.predict(graphs))
        assert bits(load_model(folder).predict(graphs).mean[:, 0]) == bits(model.predict(graphs))
        assert (folder / "reader.json").exists() == (number == 0)
    with pytest.raises(EdgewiseError, match=r"load it with GraphRegressor\.load"):
        MoleculeClassifier.load(tmp_path / "0")


def test_columns_are_learnt_from_the_training_graphs():
    validation = (GRAPHS[::4], SIZE[::4])
    rest = [number for number in range(20) if number % 4]
    model = GraphRegressor(**QUICK).fit([GRAPHS[i] for i in rest], SIZE[rest], validation)
    (column,) = model.fitted_.encoder.columns.features
    assert column.mean == np.mean([d for i in rest for _, d in GRAPHS[i].degree])


def test_cross_validation_takes_a_list_of_graphs():
    scores = cross_val_score(GraphClassifier(**QUICK), GRAPHS, SHAPE, cv=2, error_score="raise")
    assert np.isfinite(scores).all()
    assert clone(GraphClassifier(missing="mean", hidden=3)).get_params()["missing"] == "mean"


def test_directed_graphs_keep_their_direction():
    ways = [networkx.path_graph(n, networkx.DiGraph) for n in SIZES]
    model = GraphRegressor(**QUICK).fit(ways, list(SIZES))
    assert model.fitted_.settings.model.directed
    one_way = [Graph(torch.ones(3, 1), torch.tensor([[0, 1], [1, 2]]))] * 4
    assert GraphRegressor(**QUICK).fit(one_way, [1.0, 2, 3, 4]).fitted_.settings.model.directed


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (GRAPHS[0], [1], "X is a Graph; give a list of graphs"),
        ("CCO", ["a"], "X is a str; give a list of graphs"),
        ([], [], "X holds no graphs"),
        (GRAPHS[:2], [1.0], r"X has 2 row\(s\), but its y has the shape \[1\]"),
        (GRAPHS[:2], None, "there is no y, and graph 0 has none of its own"),
        ([GRAPHS[0], as_data(GRAPHS[1])], [1.0, 2], r"X\[0\] is a Graph; give graphs of one sort"),
        ([as_data(GRAPHS[0]), Graph(torch.ones(2, 3), torch.tensor([[0], [1]]))], [1.0, 2],
         "graph 1 has 3 features, but graph 0 has 1"),
        ([Data(edge_index=torch.tensor([[0], [1]]))], [1.0], r"X\[0\]: the PyG data has no x"),
        ([networkx.Graph()], [1.0], r"X \(nodes\) has a header but no rows|has no node"),
    ],
)  # fmt: skip
def test_what_are_no_graphs_is_told_in_a_sentence(X, y, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        GraphRegressor(**QUICK).fit(X, y)
