"""The gated layer says what its equations say, and what PyG says where they meet."""

import pytest
import torch
import truth
from drawn import noise
from torch.testing import assert_close
from torch_geometric.nn import ResGatedGraphConv

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.features import sparse_features
from edgewise.kernels.backend import plain_kernels
from edgewise.kernels.gated import NORMALIZATIONS
from edgewise.nn.layers.gated import GatedChannelConv

CLOSE = {"rtol": 1e-10, "atol": 1e-12}
NORMALIZE = pytest.mark.parametrize("normalize", NORMALIZATIONS)
FLOW = pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])


@pytest.fixture
def multigraph():
    """Seven nodes, asymmetric: parallel edges (0, 2), a self-loop, both ways (3, 0), no edges (6).

    Nothing enters node 5, nothing leaves node 4.
    """
    edge_index = torch.tensor(
        [[0, 1, 0, 3, 2, 0, 1, 3, 0, 5, 2], [2, 2, 2, 0, 4, 1, 3, 2, 3, 1, 2]]
    )
    return noise(7, 4), edge_index, noise(11, 3, seed=1)


def true_layer(layer, x, edge_index, edge_attr):
    """Edge by edge from the docstring of the layer."""
    k, width = layer.channels, layer.out_channels
    parts = [k, k, width, width]
    a, b, v, u = layer.weight.split(parts)
    bias = torch.zeros(sum(parts)).to(x) if layer.bias is None else layer.bias
    bias_a, bias_b, bias_v, bias_u = bias.split(parts)
    edge_index = edge_index if layer.flow == "source_to_target" else edge_index.flip(0)
    raw, states = x.new_zeros(len(x), len(x), k), []
    for edge, (j, i) in enumerate(edge_index.T.tolist()):
        state = a @ x[i] + bias_a + b @ x[j] + bias_b + layer.edge_weight @ edge_attr[edge]
        here = torch.zeros_like(raw)
        here[i, j] = 1
        raw = raw + here * state.sigmoid()
        states.append(state)
    if layer.normalize == "doubly_stochastic":
        raw = raw + torch.eye(len(x)).to(x).unsqueeze(2)
    edges = raw if layer.normalize == "none" else truth.NORMALIZATIONS[layer.normalize](raw)
    message = x @ v.T + bias_v
    gathered = [edges[:, :, f % k] @ message[:, f] for f in range(width)]
    return x @ u.T + bias_u + torch.stack(gathered, dim=1), torch.stack(states)


@NORMALIZE
@FLOW
@pytest.mark.parametrize("channels", [6, 2])
@pytest.mark.parametrize("plain", [False, True])
def test_the_layer_and_its_gradients_are_the_equations(
    normalize, flow, channels, plain, multigraph
):
    layer = GatedChannelConv(4, 6, 3, normalize, channels=channels, flow=flow).double()
    torch.nn.init.normal_(layer.bias)
    x, edge_index, edge_attr = multigraph
    leaves = [x.requires_grad_(), edge_attr.requires_grad_(), *layer.parameters()]
    results = []
    for run in (
        lambda: layer(x, edge_index, edge_attr, return_edges=True),
        lambda: true_layer(layer, x, edge_index, edge_attr),
    ):
        with plain_kernels() if plain else torch.enable_grad():
            out, state = run()
            loss = (out * noise(*out.shape, seed=2)).sum()
            loss = loss + (state * noise(*state.shape, seed=3)).sum()
            results.append([out, state, *torch.autograd.grad(loss, leaves)])
    for mine, expected in zip(*results, strict=True):
        assert_close(mine, expected, **CLOSE)


def test_two_layers_with_an_adapting_state_are_the_equations_twice(multigraph):
    x, edge_index, edge_attr = multigraph
    first = GatedChannelConv(4, 6, 3, "row").double()
    second = GatedChannelConv(6, 6, 6, "doubly_stochastic").double()
    out, true_out, state, true_state = x, x, edge_attr, edge_attr
    edges = first.incidence(edge_index, len(x))
    for layer in (first, second):
        out, state = layer.propagate(out, edges, state, return_edges=True)
        true_out, true_state = true_layer(layer, true_out, edge_index, true_state)
        assert_close(out, true_out, **CLOSE)
        assert_close(state, true_state, **CLOSE)
        out, state, true_out, true_state = (
            tensor.relu() for tensor in (out, state, true_out, true_state)
        )


def test_without_an_edge_state_it_is_pyg_s_residual_gated_convolution(multigraph):
    x, edge_index, _ = multigraph
    ours = GatedChannelConv(4, 6).double()
    torch.nn.init.normal_(ours.bias)
    theirs = ResGatedGraphConv(4, 6, act=torch.nn.Sigmoid()).double()
    parts = [theirs.lin_key, theirs.lin_query, theirs.lin_value]
    with torch.no_grad():
        for linear, weight, bias in zip(
            parts, ours.weight.split(6)[:3], ours.bias.split(6)[:3], strict=True
        ):
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        theirs.lin_skip.weight.copy_(ours.weight.split(6)[3])
        theirs.bias.copy_(ours.bias.split(6)[3])
    assert_close(ours(x, edge_index), theirs(x, edge_index), **CLOSE)


@NORMALIZE
def test_the_order_of_edges_is_a_name_only(normalize, multigraph):
    x, edge_index, edge_attr = multigraph
    layer = GatedChannelConv(4, 6, 3, normalize).double()
    order = torch.randperm(edge_index.size(1))
    out, state = layer(x, edge_index, edge_attr, return_edges=True)
    moved, moved_state = layer(x, edge_index[:, order], edge_attr[order], return_edges=True)
    assert_close(moved, out, **CLOSE)
    assert_close(moved_state, state[order], **CLOSE)


@NORMALIZE
def test_a_batch_is_its_graphs_one_by_one(normalize, multigraph):
    x, edge_index, edge_attr = multigraph
    layer = GatedChannelConv(4, 6, 3, normalize).double()
    other = noise(7, 4, seed=7), edge_index.flip(0), noise(11, 3, seed=8)
    together = layer(
        torch.cat([x, other[0]]),
        torch.cat([edge_index, other[1] + 7], dim=1),
        torch.cat([edge_attr, other[2]]),
    )
    apart = torch.cat([layer(x, edge_index, edge_attr), layer(*other)])
    assert_close(together, apart, **CLOSE)


@pytest.mark.parametrize(
    ("normalize", "gathers"),
    [("row", [1, 1, 1, 1, 1, 0, 0]), ("doubly_stochastic", [1, 1, 1, 1, 1, 1, 1])],
)
def test_normalised_channels_sum_to_one_at_every_node_that_gathers(normalize, gathers, multigraph):
    x, edge_index, edge_attr = multigraph
    layer = GatedChannelConv(4, 6, 3, normalize).double()
    with torch.no_grad():  # messages of 1, and no own term
        layer.weight[12:] = 0
        layer.bias[12:18], layer.bias[18:] = 1, 0
    expected = torch.tensor(gathers).double().unsqueeze(1).expand(7, 6)
    assert_close(layer(x, edge_index, edge_attr), expected, **CLOSE)


def test_every_edge_twice_doubles_a_sum_and_changes_no_mean(multigraph):
    x, edge_index, edge_attr = multigraph
    for normalize, factor in (("none", 2), ("row", 1)):
        layer = GatedChannelConv(4, 6, 3, normalize, bias=False).double()
        with torch.no_grad():
            layer.weight[18:] = 0
        once = layer(x, edge_index, edge_attr)
        twice = layer(x, edge_index.repeat(1, 2), edge_attr.repeat(2, 1))
        assert_close(twice, factor * once, **CLOSE)


@NORMALIZE
def test_a_graph_without_edges_keeps_its_own_terms(normalize):
    layer = GatedChannelConv(4, 6, 3, normalize).double()
    x, edge_index = noise(5, 4).requires_grad_(), torch.empty(2, 0, dtype=torch.long)
    out, state = layer(x, edge_index, x.new_zeros(0, 3), return_edges=True)
    a_loop_of_one = layer.weight[12:18] if normalize == "doubly_stochastic" else 0
    assert_close(out, x @ (layer.weight[18:] + a_loop_of_one).T, **CLOSE)
    assert state.shape == (0, 6)
    (out.sum() + state.sum()).backward()
    assert x.grad.isfinite().all()


def test_sparse_features_give_what_dense_ones_give(multigraph):
    x, edge_index, edge_attr = multigraph
    layer = GatedChannelConv(4, 6, 3).double()
    torch.nn.init.normal_(layer.bias)
    x = x * (x > 0)
    assert_close(
        layer(sparse_features(x), edge_index, edge_attr), layer(x, edge_index, edge_attr), **CLOSE
    )


def test_mixed_precision_stays_near_full_precision(multigraph):
    x, edge_index, edge_attr = (t.float() if t.is_floating_point() else t for t in multigraph)
    layer = GatedChannelConv(4, 6, 3, "row")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x, edge_index, edge_attr)
    assert_close(out.float(), layer(x, edge_index, edge_attr), rtol=0.1, atol=0.1)


@pytest.mark.slow
def test_a_stack_of_layers_can_overfit_labels_on_edges():
    torch.manual_seed(0)
    x, edge_index = torch.zeros(12, 2), torch.randint(0, 12, (2, 40))
    edge_attr = torch.randn(40, 3)
    label = (edge_attr[:, 0] * edge_attr[:, 1] > 0).float()
    layers = [GatedChannelConv(2, 32, 3), GatedChannelConv(32, 32, 32), torch.nn.Linear(32, 1)]
    optimizer = torch.optim.Adam([p for m in layers for p in m.parameters()], lr=0.01)
    for _ in range(200):
        h, e = layers[0](x, edge_index, edge_attr, return_edges=True)
        _, e = layers[1](h.relu(), edge_index, e.relu(), return_edges=True)
        logit = layers[2](e.relu()).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert ((logit > 0) == (label > 0)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"normalize": "rows"}, "choose one of none, row, symmetric, doubly_stochastic"),
        ({"flow": "up"}, "choose source_to_target or target_to_source"),
        ({"channels": 4}, "channels=4 does not divide out_channels=6"),
        ({"edge_dim": 0}, "edge_dim=0 must be at least 1"),
    ],
)
def test_settings_that_make_no_layer_are_refused(settings, message):
    with pytest.raises(EdgewiseError, match=message):
        GatedChannelConv(4, 6, **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": noise(7, 5)}, "made for in_channels=4"),
        ({"x": noise(7, 4).float()}, r"x is torch.float32.*use x.to\(torch.float64\)"),
        ({"edge_index": torch.tensor([[0, 9], [1, 1]])}, "names node 9.*numbered 0 to 6"),
        ({"edge_index": torch.tensor([[0, -1], [1, 1]])}, "names node -1"),
        ({"edge_index": torch.zeros(11, 2)}, "edge_index.T"),
        ({"edge_attr": noise(11, 2)}, r"made for edge_dim=3, which needs \[11, 3\]"),
        ({"edge_attr": None}, "edge_attr has shape None"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(change, message, multigraph):
    given = dict(zip(("x", "edge_index", "edge_attr"), multigraph, strict=True)) | change
    with pytest.raises(EdgewiseError, match=message):
        GatedChannelConv(4, 6, 3).double()(**given)
