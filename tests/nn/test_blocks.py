"""A block is layer, norm, activation, dropout and residual, each as plain torch has it."""

import pytest
import torch
from drawn import noise
from torch import nn
from torch.nn.functional import elu, gelu, relu
from torch.testing import assert_close

import edgewise as ew
from edgewise.graphs.edges import Edges
from edgewise.nn.blocks import Block

PLAIN = {"elu": elu, "relu": relu, "gelu": gelu, "": lambda x: x}


def built(digraph, width=6, **block):
    """A block of a layer that keeps the width, its input, its edges and the layer's own output."""
    layer = ew.ChannelConv(width, width // 2, 2).double()
    nn.init.normal_(layer.bias)
    edges = Edges(*digraph).prepared(layer)
    x = noise(digraph[2], width)
    return Block(layer, **block).double(), x, edges, layer.propagate(x, edges)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("activation", PLAIN)
def test_a_block_is_its_parts_one_after_the_other(digraph, activation, norm, residual, training):
    shape = {"norm": norm, "activation": activation, "residual": residual}
    block, x, edges, out = built(digraph, **shape)
    block.train(training)
    plain = {"none": None, "batch": nn.BatchNorm1d(6), "layer": nn.LayerNorm(6)}[norm]
    if plain is not None:
        plain.double().train(training)
        for p in block.norm.parameters():
            nn.init.uniform_(p)
        plain.load_state_dict(block.norm.state_dict())
        out = plain(out)
    out = PLAIN[activation](out)
    found, handed_on = block(x, edges)
    assert_close(found, out + x if residual else out)
    assert handed_on is None
    if norm == "batch":
        assert_close(block.norm.running_mean, plain.running_mean)


@pytest.mark.parametrize("norm", ["none", "layer"])
@pytest.mark.parametrize("activation", ["elu", "relu"])
def test_dropout_scales_what_it_keeps_and_is_for_training_alone(digraph, activation, norm):
    block, x, edges, out = built(digraph, width=600, dropout=0.3, activation=activation, norm=norm)
    out = PLAIN[activation](out if block.norm is None else block.norm(out))
    dropped, _ = block.train()(x, edges)
    kept = dropped != 0
    assert_close(dropped[kept], out[kept] / 0.7)
    share = float(kept.sum() / (out != 0).sum())
    assert abs(share - 0.7) < 0.05
    assert_close(block.eval()(x, edges)[0], out)


def test_a_residual_needs_equal_widths(digraph):
    layer = ew.ChannelConv(4, 3, 2).double()
    edges, x = Edges(*digraph).prepared(layer), noise(digraph[2], 4)
    plain, adding = Block(layer), Block(layer, residual=True)
    assert_close(adding(x, edges)[0], plain(x, edges)[0])


def test_a_root_weight_maps_the_node_itself_before_the_norm(digraph):
    block, x, edges, out = built(digraph, norm="layer", residual=True, root_width=6)
    own = x @ block.root.weight.T
    assert_close(block(x, edges)[0], elu(block.norm(out + own)) + x)
    sparse = Block(block.layer, root_width=6).double()
    sparse.root = block.root
    assert_close(sparse(ew.sparse_features(x), edges)[0], elu(out + own))


def test_the_residual_is_added_behind_dropout(digraph):
    block, x, edges, _ = built(digraph, width=60, dropout=0.999, residual=True)
    found, _ = block.train()(x, edges)
    assert (found == x).double().mean() > 0.9


def batch_of(digraph, width=4):
    return ew.Batch.of(noise(digraph[2], width), *digraph[:2])


def network(width=4, **settings):
    settings = ew.ModelSettings(hidden=3, dropout=0.0, **settings)
    model = ew.ChannelNetwork(width, 2, 2, settings, direction="as_given")
    return model.double().eval()


@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_a_linear_encoder_maps_features_before_the_first_layer(digraph, layer):
    model, batch = network(layer=layer, encoder="linear"), batch_of(digraph)
    inner = network(3, layer=layer)
    inner.load_state_dict(
        {k: v for k, v in model.state_dict().items() if not k.startswith("encoder")}
    )
    weight, bias = model.encoder.weight, model.encoder.bias
    encoded = ew.Batch(batch.x @ weight.T + bias, batch.edges)
    assert_close(model(batch), inner(encoded))
    sparse = ew.Batch(ew.sparse_features(batch.x), batch.edges)
    assert_close(model(sparse), model(batch))


@pytest.mark.parametrize("head", ["linear", "mlp"])
@pytest.mark.parametrize("activation", ["elu", "relu", "gelu"])
def test_a_head_maps_what_the_blocks_give(digraph, head, activation):
    model, batch = network(head=head, activation=activation), batch_of(digraph)
    h = batch.x
    for block in model.blocks:
        h = PLAIN[activation](block.layer.propagate(h, batch.edges.prepared(block.layer)))
    assert h.size(1) == 6  # two channels of width three
    expected = model.head(h)
    if head == "mlp":
        first, _, _, second = model.head
        expected = relu(h @ first.weight.T + first.bias) @ second.weight.T + second.bias
    assert_close(model(batch), expected)
    assert_close(model.represent(batch), h)
    rows = torch.tensor([3, 1])
    assert_close(model(batch.with_rows(rows)), expected[rows])
    assert_close(model.represent(batch.with_rows(rows)), h[rows])


@pytest.mark.slow
@pytest.mark.parametrize("head", ["layer", "linear", "mlp"])
@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("residual", [False, True])
def test_a_deep_network_of_blocks_learns(digraph, head, norm, residual):
    torch.manual_seed(1)
    shape = {"head": head, "norm": norm, "residual": residual, "encoder": "linear"}
    model, batch = network(**shape, depth=3, normalize="row").train(), batch_of(digraph)
    y = torch.tensor([0, 1, 1, 0, 1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(batch), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
