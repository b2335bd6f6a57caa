"""Walking along the hubs gives what the materialised layer gives, and what the paper says."""

import itertools
from contextlib import nullcontext
from math import sqrt

import pytest
import torch
import truth
from drawn import graphs, noise
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import leaky_relu
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.kernels import hub_attention as attention
from edgewise.kernels.hub_attention import hub_attention
from edgewise.nn.layers import attention as layers

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


WALKS = {"node by node": False, "hub by hub": True}


def take(walk, monkeypatch):
    monkeypatch.setattr(attention, "hub_by_hub_is_quicker", lambda *_: WALKS[walk])


@pytest.fixture(params=WALKS)
def walks(request, monkeypatch):
    take(request.param, monkeypatch)


def test_small_hubs_and_large_graphs_are_walked_through_hub_by_hub(monkeypatch):
    def quicker(edges):
        pattern = ew.doubly_stochastic(*edges, 20).factor.pattern
        return attention.hub_by_hub_is_quicker(pattern, edges[1][:, 0])

    ring = torch.stack([torch.arange(20), torch.arange(1, 21) % 20]), torch.ones(20, 1)
    complete = torch.ones(20, 20).nonzero().T, torch.ones(400, 1)
    assert [quicker(ring), quicker(complete)] == [True, False]
    monkeypatch.setattr(attention, "CACHE_BYTES", 0)
    assert quicker(complete)


def hub_graph(nodes=40, channels=3, dtype=torch.float32):
    """Two hubs and random edges; each channel has a pattern of its own."""
    generator = torch.Generator().manual_seed(5)
    chance = torch.full((nodes, nodes), 0.05)
    chance[:, :2] = 0.7
    edge_index = (torch.rand(nodes, nodes, generator=generator) < chance).nonzero().T
    shape = edge_index.size(1), channels
    value = 0.1 + torch.rand(shape, generator=generator, dtype=torch.float64)
    value *= torch.rand(shape, generator=generator) < 0.7
    return edge_index, value.to(dtype), nodes


def layer_results(layer, x, edge_index, value, key_seed=0):
    """Output, and gradients of weight, attention, features and edge values."""
    torch.manual_seed(key_seed)
    x, value = x.clone().requires_grad_(), value.clone().requires_grad_()
    out = layer(x, edge_index, value)
    readout = noise(*out.shape, seed=3, dtype=out.dtype)
    leaves = (layer.weight, layer.attention, x, value)
    return out.detach(), *torch.autograd.grad((out * readout).sum(), leaves)


def relative_error(one, other):
    return ((one - other).abs().max() / other.abs().max()).item()


def assert_walk_equals_the_materialised_layer(layer, graph, scale, forward, backward, seed=0):
    edge_index, value, nodes = graph
    x = scale * noise(nodes, layer.in_channels, seed=seed, dtype=value.dtype)
    layer.materialize = False
    walked = layer_results(layer, x, edge_index, value)
    layer.materialize = True
    formed = layer_results(layer, x, edge_index, value)
    assert torch.isfinite(walked[0]).all()
    assert relative_error(walked[0], formed[0]) < forward
    for name, one, other in zip("Waxe", walked[1:], formed[1:], strict=True):
        assert relative_error(one, other) < backward, name


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.6])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_the_walk_equals_the_materialised_layer_in_float32(heads, dropout, scale):
    layer = ew.ChannelAttention(6, 5, edge_channels=3, heads=heads, dropout=dropout)
    assert_walk_equals_the_materialised_layer(layer, hub_graph(), scale, 1e-5, 1e-4)


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.6])
def test_the_walk_equals_the_materialised_layer_in_float64(heads, dropout):
    layer = ew.ChannelAttention(6, 5, edge_channels=3, heads=heads, dropout=dropout).double()
    graph = hub_graph(dtype=torch.float64)
    assert_walk_equals_the_materialised_layer(layer, graph, 1.0, 1e-10, 1e-10)


@pytest.mark.parametrize("channels", [1, 2])
def test_hubs_of_hundreds_of_members_are_sorted_by_all_digits_of_their_places(
    channels, monkeypatch
):
    take("hub by hub", monkeypatch)
    layer = ew.ChannelAttention(6, 5, edge_channels=channels).double()
    graph = hub_graph(nodes=300, channels=channels, dtype=torch.float64)
    assert_walk_equals_the_materialised_layer(layer, graph, 1.0, 1e-10, 1e-10)


@pytest.mark.usefixtures("walks")
def test_gradients_are_the_same_whether_or_not_those_of_edges_are_asked_for():
    edge_index, value, nodes = hub_graph(dtype=torch.float64)
    layer = ew.ChannelAttention(6, 5, edge_channels=3, materialize=False).double()
    x = noise(nodes, 6, dtype=value.dtype)
    found = []
    for asked in (False, True):
        out = layer(x, edge_index, value.clone().requires_grad_(asked))
        readout = noise(*out.shape, seed=3, dtype=out.dtype)
        found.append(torch.autograd.grad((out * readout).sum(), (layer.weight, layer.attention)))
    for one, other in zip(*found, strict=True):
        assert_close(one, other, **CLOSE)


@pytest.mark.slow
@given(graph=graphs(), heads=st.sampled_from([1, 2]), width=st.integers(1, 9))
def test_the_walk_equals_the_materialised_layer_on_drawn_graphs(graph, heads, width):
    torch.manual_seed(width)
    layer = ew.ChannelAttention(4, width, graph.edge_attr.size(1), heads=heads).double()
    x = noise(graph.num_nodes, 4)
    layer.materialize = True
    formed = layer_results(layer, x, graph.edge_index, graph.edge_attr)
    for way, walk in itertools.product((False, None), WALKS):
        layer.materialize = way  # the walk, and whichever is quicker
        with pytest.MonkeyPatch.context() as patch:
            take(walk, patch)
            found = layer_results(layer, x, graph.edge_index, graph.edge_attr)
        for one, other in zip(found, formed, strict=True):
            assert_close(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("heads", [1, 2])
def test_dropout_drops_the_same_links_whichever_way_is_quicker(channels, heads, monkeypatch):
    edge_index, value, nodes = hub_graph(channels=channels, dtype=torch.float64)
    layer = ew.ChannelAttention(6, 5, channels, heads=heads, dropout=0.6).double()
    x = noise(nodes, 6)
    layer.materialize = True
    expected = layer_results(layer, x, edge_index, value)
    layer.materialize = None
    found = {}
    for way, paths in (("walked", 0), ("formed", torch.inf)):
        monkeypatch.setattr(layers, "FORMED_PATHS", paths)
        found[way] = layer_results(layer, x, edge_index, value)
        with ew.plain_kernels():
            found[way, "plain"] = layer_results(layer, x, edge_index, value)
    for way, results in found.items():
        for one, other in zip(results, expected, strict=True):
            assert_close(one, other, **CLOSE, msg=lambda text, way=way: f"{way}: {text}")


def dense_truth(operator, target, source, h, slope=0.2):
    """DS of ``f . E`` for given scores, ``f`` taken relative to the largest of its row in ``E``."""
    edges = operator.to_dense()
    score = leaky_relu(target + source.T, slope).unsqueeze(2)
    highest = score.masked_fill(edges == 0, -torch.inf).amax(dim=1, keepdim=True)
    f = torch.exp(score - highest).masked_fill(edges == 0, 0)
    adapted = truth.doubly_stochastic(f * edges)
    return torch.einsum("ijp,jf->ipf", adapted, h)


def scored(reach, nodes, dtype):
    """Scores whose sums fill the range from ``-reach`` to ``reach``."""
    generator = torch.Generator().manual_seed(2)
    s, t = (torch.rand(2, nodes, 1, generator=generator, dtype=torch.float64) - 0.5) * reach
    s[0], t[0], s[1], t[1] = reach / 2, reach / 2, -reach / 2, -reach / 2
    return s.to(dtype), t.to(dtype)


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=str
)
@pytest.mark.parametrize("reach", [1.0, 20.0, 40.0, 80.0])
def test_extreme_scores_give_the_dense_truth_and_its_gradients(reach, dtype, tolerance):
    edge_index, value, nodes = hub_graph(channels=2, dtype=torch.float64)
    edge_index, value = ew.add_self_loops(edge_index, value, nodes)
    operator = ew.doubly_stochastic(edge_index, value, nodes)
    s, t = scored(reach, nodes, dtype)
    h = noise(nodes, 3, dtype=dtype)

    leaves = [tensor.clone().requires_grad_() for tensor in (operator.factor.value.to(dtype), s, t)]
    out = hub_attention(operator.factor.pattern, *leaves, h.unsqueeze(1), slope=0.2)
    readout = noise(*out.shape, seed=4)
    grads = torch.autograd.grad((out * readout.to(dtype)).sum(), leaves)

    true_leaves = [leaf.detach().double().requires_grad_() for leaf in leaves]
    rebuilt = ew.DoublyStochastic(ew.SparseOperator(operator.factor.pattern, true_leaves[0]))
    expected = dense_truth(rebuilt, true_leaves[1], true_leaves[2], h.double())
    true_grads = torch.autograd.grad((expected * readout).sum(), true_leaves)
    assert relative_error(out.double(), expected) < tolerance
    for mine, true in zip(grads, true_grads, strict=True):
        assert torch.isfinite(mine).all()
        assert relative_error(mine.double(), true) < 10 * tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("materialize", [False, True])
@pytest.mark.parametrize("reach", [80.0, 150.0, 500.0, 1000.0])
def test_scores_up_to_a_thousand_are_right_and_neither_overflow_nor_turn_into_nan(
    reach, materialize, dtype
):
    edge_index, value, nodes = hub_graph(channels=2, dtype=dtype)
    # A pair apart, whose sources lie far below the highest one and yet above the kink.
    edge_index = torch.cat([edge_index, torch.tensor([[nodes], [nodes + 1]])], dim=1)
    value, nodes = torch.cat([value, value.new_ones(1, 2)]), nodes + 2
    edge_index, value = ew.add_self_loops(edge_index, value, nodes)
    factor = ew.doubly_stochastic(edge_index, value, nodes).factor
    s, t = scored(reach, nodes, dtype)
    s[-2:] = reach / 2 + 1
    t[-2:, 0] = torch.tensor([-reach / 2, -reach / 2 + 1])
    inputs = (factor.value, s, t, noise(nodes, 1, 3, dtype=dtype))
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    out = hub_attention(factor.pattern, *leaves, slope=0.2, materialize=materialize)
    assert torch.isfinite(out).all()
    formed = ew.DoublyStochastic(ew.SparseOperator(factor.pattern, factor.value.double()))
    expected = dense_truth(formed, s.double(), t.double(), inputs[3][:, 0].double())
    assert relative_error(out.double(), expected) < 1e-4
    for grad in torch.autograd.grad(out.pow(2).sum(), leaves):
        assert torch.isfinite(grad).all()


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("slope", [-0.5, 0.0, 0.2, 1.0, 1.5])
def test_any_slope_gives_the_dense_truth(slope, channels):
    edge_index, value, nodes = hub_graph(channels=channels, dtype=torch.float64)
    edge_index, value = ew.add_self_loops(edge_index, value, nodes)
    operator = ew.doubly_stochastic(edge_index, value, nodes)
    s, t = scored(20.0, nodes, torch.float64)
    h = noise(nodes, 3)
    factor = operator.factor
    out = hub_attention(factor.pattern, factor.value, s, t, h.unsqueeze(1), slope=slope)
    assert_close(out, dense_truth(operator, s, t, h, slope), rtol=1e-9, atol=1e-11)


def test_what_a_hub_loses_by_crossings_leaves_no_error_behind():
    """One hub joins all; its sums are added to and taken from thousands of times in float32."""
    nodes = 3000
    spokes = torch.arange(nodes)
    edge_index, value = torch.stack([spokes, torch.zeros_like(spokes)]), torch.ones(nodes, 1)
    edge_index, value = ew.add_self_loops(edge_index, value, nodes)
    factor = ew.doubly_stochastic(edge_index, value, nodes).factor
    s, t = scored(30.0, nodes, torch.float32)
    inputs = (factor.value, s, t, noise(nodes, 1, 3, dtype=torch.float32))
    results = []
    for dtype in (torch.float32, torch.float64):
        leaves = [tensor.to(dtype).requires_grad_() for tensor in inputs]
        out = hub_attention(factor.pattern, *leaves, slope=0.2)
        readout = noise(*out.shape, seed=4).to(dtype)
        results.append([out, *torch.autograd.grad((out * readout).sum(), leaves)])
    out, *grads = (relative_error(one.double(), other) for one, other in zip(*results, strict=True))
    assert out < 1e-5
    assert max(grads) < 1e-4


@pytest.mark.parametrize("reach", [10.0, 80.0, 150.0, 1000.0])
@pytest.mark.parametrize("normalize", ["doubly_stochastic", "row", "symmetric"])
@pytest.mark.parametrize("kernels", [nullcontext, ew.plain_kernels])
def test_adapted_edges_stay_finite_whatever_the_scores(reach, normalize, kernels):
    edge_index, value, nodes = hub_graph(channels=2)
    layer = ew.ChannelAttention(2, 2, edge_channels=2, normalize=normalize)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(2))
        layer.attention.copy_(torch.eye(2))
    x = torch.cat(scored(reach, nodes, torch.float32), dim=1).requires_grad_()
    value = value.clamp(min=0.1).requires_grad_()  # at 0 the true gradient knows no bounds
    with kernels():
        out, edges = layer(x, edge_index, value, return_edges=True)
        loss = out.pow(2).sum() + (edges @ noise(nodes, 2, dtype=torch.float32)).pow(2).sum()
        grads = torch.autograd.grad(loss, (x, value, layer.weight, layer.attention))
    for tensor in (out, *grads):
        assert torch.isfinite(tensor).all()


@pytest.mark.slow
def test_pairs_exactly_on_the_kink_are_counted_once():
    edge_index, value, nodes = hub_graph(channels=2, dtype=torch.float64)
    edge_index, value = ew.add_self_loops(edge_index, value, nodes)
    operator = ew.doubly_stochastic(edge_index, value, nodes)
    # Whole numbers: most sums of scores are 0, and many scores are equal.
    s = (torch.arange(nodes) % 3 - 1).double().unsqueeze(1)
    t = -(torch.arange(nodes) // 3 % 3 - 1).double().unsqueeze(1)
    assert ((s + t.T) == 0).double().mean() > 0.3
    h = noise(nodes, 3)
    leaves = [leaf.clone().requires_grad_() for leaf in (operator.factor.value, s, t)]
    out = hub_attention(operator.factor.pattern, *leaves, h.unsqueeze(1), slope=0.2)
    assert_close(out, dense_truth(operator, s, t, h), **CLOSE)
    # On the kink the slope is a convention; torch and both paths take the lower one.
    formed = hub_attention(
        operator.factor.pattern, *leaves, h.unsqueeze(1), slope=0.2, materialize=True
    )
    readout = noise(*out.shape, seed=4)
    for one, other in zip(
        torch.autograd.grad((out * readout).sum(), leaves),
        torch.autograd.grad((formed * readout).sum(), leaves),
        strict=True,
    ):
        assert_close(one, other, **CLOSE)


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("width", [3, 4, 8])
def test_changing_the_result_in_place_leaves_the_gradients_right(width):
    edge_index, value, nodes = hub_graph(channels=1, dtype=torch.float64)
    layer = ew.ChannelAttention(4, width, bias=False, materialize=False).double()
    found = []
    for change in (lambda out: out.mul_(2), lambda out: out.mul(2)):
        out = change(layer(noise(nodes, 4), edge_index, value)).sum()
        found.append(torch.autograd.grad(out, [layer.weight, layer.attention]))
    assert_close(*found)


@pytest.mark.usefixtures("walks")
def test_changing_the_edges_in_place_before_the_gradient_is_told():
    edge_index, value, nodes = hub_graph(channels=1)
    layer = ew.ChannelAttention(4, 3, materialize=False)
    operator = layer.operator(edge_index, value, nodes)
    out = layer.propagate(noise(nodes, 4, dtype=torch.float32), operator).sum()
    operator.factor.value.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


@pytest.mark.parametrize("materialize", [False, True])
def test_edges_of_half_precision_scores_keep_their_own(materialize):
    nodes, h = 400, torch.ones(400, 1, 1, dtype=torch.bfloat16)
    spokes = torch.stack([torch.arange(nodes), torch.zeros(nodes, dtype=torch.int64)])
    factor = ew.doubly_stochastic(
        *ew.add_self_loops(spokes, torch.ones(nodes, 1), nodes), nodes
    ).factor
    s = t = torch.zeros(nodes, 1, dtype=torch.bfloat16)
    out = hub_attention(factor.pattern, factor.value, s, t, h, slope=0.2, materialize=materialize)
    assert out.dtype == torch.float32
    assert_close(out, torch.ones_like(out), rtol=1e-5, atol=0)  # rows sum to one


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("materialize", [False, True])
def test_a_graph_without_nodes_has_no_result(materialize):
    layer = ew.ChannelAttention(4, 3, edge_channels=2, materialize=materialize)
    edges = torch.empty(2, 0, dtype=torch.int64), torch.empty(0, 2)
    assert layer(torch.empty(0, 4), *edges).shape == (0, 6)


def test_scores_that_are_all_equal_weigh_nothing():
    edge_index, value, nodes = hub_graph(channels=2, dtype=torch.float64)
    layer = ew.ChannelAttention(4, 3, edge_channels=2).double()
    with torch.no_grad():
        layer.attention.zero_()
    x = noise(nodes, 4)
    raw = truth.add_loops(truth.dense(edge_index.flip(0), value, nodes))
    expected = truth.doubly_stochastic(truth.doubly_stochastic(raw))
    assert_close(layer(x, edge_index, value), truth.apply(expected, x @ layer.weight), **CLOSE)


@pytest.mark.parametrize("normalize", ["doubly_stochastic", "row", "symmetric"])
@pytest.mark.parametrize("adapt", [False, True])
def test_dropout_keeps_the_expectation_of_the_output(normalize, adapt):
    edge_index, value, nodes = hub_graph(nodes=8, channels=2, dtype=torch.float64)
    layer = ew.ChannelAttention(3, 2, 2, normalize, dropout=0.5, materialize=False).double()
    x, draws = noise(nodes, 3), 600
    # One batch of the same graph over and over: every copy has masks of its own.
    copies = torch.cat([edge_index + nodes * copy for copy in range(draws)], dim=1)
    edges = layer.operator(copies, value.repeat(draws, 1), nodes * draws)
    with torch.no_grad():
        x_copies = x.repeat(draws, 1)
        out = layer.adapt(x_copies, edges)[0] if adapt else layer.propagate(x_copies, edges)
        sample = out.reshape(draws, nodes, -1)
        expected = layer.eval()(x, edge_index, value)
    error = (sample.mean(0) - expected).abs()
    assert (sample.std(0) > 1e-3).any()
    assert (error < 5 * sample.std(0) / sqrt(draws) + 1e-9).all()


def test_a_pattern_that_would_not_fit_is_refused_with_the_figures(monkeypatch):
    nodes = 60
    edge_index = torch.stack([torch.zeros(nodes, dtype=torch.long), torch.arange(nodes)])
    layer = ew.ChannelAttention(3, 2)
    x = torch.randn(nodes, 3)
    walked = layer(x, edge_index)
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", "0.00001")  # room for some 300 entries
    sentence = r"has [\d,]+ entries \(0\.0 GiB .* joins \d+ nodes\).*0\.0 GiB allowed; use conv"
    with pytest.raises(EdgewiseError, match=sentence):
        layer(x, edge_index, return_edges=True)
    layer.materialize = True
    with pytest.raises(EdgewiseError, match=sentence):
        layer(x, edge_index)
    layer.materialize = False
    assert_close(layer(x, edge_index), walked)  # the walk needs no such pattern


def test_the_refusal_counts_shared_pairs_once(monkeypatch):
    """Two nodes that share many hubs are one pair, however many paths join them."""
    nodes = 40
    edge_index = torch.ones(nodes, nodes).nonzero().T
    paths, entries = nodes**3, nodes**2
    layer, x = ew.ChannelAttention(3, 2), torch.randn(nodes, 3)
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", str(32 * (entries + 1) / 2**30))
    assert 32 * paths > 32 * (entries + 1)
    layer(x, edge_index, return_edges=True)
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", str(32 * (entries - 1) / 2**30))
    with pytest.raises(EdgewiseError, match=r"has 1,600 entries"):
        layer(x, edge_index, return_edges=True)
