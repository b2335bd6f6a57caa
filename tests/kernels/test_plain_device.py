"""The plain kernels are those of every other device: nothing in them leaves it."""

from contextlib import nullcontext

import pytest
import torch
from device_guard import LeftDeviceError, OneDevice
from drawn import noise
from torch.testing import assert_close

import edgewise as ew
from edgewise.kernels.activation import drop, elu_and_drop
from edgewise.kernels.pooling import pool
from edgewise.nn.operators import without_lone_loops

CONV = [(ew.ChannelConv, name) for name in ("doubly_stochastic", "symmetric", "row", "gcn")]
ATTENTION = [(ew.ChannelAttention, name) for name in ("doubly_stochastic", "symmetric", "row")]
EVERY_LAYER = pytest.mark.parametrize(("layer", "normalize"), CONV + ATTENTION)
EVERY_WAY = pytest.mark.parametrize(
    ("layer", "normalize", "adapt"),
    [(*case, False) for case in CONV + ATTENTION] + [(*case, True) for case in ATTENTION],
)


def prepared(layer, digraph, dtype=torch.float32):
    """An operator as a model that trains on one graph holds it, its two-hop pattern found."""
    edge_index, edge_attr, nodes = digraph
    operator = layer.operator(edge_index, edge_attr.to(dtype), nodes)
    if isinstance(layer, ew.ChannelAttention):
        operator.formed  # noqa: B018 - found on the CPU, once
    return operator


def trained(layer, x, operator, adapt=False):
    """Output and gradients of one step."""
    if adapt:
        out, edges = layer.adapt(x, operator)
        out = torch.cat([out, (edges @ x).flatten(1)], dim=1)
    else:
        out = layer.propagate(x, operator)
    return out, *torch.autograd.grad(out.square().sum(), list(layer.parameters()))


@EVERY_WAY
@pytest.mark.parametrize("heads", [1, 2])
def test_a_training_step_stays_on_its_device(layer, normalize, adapt, heads, digraph):
    settings = {"heads": heads, "dropout": 0.5} if layer is ew.ChannelAttention else {}
    with ew.plain_kernels():
        layer = layer(4, 3, 2, normalize, **settings)
        operator, x = prepared(layer, digraph), torch.rand(digraph[2], 4)
        with OneDevice():
            results = trained(layer, x, operator, adapt)
            layer.eval()
            trained(layer, x, operator, adapt)
    assert all(torch.isfinite(result).all() for result in results)


@EVERY_LAYER
def test_sparse_features_stay_on_their_device(layer, normalize, digraph):
    with ew.plain_kernels():
        layer = layer(4, 3, 2, normalize)
        x = ew.sparse_features(torch.rand(digraph[2], 4))
        operator = prepared(layer, digraph)
        with OneDevice():
            trained(layer, x.dropped(0.5, 3), operator)


def test_passes_over_dense_features_stay_on_their_device():
    x, graph = noise(6, 4).requires_grad_(), torch.tensor([0, 0, 1, 1, 1, 3])
    with ew.plain_kernels(), OneDevice():
        out = elu_and_drop(drop(x, 0.5, 1), x.new_ones(4), 0.5, 2)
        pooled = [pool(out, graph, 4, how) for how in ("max", "mean", "sum")]
        torch.autograd.grad(torch.cat(pooled).sum(), x)


def test_operators_without_lone_loops_stay_on_their_device(digraph):
    edge_index, edge_attr, nodes = digraph
    layer = ew.ChannelConv(4, 3, 2).double()
    with ew.plain_kernels():
        operator = without_lone_loops(layer.operator(edge_index, edge_attr, nodes + 1))
        assert operator.factor.pattern.lone_loops
        x = noise(nodes + 1, 4)
        with OneDevice():
            trained(layer, x, operator)


@pytest.mark.parametrize(
    "leave",
    [
        lambda x: x.numpy(),
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: x.sum().item(),
        lambda x: int(x.sum()),
        lambda x: float(x.sum()),
        lambda x: bool(x.sum()),
        lambda x: x.to("cpu"),
        lambda x: x.to(device="cpu"),
        lambda x: x + torch.arange(3),
        lambda x: x + torch.zeros(3),
        lambda x: ew.ChannelConv(3, 2)(x.expand(2, 3), torch.tensor([[0], [1]], device=x.device)),
    ],
)
def test_the_guard_notices(leave):
    with pytest.raises(LeftDeviceError), OneDevice():
        leave(torch.ones(3, device=torch.device("cpu")))


HALF = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


@HALF
@EVERY_WAY
def test_half_precision_follows_single_precision(layer, normalize, adapt, dtype, digraph):
    nodes, single = digraph[2], layer(4, 3, 2, normalize)
    x = noise(nodes, 4, dtype=dtype)
    half = layer(4, 3, 2, normalize).to(dtype)
    half.load_state_dict(single.state_dict())
    single.load_state_dict(half.state_dict())
    expected = trained(single, x.float(), prepared(single, digraph), adapt)
    found = trained(half, x, prepared(half, digraph, dtype), adapt)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        assert_close(one.float(), other, rtol=0.1, atol=0.1 * other.abs().max().item())


@EVERY_LAYER
@pytest.mark.parametrize("kernels", [nullcontext, ew.plain_kernels])
def test_autocast_follows_single_precision(layer, normalize, kernels, digraph):
    nodes, layer = digraph[2], layer(4, 3, 2, normalize)
    x = noise(nodes, 4, dtype=torch.float32)
    with kernels():
        operator = prepared(layer, digraph)
        expected = trained(layer, x, operator)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = trained(layer, x, operator)
    for one, other in zip(found, expected, strict=True):
        assert_close(one.float(), other, rtol=0.1, atol=0.1 * other.abs().max().item())
