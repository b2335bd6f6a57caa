"""A network that computes equal nodes once gives what it gives when it computes each of them."""

import copy

import numba
import pytest
import torch
from drawn import noise
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.presets import make_settings
from edgewise.graphs.batch import Batch
from edgewise.kernels.backend import plain_kernels
from edgewise.nn import colours
from edgewise.nn.layers.gated import GatedChannelConv
from edgewise.nn.network import ChannelNetwork
from edgewise.nn.readouts import GraphReadout

CLOSE = {"rtol": 1e-8, "atol": 1e-10}
SMALL = {"hidden": 12, "depth": 3}


def paths(graphs=12, dtype=torch.float64):
    """Paths of labelled nodes with labelled edges, many of them with equal surroundings."""
    generator = torch.Generator().manual_seed(3)
    x, ends, edge_attr, graph, first = [], [], [], [], 0
    for number in range(graphs):
        size = int(torch.randint(1, 8, (), generator=generator))
        x.append(torch.eye(3)[torch.randint(0, 3, (size,), generator=generator)])
        forward = torch.arange(size - 1).repeat(2, 1) + torch.tensor([[0], [1]])
        ends.append(torch.cat([forward, forward.flip(0)], dim=1) + first)
        edge_attr.append(
            torch.eye(2)[torch.randint(0, 2, (size - 1,), generator=generator)].repeat(2, 1)
        )
        graph += [number] * size
        first += size
    return Batch.of(
        torch.cat(x).to(dtype), torch.cat(ends, dim=1), torch.cat(edge_attr).to(dtype),
        torch.tensor(graph), graphs,
    )  # fmt: skip


def network(dtype=torch.float64, **changes):
    torch.manual_seed(0)
    settings = make_settings("graph", **{**SMALL, **changes}).model
    readout = GraphReadout("mean+max+sum")
    return ChannelNetwork(3, 2, 2, settings, readout=readout, direction="as_given").to(dtype)


def each_node(model):
    """The same network, which computes every node."""
    other = copy.deepcopy(model)
    other._shared = lambda batch: None
    return other


def outcome(model, batch):
    out = model(batch)
    loss = (out * noise(*out.shape, dtype=out.dtype)).sum()
    return out.detach(), *torch.autograd.grad(loss, list(model.parameters())), *model.buffers()


@pytest.mark.parametrize(
    "changes",
    [{}, {"residual": False, "depth": 2}, {"channels": 4}, {"norm": "none"},
     {"norm": "none", "residual": False}],
    ids=str,
)  # fmt: skip
def test_a_block_at_once_has_the_bits_of_its_pieces(changes, monkeypatch):
    batch = paths(40, torch.float32)
    model, seen = network(torch.float32, **changes), []
    assert all(colours._at_once(block) is not None for block in model.blocks)
    at_once = outcome(model, batch)
    monkeypatch.setattr(colours, "_at_once", lambda block: seen.append(block))
    pieces = outcome(network(torch.float32, **changes), batch)
    assert seen
    assert all(torch.equal(one, other) for one, other in zip(at_once, pieces, strict=True))


class Louder(GatedChannelConv):
    """Gathers twice as much."""

    def propagate(self, *inputs, **options):
        out, state = super().propagate(*inputs, return_edges=True)
        return (2 * out, state) if options.get("return_edges") else 2 * out


def test_a_layer_derived_from_the_gated_one_computes_by_its_own_formula():
    model, batch = network(), paths()
    for block in model.blocks:
        block.layer.__class__ = Louder
    assert model._shared(batch) is not None
    assert_close(model(batch), each_node(model)(batch), **CLOSE)
    assert not torch.allclose(model(batch), network()(batch))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"channels": 4},
        {"feed_forward": 0, "hidden": 5},
        {"norm": "layer"},
        {"norm": "none", "feed_forward": 1},
        {"activation": "elu"},
        {"residual": False, "depth": 1},
    ],
    ids=str,
)
def test_outputs_gradients_and_running_moments_are_those_of_each_node(changes):
    model, batch = network(**changes), paths()
    other = each_node(model)
    assert network(**changes)._shared(batch) is not None
    for _ in range(2):
        for mine, expected in zip(outcome(model, batch), outcome(other, batch), strict=True):
            assert_close(mine, expected, **CLOSE)
    model.eval(), other.eval()
    assert_close(model(batch), other(batch), **CLOSE)
    assert_close(model.represent(batch), other.represent(batch), **CLOSE)


@pytest.mark.slow
def test_single_precision_is_as_exact_as_it_can_be():
    model, batch = network(torch.float32), paths(dtype=torch.float32)
    for mine, expected in zip(
        outcome(model, batch), outcome(each_node(network(torch.float32)), batch), strict=True
    ):
        assert_close(mine, expected, rtol=1e-3, atol=1e-4)


def test_each_node_is_computed_where_they_must_differ():
    batch = paths()
    assert network(dropout=0.2)._shared(batch) is None
    assert network(dropout=0.2).eval()._shared(batch) is not None
    assert network(normalize="row")._shared(batch) is None
    with plain_kernels():
        assert network()._shared(batch) is None
    wanted = Batch.of(batch.x.requires_grad_(), batch.edge_index, batch.edge_attr, batch.graph, 12)
    assert network()._shared(wanted) is None
    assert network()._shared(Batch.of(batch.x.detach(), batch.edge_index, batch.edge_attr)) is None


def test_graphs_without_edges_are_computed():
    batch = Batch.of(torch.eye(3).double(), torch.zeros(2, 0, dtype=torch.long),
                     torch.zeros(0, 2).double(), torch.arange(3))  # fmt: skip
    assert network().eval()(batch).isfinite().all()


@pytest.mark.slow
def test_the_number_of_threads_does_not_change_the_result():
    batch = paths(40, torch.float32)
    before = torch.get_num_threads(), numba.get_num_threads()
    results = []
    try:
        for count in (1, numba.config.NUMBA_NUM_THREADS):
            ew.set_num_threads(count)
            results.append(outcome(network(torch.float32, hidden=64), batch))
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])
    for one, several in zip(*results, strict=True):
        assert_close(one, several, rtol=1e-4, atol=1e-5)
