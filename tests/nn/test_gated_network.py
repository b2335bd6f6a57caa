"""Networks whose edges have a state: blocks, read-outs and heads are what their formulas say."""

import pytest
import torch
from drawn import noise
from torch import nn
from torch.testing import assert_close

import edgewise as ew
from edgewise.nn.blocks import BatchNorm, Block
from edgewise.nn.edge_state import EdgeState
from edgewise.nn.readouts import GraphReadout

DEEP = {
    "layer": "gated",
    "normalize": "none",
    "encoder": "linear",
    "norm": "batch",
    "activation": "relu",
    "residual": True,
    "feed_forward": 2,
    "dropout": 0.0,
    "hidden": 8,
    "depth": 3,
}


def test_a_block_updates_nodes_and_edges_as_written_in_plain_torch(digraph):
    edge_index, _, nodes = digraph
    layer = ew.GatedChannelConv(6, 6, edge_dim=6).double()
    block = Block(layer, norm="layer", activation="relu", residual=True, feed_forward=2).double()
    x, state = noise(nodes, 6), noise(edge_index.size(1), 6)
    edges = EdgeState(layer.incidence(edge_index, nodes), state)
    found, handed_on = block(x, edges)
    gathered, z = layer(x, edge_index, state, return_edges=True)
    hidden = block.norm(gathered).relu() + x
    norm, first, _, _, second, _ = block.feed_forward
    assert_close(found, hidden + second(first(norm(hidden)).relu()))
    assert_close(handed_on.features, state + block.edge_norm(z).relu())


def test_the_last_block_hands_no_edges_on():
    model = ew.ChannelNetwork(3, 2, 2, ew.ModelSettings(**DEEP, head="mlp"))
    assert [block.edge_norm is None for block in model.blocks] == [False, False, True]
    assert [block.layer.hands_on for block in model.blocks] == [True, True, False]


@pytest.mark.parametrize("head", ["linear", "mlp"])
@pytest.mark.parametrize("normalize", ["none", "row", "symmetric", "doubly_stochastic"])
@pytest.mark.parametrize("channels", [0, 4])
def test_compiled_and_plain_networks_agree_with_their_gradients(digraph, head, normalize, channels):
    edge_index, edge_attr, nodes = digraph
    settings = ew.ModelSettings(**{**DEEP, "normalize": normalize}, head=head, channels=channels)
    model = ew.ChannelNetwork(3, 2, 2, settings).double()
    batch = ew.Batch.of(noise(nodes, 3), edge_index, edge_attr)
    found = []
    for plain in (False, True):
        model.zero_grad()
        if plain:
            with ew.plain_kernels():
                out = model(batch)
                out.pow(2).sum().backward()
        else:
            out = model(batch)
            out.pow(2).sum().backward()
        found.append([out.detach(), *(p.grad.clone() for p in model.parameters())])
    for one, other in zip(*found, strict=True):
        assert_close(one, other)


def test_a_mixed_read_out_is_its_parts_side_by_side():
    x = noise(7, 3)
    batch = ew.Batch.of(x, torch.zeros(2, 0, dtype=torch.int64), graph=torch.arange(7) // 4)
    mixed = GraphReadout("mean+max+sum")(x, batch)
    parts = [GraphReadout(how)(x, batch) for how in ("mean", "max", "sum")]
    assert_close(mixed, torch.cat(parts, dim=1))


def test_graphs_one_by_one_give_what_a_batch_gives(digraph):
    edge_index, edge_attr, nodes = digraph
    settings = ew.ModelSettings(**DEEP, head="mlp", directed=False)
    readout = GraphReadout("mean+max+sum")
    model = ew.ChannelNetwork(3, 2, 2, settings, readout=readout, direction="as_given")
    model = model.double().eval()
    x = noise(2 * nodes, 3)
    both = torch.cat([edge_index, edge_index.flip(0) + nodes], dim=1)
    graph = torch.arange(2).repeat_interleave(nodes)
    together = model(ew.Batch.of(x, both, edge_attr.repeat(2, 1), graph))
    first = model(ew.Batch.of(x[:nodes], edge_index, edge_attr))
    second = model(ew.Batch.of(x[nodes:], edge_index.flip(0), edge_attr))
    assert_close(together, torch.cat([first, second]))


def test_a_single_row_goes_through_batch_norm_in_training_by_what_it_learnt():
    norm, plain = BatchNorm(3), nn.BatchNorm1d(3)
    many, one = torch.randn(20, 3), torch.randn(1, 3)
    assert_close(norm(many), plain(many))
    assert_close(norm(one), plain.eval()(one))
    assert_close(norm.running_mean, plain.running_mean)
