"""Nodes of a large graph are numbered anew, and nobody sees it but the clock."""

import pytest
import torch
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.presets import make_settings
from edgewise.graphs import whole_graph
from edgewise.graphs.batch import Batch
from edgewise.graphs.numbering import near_order, renumbered
from edgewise.graphs.whole_graph import WholeGraph
from edgewise.nn.network import ChannelNetwork

NODES = 90


@pytest.fixture
def graph():
    generator = torch.Generator().manual_seed(3)
    pairs = torch.rand(NODES, NODES, generator=generator) < 0.03
    edge_index = pairs.fill_diagonal_(False).nonzero().T[:, torch.randperm(int(pairs.sum()))]
    attr = torch.rand(edge_index.size(1), 2, generator=generator).double()
    x = torch.randn(NODES, 5, generator=generator).double()
    return ew.Graph(x, edge_index.contiguous(), edge_attr=attr)


@pytest.fixture
def every_graph_is_large(monkeypatch):
    monkeypatch.setattr(whole_graph, "FEW_NODES", 0)


@pytest.mark.parametrize("layer", ["conv", "attention", "gated"])
@pytest.mark.parametrize("rows", [None, torch.tensor([7, 3, 88, 3])])
@pytest.mark.usefixtures("every_graph_is_large")
def test_predictions_and_gradients_are_those_of_the_given_numbering(graph, layer, rows):
    settings = make_settings("node", layer=layer, dropout=0.0, hidden=4).model
    model = ChannelNetwork(5, 3, 2, settings).double()
    found, expected = (
        model(WholeGraph(graph).batch(rows)),
        model(Batch.from_graph(graph, rows)),
    )
    assert_close(found, expected)
    weight = torch.randn_like(found)
    grads = (torch.autograd.grad((out * weight).sum(), model.parameters(), allow_unused=True)
             for out in (found, expected))  # fmt: skip
    for one, other in zip(*grads, strict=True):
        assert_close(one, other)


def test_every_node_keeps_its_features_and_edges(graph):
    near, place = renumbered(graph)
    assert sorted(place.tolist()) == list(range(NODES))
    assert_close(near.x[place], graph.x)
    given = zip(place[graph.edge_index].T.tolist(), graph.edge_attr.tolist(), strict=True)
    found = zip(near.edge_index.T.tolist(), near.edge_attr.tolist(), strict=True)
    assert sorted(given) == sorted(found)


def test_neighbours_stand_near_each_other():
    around = torch.randperm(4096, generator=torch.Generator().manual_seed(0))
    ring = torch.stack([around, around.roll(1)])
    place = near_order(ring, 4096).argsort()
    assert (place[ring[0]] - place[ring[1]]).abs().median() <= 2


def test_hubs_are_dealt_out_evenly():
    generator = torch.Generator().manual_seed(0)
    citing = torch.arange(1, 4096).repeat_interleave(4)
    cited = (torch.rand(len(citing), generator=generator) ** 2 * citing).long()
    order = near_order(torch.stack([citing, cited]), 4096)
    degree = torch.bincount(torch.cat([citing, cited]), minlength=4096)[order].float()
    for part in degree.reshape(4, -1).sum(1) / degree.sum():
        assert 0.15 < part < 0.35


def test_small_graphs_keep_their_numbers(graph):
    batch = WholeGraph(graph).batch(torch.tensor([5, 2]))
    assert torch.equal(batch.x, graph.x)
    assert torch.equal(batch.edge_index, graph.edge_index)
    assert batch.rows.tolist() == [5, 2]
