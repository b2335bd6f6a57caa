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
from edgewise.kernels.pooling import attention_pool, plain_pool, pool
from edgewise.nn.readouts import GraphReadout

EVERY_VARIANT = pytest.mark.parametrize("variant", ew.VARIANTS)


@pytest.fixture
def riddle():
    """Ten nodes that look alike point at a red or a blue node; the class is which."""
    asks = torch.arange(10)
    kind = asks % 2
    x = torch.zeros(12, 3)
    x[:10, 0], x[10, 1], x[11, 2] = 1, 1, 1
    return x, torch.stack([asks, 10 + kind]), kind


def given(x, edges, rows=None, **more):
    """A batch of the edges and channels of a fixture."""
    return ew.Batch.of(x, *edges[:2], rows=rows, **more)


def layers(model):
    return [block.layer for block in model.blocks]


@EVERY_VARIANT
def test_every_variant_learns_labels_that_hang_on_the_edges_alone(variant, riddle):
    x, edge_index, y = riddle
    model = ew.ChannelNetwork(3, 2, 1, replace(ew.VARIANTS[variant], hidden=8, dropout=0.0))
    batch = ew.Batch.of(x, edge_index, rows=torch.arange(10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss = cross_entropy(model(batch), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    assert torch.equal(model.eval()(batch).argmax(1), y)
    blind = model(ew.Batch.of(x, edge_index[:, :0]))[:10]
    assert_close(blind, blind[:1].expand(10, -1))  # without edges all ten are one


@EVERY_VARIANT
def test_every_variant_trains_with_dropout_and_one_seed_gives_the_same_bits(variant, riddle):
    x, edge_index, y = riddle

    def run():
        torch.manual_seed(3)
        model = ew.ChannelNetwork(3, 2, 1, replace(ew.VARIANTS[variant], hidden=8))
        out = model(ew.Batch.of(x, edge_index))
        cross_entropy(out[:10], y).backward()
        return [out, *(parameter.grad for parameter in model.parameters())]

    first, again = run(), run()
    assert all(torch.isfinite(tensor).all() for tensor in first)
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("adapt", [True, False])
def test_a_network_of_nodes_is_the_paper_s_layers_one_after_the_other(depth, adapt, digraph):
    edge_index, edge_attr, nodes = digraph
    settings = ew.ModelSettings("attention", adapt=adapt, depth=depth, hidden=3)
    model = ew.ChannelNetwork(4, 2, 2, settings, direction="as_given").double().eval()
    for bias in model.biases():
        torch.nn.init.normal_(bias)
    x = h = noise(nodes, 4)
    first = edges = truth.doubly_stochastic(
        truth.add_loops(truth.dense(edge_index.flip(0), edge_attr, nodes))
    )
    for level, layer in enumerate(layers(model)):
        h, edges = truth.attention(
            h, edges if adapt else first, layer.weight, layer.attention, truth.doubly_stochastic
        )
        if level < depth - 1:
            h = elu(h + layer.bias)
        else:  # channels are averaged
            h = h.unflatten(1, (2, 2)).mean(dim=1) + layer.bias
    assert_close(model(given(x, digraph)), h, rtol=1e-9, atol=1e-11)


def test_a_convolutional_network_of_nodes_is_the_paper_s_layers_one_after_the_other(digraph):
    edge_index, edge_attr, nodes = digraph
    settings = ew.ModelSettings(hidden=3)
    model = ew.ChannelNetwork(4, 2, 2, settings, direction="as_given").double().eval()
    x = noise(nodes, 4)
    edges = truth.doubly_stochastic(
        truth.add_loops(truth.dense(edge_index.flip(0), edge_attr, nodes))
    )
    first, second = layers(model)
    hidden = elu(truth.conv(x, edges, first.weight))
    expected = truth.conv(hidden, edges, second.weight).unflatten(1, (2, 2)).mean(dim=1)
    assert_close(model(given(x, digraph)), expected, rtol=1e-9, atol=1e-11)


@pytest.fixture
def undirected():
    generator = torch.Generator().manual_seed(4)
    pairs = torch.randint(20, (2, 40), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    return torch.unique(torch.cat([pairs, pairs.flip(0)], dim=1), dim=1)


def test_the_gcn_variant_is_two_layers_of_gcn_conv(undirected):
    model = ew.ChannelNetwork(5, 3, 1, ew.VARIANTS["GCN"], direction="as_given").eval()
    first, second = GCNConv(5, 64), GCNConv(64, 3)
    with torch.no_grad():
        for ours, theirs in zip(layers(model), (first, second), strict=True):
            theirs.lin.weight.copy_(ours.weight.T)
            theirs.bias.copy_(torch.nn.init.normal_(ours.bias))
    x = torch.randn(20, 5)
    expected = second(elu(first(x, undirected)), undirected)
    assert_close(model(ew.Batch.of(x, undirected)), expected, rtol=1e-5, atol=1e-5)


def test_the_gat_variant_is_two_layers_of_gat_conv(undirected):
    model = ew.ChannelNetwork(5, 3, 1, ew.VARIANTS["GAT"], direction="as_given").eval()
    first, second = GATConv(5, 8, heads=8), GATConv(64, 3, heads=1)
    with torch.no_grad():
        for ours, theirs in zip(layers(model), (first, second), strict=True):
            theirs.lin.weight.copy_(ours.weight.T)
            theirs.att_dst.copy_(ours.attention[0].reshape(theirs.att_dst.shape))
            theirs.att_src.copy_(ours.attention[1].reshape(theirs.att_src.shape))
            theirs.bias.copy_(torch.nn.init.normal_(ours.bias))
    x = torch.randn(20, 5)
    expected = second(elu(first(x, undirected)), undirected)
    assert_close(model(ew.Batch.of(x, undirected)), expected, rtol=1e-5, atol=1e-5)


def test_sparse_features_give_what_dense_ones_give(digraph):
    x = noise(digraph[2], 6).clamp(min=0)
    for variant in ("EGNN(C)", "EGNN(A)"):
        model = ew.ChannelNetwork(6, 2, 2, ew.VARIANTS[variant]).double()
        sparse = ew.sparse_features(x)
        model.train()
        assert torch.isfinite(model(given(sparse, digraph))).all()
        model.eval()
        assert_close(model(given(sparse, digraph)), model(given(x, digraph)))


@pytest.mark.parametrize(
    ("how", "plain"), [("max", torch.amax), ("mean", torch.mean), ("sum", torch.sum)]
)
def test_pooling_is_a_loop_over_the_graphs(how, plain):
    x, batch = noise(7, 3) - 2, torch.tensor([0, 3, 0, 1, 3, 3, 0])
    rows = [plain(x[batch == g], dim=0) if (batch == g).any() else torch.zeros(3) for g in range(5)]
    assert_close(pool(x, batch, 5, how), torch.stack([row.double() for row in rows]))


def test_attention_pooling_is_a_softmax_over_the_nodes_of_each_graph():
    x, batch = noise(7, 3), torch.tensor([0, 3, 0, 1, 3, 3, 0])
    score = 400 * noise(7, 1)  # whose exponential is out of range
    out = attention_pool(x, score, batch, 5)
    for graph in range(5):
        rows = batch == graph
        assert_close(out[graph], (score[rows].softmax(dim=0) * x[rows]).sum(0))
    both = (x.requires_grad_(), noise(7, 1).requires_grad_())
    assert torch.autograd.gradcheck(lambda x, s: attention_pool(x, s, batch, 5), both)


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


def of_graphs(in_channels, out_channels, edge_channels, pooling="max", **settings):
    return ew.ChannelNetwork(
        in_channels,
        out_channels,
        edge_channels,
        ew.ModelSettings(head="linear", dropout=0.0, **settings),
        readout=GraphReadout(pooling),
        direction="as_given",
    )


@pytest.mark.parametrize("pooling", ["max", "mean", "sum", "mean+max+sum+attention"])
@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_a_batch_of_graphs_gives_what_they_give_one_by_one(pooling, layer, digraph):
    edge_index, edge_attr, nodes = digraph
    model = of_graphs(3, 2, 2, pooling, layer=layer, hidden=4).double().eval()
    x = noise(2 * nodes, 3)
    batch_index = torch.cat([edge_index, edge_index.flip(0) + nodes], dim=1)
    graph, edges = torch.arange(2).repeat_interleave(nodes), (batch_index, edge_attr.repeat(2, 1))
    together = model(given(x, edges, graph=graph))
    one_by_one = [
        model(given(x[:nodes], digraph)),
        model(ew.Batch.of(x[nodes:], edge_index.flip(0), edge_attr)),
    ]
    assert_close(together, torch.cat(one_by_one))
    first, second = model.blocks
    single = given(x[:nodes], digraph)
    hidden, adapted = first(single.x, single.edges.prepared(first.layer))
    adapted = single.edges.prepared(second.layer) if adapted is None else adapted
    hidden = elu(second.layer.propagate(hidden, adapted))
    pools = {"max": hidden.amax(0), "mean": hidden.mean(0), "sum": hidden.sum(0)}
    for attention in model.readout.learnt.values():
        weight = (hidden @ attention.score.weight.t()).softmax(dim=0)
        pools["attention"] = (weight * hidden).sum(0)
    pooled = torch.cat([pools[part] for part in pooling.split("+")])
    assert_close(together[0], model.head(pooled))
    assert_close(model.represent(single)[0], pooled)
    assert model(given(x, edges, graph=graph, num_graphs=4)).shape == (4, 2)
    assert_close(model(given(x, edges, graph=graph, rows=torch.tensor([1]))), together[1:])


def test_a_network_of_graphs_can_overfit_a_label_that_hangs_on_the_bonds():
    x = torch.ones(12, 2)
    edge_index = torch.tensor([[0, 1, 3, 4, 6, 7, 9, 10], [1, 2, 4, 5, 7, 8, 10, 11]])
    single, double = torch.eye(2)
    edge_attr = torch.stack([single, single, double, double, single, double, single, single])
    edge_index, edge_attr = torch.cat([edge_index, edge_index.flip(0)], 1), edge_attr.repeat(2, 1)
    graph, y = torch.arange(4).repeat_interleave(3), torch.tensor([[0.0], [2.0], [1.0], [0.0]])
    model = of_graphs(2, 1, 2, normalize="symmetric", hidden=8)
    batch = ew.Batch.of(x, edge_index, edge_attr, graph)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        loss = (model(batch) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.02


@EVERY_VARIANT
def test_weights_and_biases_are_all_parameters_each_once(variant):
    model = ew.ChannelNetwork(3, 2, 1, ew.VARIANTS[variant])
    weights, biases = set(model.weights()), set(model.biases())
    assert not weights & biases
    assert weights | biases == set(model.parameters())
    assert all(bias.dim() == 1 for bias in biases)
    assert all(weight.dim() == 2 for weight in weights)
    assert len(biases) == 2


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_the_parameters_of_norms_are_not_regularised(norm):
    model = ew.ChannelNetwork(3, 2, 1, ew.ModelSettings(norm=norm, encoder="linear", head="mlp"))
    weights, biases = set(model.weights()), set(model.biases())
    assert not weights & biases
    assert weights | biases == set(model.parameters())
    assert set(model.blocks[0].norm.parameters()) <= biases
    assert all(weight.dim() == 2 for weight in weights)


@pytest.mark.parametrize("readout", [None, GraphReadout()])
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"layer": "pool"}, r"layer = 'pool' is unknown; choose one of conv, attention"),
        ({"depth": 0}, r"depth = 0 is out of range; it must be at least 1"),
        ({"heads": 2}, r"heads = 2, but a convolution has none; set layer = attention"),
        ({"layer": "attention", "heads": 2}, r"set heads = 1 or adapt = false"),
        ({"normalize": "softmax"}, r"normalize = 'softmax' is unknown"),
        ({"layer": "attention", "normalize": "gcn"}, r"normalize='gcn' is for convolution"),
        ({"layer": "attention", "dropout": 1.5}, r"dropout = 1.5 is out of range.*below 1"),
        ({"layer": "conv", "dropout": 1.5}, r"dropout = 1.5 is out of range.*below 1"),
        ({"hidden": 0}, r"hidden = 0 is out of range; it must be at least 1"),
        ({"pooling": "median"}, r"pooling = 'median' is unknown; choose one of max"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(readout, settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        ew.ChannelNetwork(3, 2, 1, ew.ModelSettings(head="linear", **settings), readout=readout)


def test_an_unknown_pooling_is_refused_in_a_sentence():
    with pytest.raises(EdgewiseError, match=r"pooling = 'median' is unknown; choose one of max"):
        GraphReadout("median")


def test_a_network_of_graphs_needs_a_head():
    with pytest.raises(EdgewiseError, match=r"outputs for nodes, not for graphs"):
        ew.ChannelNetwork(3, 2, 1, ew.ModelSettings(), readout=GraphReadout())


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
    for name, settings in ew.VARIANTS.items():
        assert (settings.layer == "attention") == (name == "GAT" or "(A)" in name)
        assert settings.directed == (name.startswith("EGNN") and "-M" not in name)
        if name.startswith("EGNN"):
            assert (settings.normalize == "doubly_stochastic") == ("-D" not in name)
        if name.startswith("EGNN(A)"):
            assert settings.adapt == ("-A" not in name)
