"""Every variant of the paper is a setting, learns, and is what its equations say."""

import math
from dataclasses import replace

import pytest
import torch
import truth
from drawn import noise
from torch.nn.functional import cross_entropy, elu
from torch.testing import assert_close
from torch_geometric.nn import GATConv, GCNConv

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.kernels.pooling import plain_pool, pool

EVERY_VARIANT = pytest.mark.parametrize("variant", ew.VARIANTS)


@pytest.fixture
def riddle():
    """Ten nodes that look alike point at a red or a blue node; the class is which."""
    asks = torch.arange(10)
    kind = asks % 2
    x = torch.zeros(12, 3)
    x[:10, 0], x[10, 1], x[11, 2] = 1, 1, 1
    return x, torch.stack([asks, 10 + kind]), kind


def channels_for(architecture, edge_index):
    """Three channels of direction, or one without it, as the variant asks for."""
    to_channels = ew.directed_channels if architecture.directed else ew.undirected_channels
    return to_channels(edge_index)


@EVERY_VARIANT
def test_every_variant_learns_labels_that_hang_on_the_edges_alone(variant, riddle):
    x, edge_index, y = riddle
    architecture = replace(ew.VARIANTS[variant], hidden=8, dropout=0.0)
    edge_index, edge_attr = channels_for(architecture, edge_index)
    model = ew.NodeModel(3, 2, edge_attr.size(1), architecture)
    operators = model.operators(edge_index, edge_attr, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss = cross_entropy(model.propagate(x, operators)[:10], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    assert torch.equal(model.eval()(x, edge_index, edge_attr)[:10].argmax(1), y)
    blind = model(x, edge_index[:, :0], edge_attr[:0])[:10]
    assert_close(blind, blind[:1].expand(10, -1))  # without edges all ten are one


@EVERY_VARIANT
def test_every_variant_trains_with_dropout_and_one_seed_gives_the_same_bits(variant, riddle):
    x, edge_index, y = riddle
    architecture = replace(ew.VARIANTS[variant], hidden=8)
    edge_index, edge_attr = channels_for(architecture, edge_index)

    def run():
        torch.manual_seed(3)
        model = ew.NodeModel(3, 2, edge_attr.size(1), architecture)
        out = model(x, edge_index, edge_attr)
        cross_entropy(out[:10], y).backward()
        return [out, *(parameter.grad for parameter in model.parameters())]

    first, again = run(), run()
    assert all(torch.isfinite(tensor).all() for tensor in first)
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("adapt", [True, False])
def test_node_model_is_the_paper_s_layers_one_after_the_other(depth, adapt, digraph):
    edge_index, edge_attr, nodes = digraph
    architecture = ew.Architecture("attention", adapt=adapt, depth=depth, hidden=3)
    model = ew.NodeModel(4, 2, 2, architecture).double().eval()
    for bias in model.biases():
        torch.nn.init.normal_(bias)
    x = h = noise(nodes, 4)
    first = edges = truth.doubly_stochastic(
        truth.add_loops(truth.dense(edge_index.flip(0), edge_attr, nodes))
    )
    for level, layer in enumerate(model.layers):
        h, edges = truth.attention(
            h, edges if adapt else first, layer.weight, layer.attention, truth.doubly_stochastic
        )
        if level < depth - 1:
            h = elu(h + layer.bias)
        else:  # channels are averaged
            h = h.unflatten(1, (2, 2)).mean(dim=1) + layer.bias
    assert_close(model(x, edge_index, edge_attr), h, rtol=1e-9, atol=1e-11)


def test_convolutional_node_model_is_the_paper_s_layers_one_after_the_other(digraph):
    edge_index, edge_attr, nodes = digraph
    model = ew.NodeModel(4, 2, 2, ew.Architecture(hidden=3)).double().eval()
    x = noise(nodes, 4)
    edges = truth.doubly_stochastic(
        truth.add_loops(truth.dense(edge_index.flip(0), edge_attr, nodes))
    )
    hidden = elu(truth.conv(x, edges, model.layers[0].weight))
    expected = truth.conv(hidden, edges, model.layers[1].weight).unflatten(1, (2, 2)).mean(dim=1)
    assert_close(model(x, edge_index, edge_attr), expected, rtol=1e-9, atol=1e-11)


@pytest.fixture
def undirected():
    generator = torch.Generator().manual_seed(4)
    pairs = torch.randint(20, (2, 40), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    return torch.unique(torch.cat([pairs, pairs.flip(0)], dim=1), dim=1)


def test_the_gcn_variant_is_two_layers_of_gcn_conv(undirected):
    model = ew.NodeModel(5, 3, 1, ew.VARIANTS["GCN"]).eval()
    first, second = GCNConv(5, 64), GCNConv(64, 3)
    with torch.no_grad():
        for ours, theirs in zip(model.layers, (first, second), strict=True):
            theirs.lin.weight.copy_(ours.weight.T)
            theirs.bias.copy_(torch.nn.init.normal_(ours.bias))
    x = torch.randn(20, 5)
    expected = second(elu(first(x, undirected)), undirected)
    assert_close(model(x, undirected), expected, rtol=1e-5, atol=1e-5)


def test_the_gat_variant_is_two_layers_of_gat_conv(undirected):
    model = ew.NodeModel(5, 3, 1, ew.VARIANTS["GAT"]).eval()
    first, second = GATConv(5, 8, heads=8), GATConv(64, 3, heads=1)
    with torch.no_grad():
        for ours, theirs in zip(model.layers, (first, second), strict=True):
            theirs.lin.weight.copy_(ours.weight.T)
            theirs.att_dst.copy_(ours.attention[0].reshape(theirs.att_dst.shape))
            theirs.att_src.copy_(ours.attention[1].reshape(theirs.att_src.shape))
            theirs.bias.copy_(torch.nn.init.normal_(ours.bias))
    x = torch.randn(20, 5)
    expected = second(elu(first(x, undirected)), undirected)
    assert_close(model(x, undirected), expected, rtol=1e-5, atol=1e-5)


def test_sparse_features_give_what_dense_ones_give(digraph):
    edge_index, edge_attr, nodes = digraph
    x = noise(nodes, 6).clamp(min=0)
    for variant in ("EGNN(C)", "EGNN(A)"):
        model = ew.NodeModel(6, 2, 2, ew.VARIANTS[variant]).double()
        sparse = ew.sparse_features(x)
        model.train()
        assert torch.isfinite(model(sparse, edge_index, edge_attr)).all()
        model.eval()
        assert_close(model(sparse, edge_index, edge_attr), model(x, edge_index, edge_attr))


@pytest.mark.parametrize(
    ("how", "plain"), [("max", torch.amax), ("mean", torch.mean), ("sum", torch.sum)]
)
def test_pooling_is_a_loop_over_the_graphs(how, plain):
    x, batch = noise(7, 3) - 2, torch.tensor([0, 3, 0, 1, 3, 3, 0])
    rows = [plain(x[batch == g], dim=0) if (batch == g).any() else torch.zeros(3) for g in range(5)]
    assert_close(pool(x, batch, 5, how), torch.stack([row.double() for row in rows]))


def test_the_compiled_maximum_is_torchs_with_its_gradient_also_among_equals():
    batch = torch.tensor([2, 0, 2, 2, 0, 5])
    # None is zero: there torch counts the empty row among the equals.
    x = torch.randint(1, 3, (6, 130), generator=torch.Generator().manual_seed(0)).double()
    readout = noise(6, 130)
    found = []
    for way in (pool, plain_pool):
        leaf = x.clone().requires_grad_()
        out = way(leaf, batch, 6, "max")
        found.append((out.detach(), *torch.autograd.grad((out * readout).sum(), leaf)))
    for one, other in zip(*found, strict=True):
        assert_close(one, other)


def test_a_value_that_is_no_number_is_not_pooled_away():
    x = torch.tensor([[1.0], [math.nan], [2.0], [3.0]])
    out = pool(x, torch.tensor([0, 0, 0, 1]), 2, "max")
    assert out.isnan().tolist() == [[True], [False]]


@pytest.mark.parametrize("pooling", ["max", "mean", "sum"])
@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_a_batch_of_graphs_gives_what_they_give_one_by_one(pooling, layer, digraph):
    edge_index, edge_attr, nodes = digraph
    architecture = ew.Architecture(layer, hidden=4, dropout=0.0)
    model = ew.GraphModel(3, 2, 2, architecture, pooling=pooling).double().eval()
    x = noise(2 * nodes, 3)
    batch_index = torch.cat([edge_index, edge_index.flip(0) + nodes], dim=1)
    batch = torch.arange(2).repeat_interleave(nodes)
    together = model(x, batch_index, edge_attr.repeat(2, 1), batch)
    one_by_one = [
        model(x[:nodes], edge_index, edge_attr),
        model(x[nodes:], edge_index.flip(0), edge_attr),
    ]
    assert_close(together, torch.cat(one_by_one))
    hidden = elu(model.embed(x[:nodes], model.operators(*digraph)))
    pooled = {"max": hidden.amax(0), "mean": hidden.mean(0), "sum": hidden.sum(0)}[pooling]
    assert_close(together[0], model.head(pooled))
    assert model(x, batch_index, edge_attr.repeat(2, 1), batch, num_graphs=4).shape == (4, 2)


def test_a_graph_model_can_overfit_a_label_that_hangs_on_the_bonds():
    x = torch.ones(12, 2)
    edge_index = torch.tensor([[0, 1, 3, 4, 6, 7, 9, 10], [1, 2, 4, 5, 7, 8, 10, 11]])
    single, double = torch.eye(2)
    edge_attr = torch.stack([single, single, double, double, single, double, single, single])
    edge_index, edge_attr = torch.cat([edge_index, edge_index.flip(0)], 1), edge_attr.repeat(2, 1)
    batch, y = torch.arange(4).repeat_interleave(3), torch.tensor([[0.0], [2.0], [1.0], [0.0]])
    model = ew.GraphModel(2, 1, 2, ew.Architecture("conv", "symmetric", hidden=8, dropout=0.0))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        loss = (model(x, edge_index, edge_attr, batch) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.02


@EVERY_VARIANT
def test_weights_and_biases_are_all_parameters_each_once(variant):
    model = ew.NodeModel(3, 2, 3, ew.VARIANTS[variant])
    weights, biases = set(model.weights()), set(model.biases())
    assert not weights & biases
    assert weights | biases == set(model.parameters())
    assert all(bias.dim() == 1 for bias in biases)
    assert all(weight.dim() == 2 for weight in weights)
    assert len(biases) == 2


def test_operators_are_built_once_and_shared_by_layers_alike(digraph):
    model = ew.NodeModel(3, 2, 2, ew.VARIANTS["EGNN(C)"])
    first, second = model.operators(*digraph)
    assert first is second


@pytest.mark.parametrize("model", [ew.NodeModel, ew.GraphModel])
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"layer": "pool"}, r"layer='pool' is not known; choose conv or attention"),
        ({"depth": 0}, r"depth=0 must be at least 1"),
        ({"heads": 2}, r"heads belong to attention"),
        ({"layer": "attention", "heads": 2}, r"set heads=1 or adapt=False"),
        ({"normalize": "softmax"}, r"normalize='softmax' is not known"),
        ({"layer": "attention", "dropout": 1.5}, r"dropout=1.5 must be at least 0 and below 1"),
        ({"layer": "conv", "dropout": 1.5}, r"dropout=1.5 must be at least 0 and below 1"),
        ({"hidden": 0}, r"=0 must be at least 1"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(model, settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        model(3, 2, 1, ew.Architecture(**settings))


def test_an_unknown_pooling_is_refused_in_a_sentence():
    with pytest.raises(EdgewiseError, match=r"pooling='median' is not known; choose max"):
        ew.GraphModel(3, 2, pooling="median")


@pytest.mark.parametrize(
    ("batch", "num_graphs", "sentence"),
    [
        (torch.zeros(3).long(), None, r"batch has \[3\] numbers for 5 nodes"),
        (torch.tensor([0, 0, 1, 1, 2]), 2, r"batch names graph 2.*num_graphs=2"),
        (torch.tensor([0, 0, 1, 1, -1]), None, r"batch names graph -1"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_in_a_sentence(batch, num_graphs, sentence, digraph):
    edge_index, edge_attr, nodes = digraph
    model = ew.GraphModel(3, 2, 2)
    with pytest.raises(EdgewiseError, match=sentence):
        model(torch.ones(nodes, 3), edge_index, edge_attr, batch, num_graphs)


def test_the_nine_variants_are_those_of_the_paper_s_table():
    assert list(ew.VARIANTS) == [
        "GCN",
        "GAT",
        "EGNN(C)-M",
        "EGNN(C)-D",
        "EGNN(C)",
        "EGNN(A)-D-M",
        "EGNN(A)-A-M",
        "EGNN(A)-A-D",
        "EGNN(A)",
    ]
    for name, architecture in ew.VARIANTS.items():
        assert (architecture.layer == "attention") == (name == "GAT" or "(A)" in name)
        assert architecture.directed == (name.startswith("EGNN") and "-M" not in name)
        if name.startswith("EGNN"):
            assert (architecture.normalize == "doubly_stochastic") == ("-D" not in name)
        if name.startswith("EGNN(A)"):
            assert architecture.adapt == ("-A" not in name)
