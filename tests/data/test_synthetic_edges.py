"""The label of an edge hangs on direction, kind and order together, and on nothing else."""

import pytest
import torch

from edgewise import EdgeClassifier, MultiGraph
from edgewise.core.errors import EdgewiseError
from edgewise.data.synthetic_edges import direction_kind_and_order_graph
from edgewise.graphs.incident import port_numbers

LEARN = {"hidden": 32, "dropout": 0.0, "learning_rate": 0.01, "epochs": 150, "patience": 60}


@pytest.fixture(scope="module")
def payments():
    return direction_kind_and_order_graph(1200, nodes=200, seed=1)


def bits(graph):
    source, target = graph.edge_index
    from_shop = (graph.x[source, 0] > graph.x[target, 0]).long()
    return from_shop, graph.edge_attr[:, 1].long(), port_numbers(graph.edge_index, graph.num_nodes)


def test_the_label_is_the_exclusive_or_of_three_fair_bits(payments):
    first, second, third = bits(payments.graph)
    assert torch.equal(first ^ second ^ third, payments.y)
    assert payments.pair.unique(return_counts=True)[1].unique().tolist() == [2]
    assert payments.ceilings.all == 1.0


def turned(graph, what):
    """The graph with one of the three draws the other way round for every pair."""
    edge_index, kinds = graph.edge_index, graph.edge_attr
    if what == "direction":
        edge_index = edge_index.flip(0)
    elif what == "kinds":
        kinds = kinds.flip(1)
    else:  # the row of an edge becomes that of its parallel edge
        edge_index, kinds = edge_index.flip(1), kinds.flip(0)
    return MultiGraph(graph.x, edge_index, kinds)


def seen(graph, *, direction=True, kinds=True):
    """What a reader without order sees: pairs and kinds, in no order."""
    pairs = graph.edge_index if direction else graph.edge_index.sort(dim=0).values
    columns = torch.cat([pairs, graph.edge_attr.T.long()]) if kinds else pairs
    return sorted(map(tuple, columns.T.tolist()))


@pytest.mark.parametrize("what", ["direction", "kinds", "order"])
def test_who_does_not_see_one_of_them_cannot_tell_a_graph_of_opposite_labels(payments, what):
    graph, other = payments.graph, turned(payments.graph, what)
    first, second, third = bits(other)
    label = first ^ second ^ third
    mine = payments.y.flip(0) if what == "order" else payments.y
    assert torch.equal(label, 1 - mine)
    sight = {"direction": {"direction": False}, "kinds": {"kinds": False}, "order": {}}[what]
    assert seen(other, **sight) == seen(graph, **sight)


def accuracy(payments, graph=None, **settings):
    graph = payments.graph if graph is None else graph
    pair, rows = payments.pair, torch.arange(len(payments.y))
    train, stop, test = (rows[(pair % 6 >= low) & (pair % 6 < high)].numpy()
                         for low, high in ((0, 4), (4, 5), (5, 6)))  # fmt: skip
    model = EdgeClassifier(graph=graph, **{**LEARN, **settings})
    y = payments.y.numpy()
    model.fit(train, y[train], validation=(stop, y[stop]))
    return model.score(test, y[test])


@pytest.mark.slow
def test_a_model_that_sees_all_three_reaches_the_ceiling_and_others_fall_short(payments):
    assert accuracy(payments) > 0.97
    graph = payments.graph
    blind = MultiGraph(graph.x, graph.edge_index, torch.ones_like(graph.edge_attr))
    few = {"epochs": 40}
    for settings in ({"directed": False}, {"ports": False}, {"graph": blind}):
        assert accuracy(payments, **few, **settings) < 0.62


def test_impossible_sizes_are_a_sentence():
    with pytest.raises(EdgewiseError, match="pairs=10, nodes=4 make no graph"):
        direction_kind_and_order_graph(10, nodes=4)
