"""The networks of version 0.1 work under their old names, with a warning, until version 0.3."""

import pytest
import torch
from drawn import noise
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.nn.readouts import GraphReadout


def old(name):
    with pytest.warns(FutureWarning, match=rf"edgewise\.{name} goes away in version 0.3; use"):
        return getattr(ew, name)


@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_a_node_model_is_a_network_on_channels_as_they_are_given(layer, digraph):
    edge_index, edge_attr, nodes = digraph
    settings = ew.ModelSettings(layer, hidden=3)
    model = old("NodeModel")(4, 2, 2, settings).double().eval()
    today = ew.ChannelNetwork(4, 2, 2, settings, direction="as_given").double().eval()
    today.load_state_dict(model.state_dict())
    x = noise(nodes, 4)
    assert_close(model(x, edge_index, edge_attr), today(ew.Batch.of(x, edge_index, edge_attr)))
    assert model(x, edge_index, edge_attr[:, :1].expand(-1, 2)).shape == (nodes, 2)


@pytest.mark.parametrize("pooling", ["max", "mean", "sum"])
def test_a_graph_model_is_a_network_with_a_read_out_and_a_linear_head(pooling, digraph):
    edge_index, edge_attr, nodes = digraph
    model = old("GraphModel")(3, 2, 2, pooling=pooling).double().eval()
    settings = ew.ModelSettings(hidden=16, dropout=0.0, head="linear")
    today = ew.ChannelNetwork(
        3, 2, 2, settings, readout=GraphReadout(pooling), direction="as_given"
    )
    today.double().eval().load_state_dict(model.state_dict())
    x, graph = noise(nodes, 3), torch.tensor([0, 0, 0, 0, 2])
    expected = today(ew.Batch.of(x, edge_index[:, :2], edge_attr[:2], graph, 4))
    assert_close(model(x, edge_index[:, :2], edge_attr[:2], graph, num_graphs=4), expected)


@pytest.mark.parametrize(
    ("batch", "num_graphs", "sentence"),
    [
        (torch.zeros(3).long(), None, r"graph has \[3\] numbers for 5 nodes"),
        (torch.tensor([0, 0, 1, 1, 2]), 2, r"graph names graph 2.*num_graphs=2"),
        (torch.tensor([0, 0, 1, 1, -1]), None, r"graph names graph -1"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_in_a_sentence(batch, num_graphs, sentence, digraph):
    edge_index, edge_attr, nodes = digraph
    model = old("GraphModel")(3, 2, 2)
    with pytest.raises(EdgewiseError, match=sentence):
        model(torch.ones(nodes, 3), edge_index, edge_attr, batch, num_graphs)
