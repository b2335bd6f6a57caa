"""The layers say what the paper says, and what PyG says where they meet."""

import pytest
import torch
import truth
from drawn import graphs, noise
from hypothesis import given
from torch.testing import assert_close
from torch_geometric.nn import GATConv, GCNConv

import edgewise as ew
from edgewise.core.errors import EdgewiseError

CLOSE = {"rtol": 1e-9, "atol": 1e-11}
CONV = pytest.mark.parametrize("normalize", ["doubly_stochastic", "symmetric", "row", "gcn"])
ATTENTION = pytest.mark.parametrize("normalize", ["doubly_stochastic", "symmetric", "row"])
FLOW = pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
EVERY_LAYER = pytest.mark.parametrize(
    ("layer", "normalize"),
    [
        *((ew.ChannelConv, name) for name in ("doubly_stochastic", "symmetric", "row", "gcn")),
        *((ew.ChannelAttention, name) for name in ("doubly_stochastic", "symmetric", "row")),
    ],
)


def true_edges(graph, flow, normalize):
    """Raw edges as the paper's matrix: the row is the node that gathers."""
    edge_index, edge_attr, nodes = graph
    if flow == "source_to_target":
        edge_index = edge_index.flip(0)
    raw = truth.add_loops(truth.dense(edge_index, edge_attr, nodes))
    return truth.NORMALIZATIONS[normalize](raw)


@CONV
@FLOW
@given(graph=graphs())
def test_convolution_is_the_paper_s(normalize, flow, graph):
    torch.manual_seed(1)
    layer = ew.ChannelConv(4, 3, graph.edge_attr.size(1), normalize, flow=flow).double()
    torch.nn.init.normal_(layer.bias)
    x = noise(graph.num_nodes, 4)
    expected = truth.conv(x, true_edges(graph, flow, normalize), layer.weight) + layer.bias
    assert_close(layer(x, *graph[:2]), expected, **CLOSE)


@pytest.mark.slow
@ATTENTION
@FLOW
@given(graph=graphs())
def test_attention_is_the_paper_s_through_three_layers_of_adaptation(normalize, flow, graph):
    torch.manual_seed(1)
    channels = graph.edge_attr.size(1)
    layers = [
        ew.ChannelAttention(width, 2, channels, normalize, flow=flow).double()
        for width in (4, 2 * channels, 2 * channels)
    ]
    h, true_h = noise(graph.num_nodes, 4), noise(graph.num_nodes, 4)
    edges = layers[0].operator(*graph)
    expected = true_edges(graph, flow, normalize)
    for layer in layers:
        alone = layer.propagate(h, edges)
        h, edges = layer.adapt(h, edges)
        true_h, expected = truth.attention(
            true_h, expected, layer.weight, layer.attention, truth.NORMALIZATIONS[normalize]
        )
        assert_close(h, true_h, **CLOSE)
        assert_close(alone, true_h, **CLOSE)
        assert_close(edges.to_dense(), expected, **CLOSE)


@ATTENTION
@pytest.mark.parametrize("concat", [True, False])
def test_heads_are_attentions_side_by_side(normalize, concat, digraph):
    edge_index, edge_attr, nodes = digraph
    layer = ew.ChannelAttention(4, 3, 2, normalize, concat, heads=3, bias=False).double()
    x = noise(nodes, 4)
    edges = true_edges(digraph, "source_to_target", normalize)
    heads = [
        truth.attention(x, edges, weight, attention, truth.NORMALIZATIONS[normalize])[0]
        for weight, attention in zip(
            layer.weight.split(3, dim=1), layer.attention.split(3, dim=1), strict=True
        )
    ]
    expected = torch.cat(heads, dim=1)
    if not concat:
        expected = expected.unflatten(1, (6, 3)).mean(dim=1)
    assert_close(layer(x, edge_index, edge_attr), expected, **CLOSE)


def test_direction_as_channels_is_the_paper_s_triple(digraph):
    edge_index, edge_attr, nodes = digraph
    layer = ew.ChannelConv(4, 3, 6, flow="target_to_source", bias=False).double()
    x = noise(nodes, 4)
    raw = truth.add_loops(truth.directed(truth.dense(*digraph)))
    expected = truth.conv(x, truth.doubly_stochastic(raw), layer.weight)
    assert_close(layer(x, *ew.directed_channels(edge_index, edge_attr)), expected, **CLOSE)


@EVERY_LAYER
def test_gradients_of_a_layer_equal_those_of_the_paper_s_equations(layer, normalize, digraph):
    edge_index, edge_attr, nodes = digraph
    layer = layer(3, 2, 2, normalize).double()
    value, x = edge_attr.clone().requires_grad_(), noise(nodes, 3).requires_grad_()
    leaves = [value, x, *layer.parameters()]
    edges = true_edges((edge_index, value, nodes), "source_to_target", normalize)
    if isinstance(layer, ew.ChannelConv):
        expected = truth.conv(x, edges, layer.weight)
    else:
        expected, _ = truth.attention(
            x, edges, layer.weight, layer.attention, truth.NORMALIZATIONS[normalize]
        )
    out = layer(x, edge_index, value)
    readout = noise(*out.shape, seed=2)
    for mine, true in zip(
        torch.autograd.grad((out * readout).sum(), leaves),
        torch.autograd.grad(((expected + layer.bias) * readout).sum(), leaves),
        strict=True,
    ):
        assert_close(mine, true, **CLOSE)


def random_digraph(nodes=30, edges=90, loops=False, undirected=False):
    generator = torch.Generator().manual_seed(4)
    pairs = torch.randint(nodes, (2, edges), generator=generator)
    pairs = pairs[:, pairs[0] != pairs[1]]
    if undirected:
        pairs = torch.cat([pairs, pairs.flip(0)], dim=1)
    if loops:
        pairs = torch.cat([pairs, torch.tensor([[0, 5, 7], [0, 5, 7]])], dim=1)
    return torch.unique(pairs, dim=1)


def same_weights(ours, theirs):
    """Give one of our layers the parameters of a PyG layer."""
    torch.nn.init.normal_(theirs.bias)
    with torch.no_grad():
        ours.weight.copy_(theirs.lin.weight.T)
        ours.bias.copy_(theirs.bias)
        if isinstance(theirs, GATConv):
            ours.attention.copy_(torch.stack([theirs.att_dst.flatten(), theirs.att_src.flatten()]))


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_normalisation_is_gcn_conv_on_directed_graphs(loops, weighted):
    edge_index = random_digraph(loops=loops)
    weight = 0.1 + torch.rand(edge_index.size(1)) if weighted else None
    theirs, ours = GCNConv(6, 4), ew.ChannelConv(6, 4, normalize="gcn")
    same_weights(ours, theirs)
    x = torch.randn(30, 6)
    assert_close(ours(x, edge_index, weight), theirs(x, edge_index, weight), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_symmetric_normalisation_is_gcn_conv_on_undirected_graphs(loops, weighted):
    edge_index = random_digraph(loops=loops, undirected=True)
    weight = 0.1 + edge_index.double().prod(0).sin().abs().float() if weighted else None
    theirs, ours = GCNConv(6, 4), ew.ChannelConv(6, 4, normalize="symmetric")
    same_weights(ours, theirs)
    x = torch.randn(30, 6)
    assert_close(ours(x, edge_index, weight), theirs(x, edge_index, weight), rtol=1e-5, atol=1e-5)


def test_symmetric_and_gcn_normalisation_differ_where_what_comes_in_is_not_what_goes_out():
    """Eq. 4 divides the edge into 1 by the sums over its row and its column, GCNConv does not."""
    edge_index = torch.tensor([[0, 0], [1, 2]])  # 0 points at 1 and 2; loops are added
    x = torch.eye(3)
    ours, gcn = ew.ChannelConv(3, 3, normalize="symmetric"), ew.ChannelConv(3, 3, normalize="gcn")
    theirs = GCNConv(3, 3)
    for layer in (ours, gcn):
        with torch.no_grad():
            layer.weight.copy_(torch.eye(3))
    with torch.no_grad():
        theirs.lin.weight.copy_(torch.eye(3))
    # Node 1 receives 2 in all (row), node 0 gives 3 in all (column) and receives 1 (its loop).
    assert ours(x, edge_index)[1, 0].item() == pytest.approx(1 / (2 * 3) ** 0.5)
    assert gcn(x, edge_index)[1, 0].item() == pytest.approx(1 / (2 * 1) ** 0.5)
    assert theirs(x, edge_index)[1, 0].item() == pytest.approx(1 / (2 * 1) ** 0.5)


@pytest.mark.parametrize("heads", [1, 8])
@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("loops", [False, True])
def test_row_attention_is_gat_conv_on_directed_graphs(heads, concat, loops):
    edge_index = random_digraph(loops=loops)
    theirs = GATConv(6, 5, heads=heads, concat=concat)
    ours = ew.ChannelAttention(6, 5, normalize="row", concat=concat, heads=heads)
    same_weights(ours, theirs)
    x = torch.randn(30, 6)
    assert_close(ours(x, edge_index), theirs(x, edge_index), rtol=1e-5, atol=1e-5)


@EVERY_LAYER
def test_relabelling_the_nodes_permutes_the_output(layer, normalize, digraph):
    edge_index, edge_attr, nodes = digraph
    layer = layer(4, 3, 2, normalize).double()
    x, order = noise(nodes, 4), torch.tensor([3, 0, 4, 1, 2])
    new_name = torch.argsort(order)
    out = layer(x[order], new_name[edge_index], edge_attr)
    assert_close(out, layer(x, edge_index, edge_attr)[order], **CLOSE)
    assert (out - layer(x, edge_index, edge_attr)).abs().max() > 1e-3


@EVERY_LAYER
def test_a_batch_gives_what_its_graphs_give_one_by_one(layer, normalize, digraph):
    edge_index, edge_attr, nodes = digraph
    layer = layer(4, 3, 2, normalize).double()
    x = noise(2 * nodes + 1, 4)
    batch_index = torch.cat([edge_index, edge_index.flip(0) + nodes], dim=1)
    together = layer(x, batch_index, edge_attr.repeat(2, 1))
    one_by_one = [
        layer(x[:nodes], edge_index, edge_attr),
        layer(x[nodes:-1], edge_index.flip(0), edge_attr),
        layer(x[-1:], edge_index[:, :0], edge_attr[:0]),
    ]
    assert_close(together, torch.cat(one_by_one), **CLOSE)


@ATTENTION
@pytest.mark.parametrize("adapt", [False, True])
def test_one_seed_gives_the_same_bits_twice_and_another_seed_does_not(normalize, adapt):
    edge_index = random_digraph()

    def run(seed):
        torch.manual_seed(seed)
        layer = ew.ChannelAttention(6, 4, normalize=normalize, dropout=0.5)
        x = torch.randn(30, 6, requires_grad=True)
        out = layer(x, edge_index, return_edges=adapt)
        out = out[0] if adapt else out
        out.pow(2).sum().backward()
        return out, x.grad, layer.weight.grad, layer.attention.grad

    first, again, other = run(0), run(0), run(1)
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])


def test_dropout_acts_in_training_only(digraph):
    edge_index, edge_attr, nodes = digraph
    layer = ew.ChannelAttention(4, 3, 2, dropout=0.5)
    x = torch.randn(nodes, 4)
    assert not torch.equal(layer(x, edge_index, edge_attr), layer(x, edge_index, edge_attr))
    layer.eval()
    assert torch.equal(layer(x, edge_index, edge_attr), layer(x, edge_index, edge_attr))


@EVERY_LAYER
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_both_precisions_work_on_every_small_graph(layer, normalize, dtype):
    layer = layer(4, 3, 2, normalize).to(dtype)
    no_edges = torch.empty(2, 0, dtype=torch.long), torch.empty(0, 2)
    one_edge = torch.tensor([[0], [1]]), torch.tensor([[1.0, 0.0]])  # channel 1 is empty
    for nodes, (edge_index, edge_attr) in [
        (0, no_edges),
        (1, no_edges),
        (5, no_edges),
        (2, one_edge),
    ]:
        x = torch.randn(nodes, 4, dtype=dtype, requires_grad=True)
        out = layer(x, edge_index, edge_attr)
        assert out.shape == (nodes, 6)
        assert out.dtype == dtype
        out.sum().backward()
        assert torch.isfinite(x.grad).all()
        if edge_index.size(1) == 0:  # every node keeps to itself
            assert_close(out, torch.cat([x @ layer.weight] * 2, dim=1))


@EVERY_LAYER
def test_an_empty_channel_leaves_every_node_to_itself(layer, normalize, digraph):
    edge_index, edge_attr, nodes = digraph
    edge_attr[:, 1] = 0
    layer = layer(4, 3, 2, normalize).double()
    x = noise(nodes, 4)
    assert_close(layer(x, edge_index, edge_attr)[:, 3:], x @ layer.weight)


@EVERY_LAYER
def test_plain_kernels_give_the_same_layer(layer, normalize, digraph):
    edge_index, edge_attr, nodes = digraph
    layer = layer(4, 3, 2, normalize).double()
    x = noise(nodes, 4)
    compiled = layer(x, edge_index, edge_attr)
    with ew.plain_kernels():
        assert_close(layer(x, edge_index, edge_attr), compiled, **CLOSE)


@EVERY_LAYER
def test_sparse_features_go_through_a_layer_as_dense_ones_do(layer, normalize, digraph):
    edge_index, edge_attr, nodes = digraph
    layer = layer(4, 3, 2, normalize).double()
    x = noise(nodes, 4).clamp(min=0)
    sparse = ew.sparse_features(x)
    assert_close(layer(sparse, edge_index, edge_attr), layer(x, edge_index, edge_attr), **CLOSE)


@EVERY_LAYER
def test_averaged_channels_are_the_mean_of_concatenated_ones(layer, normalize, digraph):
    edge_index, edge_attr, nodes = digraph
    side_by_side = layer(4, 3, 2, normalize, True).double()
    averaged = layer(4, 3, 2, normalize, False).double()
    weights = {k: v for k, v in side_by_side.state_dict().items() if k != "bias"}
    averaged.load_state_dict(weights, strict=False)
    x = noise(nodes, 4)
    out = side_by_side(x, edge_index, edge_attr)
    assert_close(averaged(x, edge_index, edge_attr), (out[:, :3] + out[:, 3:]) / 2, **CLOSE)


def test_a_layer_changes_none_of_its_arguments(digraph):
    edge_index, edge_attr, nodes = digraph
    before = edge_index.clone(), edge_attr.clone()
    x = noise(nodes, 4)
    ew.ChannelAttention(4, 3, 2).double()(x, edge_index, edge_attr, return_edges=True)
    assert torch.equal(edge_index, before[0])
    assert torch.equal(edge_attr, before[1])
    assert torch.equal(x, noise(nodes, 4))


GOOD_EDGES = torch.tensor([[0, 1], [1, 2]])


@EVERY_LAYER
@pytest.mark.parametrize(
    ("x", "edge_index", "edge_attr", "sentence"),
    [
        (torch.ones(3, 5), GOOD_EDGES, torch.ones(2, 2), r"x has shape \[3, 5\].*in_channels=4"),
        (torch.ones(3), GOOD_EDGES, torch.ones(2, 2), r"x has shape \[3\].*in_channels=4"),
        (torch.ones(3, 4).long(), GOOD_EDGES, torch.ones(2, 2), r"x is int64.*float32"),
        (torch.ones(3, 4).double(), GOOD_EDGES, torch.ones(2, 2), r"x is float64.*float32"),
        (
            torch.ones(3, 4),
            torch.zeros(5, 2).long(),
            None,
            r"expected \[2, edges\]; .*edge_index.T",
        ),
        (
            torch.ones(3, 4),
            GOOD_EDGES[:, [0, 1, 0]],
            None,
            r"edges 0 and 2 both join nodes \(0, 1\)",
        ),
        (torch.ones(3, 4), GOOD_EDGES[0], None, r"edge_index is int64\[2\], expected \[2, edges\]"),
        (torch.ones(3, 4), GOOD_EDGES.float(), None, r"expected integers"),
        (torch.ones(2, 4), GOOD_EDGES, torch.ones(2, 2), r"edge 1 joins nodes \(1, 2\)"),
        (torch.ones(3, 4), GOOD_EDGES, torch.ones(2, 3), r"3 channel\(s\).*edge_channels=2"),
        (torch.ones(3, 4), GOOD_EDGES, None, r"1 channel\(s\).*edge_channels=2"),
        (torch.ones(3, 4), GOOD_EDGES, torch.ones(3, 2), r"expected .* \[2 edges, channels\]"),
        (torch.ones(3, 4), GOOD_EDGES, torch.ones(2, 2, 1), r"expected .* \[2 edges, channels\]"),
        (torch.ones(3, 4), GOOD_EDGES, -torch.ones(2, 2), r"negative value -1 .*signed_channels"),
        (torch.ones(3, 4), GOOD_EDGES, torch.full((2, 2), torch.nan), r"edge 0 has the value nan"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(layer, normalize, x, edge_index, edge_attr, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        layer(4, 3, 2, normalize)(x, edge_index, edge_attr)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"normalize": "softmax"}, r"normalize='softmax' is not known; choose one of doubly_sto"),
        ({"flow": "both"}, r"flow='both' is not known; choose source_to_target or"),
        ({"out_channels": 0}, r"out_channels=0 must be at least 1"),
        ({"edge_channels": 0}, r"edge_channels=0 must be at least 1"),
        ({"in_channels": -1}, r"in_channels=-1 must be at least 1"),
    ],
)
@pytest.mark.parametrize("layer", [ew.ChannelConv, ew.ChannelAttention])
def test_wrong_settings_are_refused_in_a_sentence(layer, settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        layer(**{"in_channels": 4, "out_channels": 3, **settings})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"normalize": "gcn"}, r"normalize='gcn' is for convolution"),
        ({"dropout": 1.0}, r"dropout=1.0 must be at least 0 and below 1"),
        ({"heads": 0}, r"heads=0 must be at least 1"),
    ],
)
def test_wrong_settings_of_attention_are_refused_in_a_sentence(settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        ew.ChannelAttention(4, 3, **settings)


def test_an_operator_of_another_graph_is_refused(digraph):
    layer = ew.ChannelConv(4, 3, 2).double()
    operator = layer.operator(*digraph)
    with pytest.raises(EdgewiseError, match=r"join 5 nodes in 2 channel\(s\), but there are 6"):
        layer.propagate(noise(6, 4), operator)
    with pytest.raises(EdgewiseError, match=r"works on 1 channel"):
        ew.ChannelConv(4, 3).double().propagate(noise(5, 4), operator)
