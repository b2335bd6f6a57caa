"""Gated messages: the compiled kernels against dense equations, and against plain torch."""

import numba
import numpy as np
import pytest
import torch
import truth
from drawn import noise
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.kernels.backend import plain_kernels
from edgewise.kernels.gated import NORMALIZATIONS, gated_sum
from edgewise.kernels.gated_pieces import edge_sum, gates, weighted_sum
from edgewise.kernels.incidence import Incidence

CLOSE = {"rtol": 1e-10, "atol": 1e-12}
NORMALIZE = pytest.mark.parametrize("normalize", NORMALIZATIONS)


@st.composite
def multigraphs(draw, max_nodes=6):
    """Directed edges in any order, some of them parallel, some self-loops, isolated nodes."""
    nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=3 * nodes))
    ends = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    return Incidence(ends[0].contiguous(), ends[1].contiguous(), nodes + draw(st.integers(0, 2)))


def inputs(incidence, channels, groups, dtype=torch.float64, scale=1.0):
    nodes = scale * noise(incidence.num_nodes, 2 * channels * (1 + groups), dtype=dtype)
    term = scale * noise(incidence.num_edges, channels, seed=1, dtype=dtype)
    return nodes.requires_grad_(), term.requires_grad_()


def true_sum(incidence, nodes, term, channels, normalize):
    """From the equations: one dense matrix per channel, to which parallel edges are added up."""
    width = nodes.size(1) // 2 - channels
    target, source, message, own = nodes.split([channels, channels, width, width], dim=1)
    ends = list(zip(incidence.source.tolist(), incidence.target.tolist(), strict=True))
    states = [target[i] + source[j] + term[e] for e, (j, i) in enumerate(ends)]
    raw = nodes.new_zeros(incidence.num_nodes, incidence.num_nodes, channels)
    for state, (j, i) in zip(states, ends, strict=True):
        gate = torch.zeros_like(raw)
        gate[i, j] = 1
        raw = raw + gate * (1 / (1 + torch.exp(-state)))
    if normalize == "doubly_stochastic":
        raw = raw + torch.eye(incidence.num_nodes, dtype=raw.dtype).unsqueeze(2)
    edges = raw if normalize == "none" else truth.NORMALIZATIONS[normalize](raw)
    columns = [edges[:, :, f % channels] @ message[:, f] for f in range(width)]
    return own + torch.stack(columns, dim=1), torch.stack(states) if states else term


def values_and_gradients(function, *leaves):
    out, state = function()
    loss = (out * noise(*out.shape, seed=2, dtype=out.dtype)).sum()
    loss = loss + (state * noise(*state.shape, seed=3, dtype=out.dtype)).sum()
    grads = torch.autograd.grad(loss, leaves, allow_unused=True)
    zeros = [
        torch.zeros_like(leaf) if g is None else g for g, leaf in zip(grads, leaves, strict=True)
    ]
    return out.detach(), state.detach(), *zeros


@pytest.mark.slow
@NORMALIZE
@given(incidence=multigraphs(), groups=st.sampled_from([1, 3]))
def test_the_gated_sum_and_its_gradients_are_those_of_the_equations(normalize, incidence, groups):
    channels = 3
    nodes, term = inputs(incidence, channels, groups)

    def ours():
        return gated_sum(incidence, nodes, term, channels, normalize, keep_state=True)

    def true():
        return true_sum(incidence, nodes, term, channels, normalize)

    for mine, expected in zip(
        values_and_gradients(ours, nodes, term),
        values_and_gradients(true, nodes, term),
        strict=True,
    ):
        assert_close(mine, expected, **CLOSE)


@NORMALIZE
@pytest.mark.parametrize(
    ("dtype", "channels", "close"),
    [
        (torch.float64, 1, CLOSE),
        (torch.float64, 70, CLOSE),
        (torch.float32, 5, {"rtol": 1e-4, "atol": 1e-4}),
        (torch.float32, 70, {"rtol": 1e-4, "atol": 1e-4}),
    ],
)
def test_compiled_and_plain_give_the_same(normalize, dtype, channels, close):
    incidence = random_multigraph()
    for groups in (1, 2):
        nodes, term = inputs(incidence, channels, groups, dtype)

        def run(nodes=nodes, term=term):
            return gated_sum(incidence, nodes, term, channels, normalize, keep_state=True)

        compiled = values_and_gradients(run, nodes, term)
        with plain_kernels():
            plain = values_and_gradients(run, nodes, term)
        for mine, expected in zip(compiled, plain, strict=True):
            assert mine.dtype == dtype
            assert_close(mine, expected, **close)


def random_multigraph(num_nodes=20, edges=60):
    generator = torch.Generator().manual_seed(5)
    ends = torch.randint(0, num_nodes - 3, (2, edges), generator=generator)
    return Incidence(ends[0].contiguous(), ends[1].contiguous(), num_nodes)


@NORMALIZE
def test_gradients_are_those_of_finite_differences(normalize):
    incidence = random_multigraph(6, 8)
    nodes, term = inputs(incidence, 2, 2)

    def run(nodes, term):
        return gated_sum(incidence, nodes, term, 2, normalize, keep_state=True)

    assert torch.autograd.gradcheck(run, (nodes, term), fast_mode=False)


@NORMALIZE
def test_gradients_are_right_if_the_states_or_the_sums_alone_are_used(normalize):
    incidence = random_multigraph(6, 8)
    leaves = inputs(incidence, 2, 1)
    for used in (0, 1):
        grads = []
        for compiled in (True, False):
            result = gated_sum(incidence, *leaves, 2, normalize, keep_state=True)[used]
            if not compiled:
                result = true_sum(incidence, *leaves, 2, normalize)[used]
            loss = (result * noise(*result.shape, seed=4)).sum()
            grads.append(torch.autograd.grad(loss, leaves))
        for mine, expected in zip(*grads, strict=True):
            assert_close(mine, expected, **CLOSE)


@NORMALIZE
def test_states_are_returned_only_if_they_are_asked_for(normalize):
    incidence = random_multigraph()
    nodes, term = inputs(incidence, 4, 1)
    with_states = gated_sum(incidence, nodes, term, 4, normalize, keep_state=True)
    without = gated_sum(incidence, nodes, term, 4, normalize, keep_state=False)
    assert without[1] is None
    assert_close(with_states[0], without[0], rtol=0, atol=0)
    for one, other in zip(
        torch.autograd.grad(with_states[0].sum(), (nodes, term)),
        torch.autograd.grad(without[0].sum(), (nodes, term)),
        strict=True,
    ):
        assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("dtype", "close"),
    [(torch.float64, {"rtol": 5e-15, "atol": 0}), (torch.float32, {"rtol": 5e-7, "atol": 0})],
)
def test_the_compiled_sigmoid_is_torch_s(dtype, close):
    z = torch.cat([torch.linspace(-39, 120, 20011), torch.tensor([0.0, 1e-30, 1e30])])
    z = z.to(dtype).unsqueeze(0)
    one_edge = Incidence(torch.zeros(1, dtype=torch.long), torch.zeros(1, dtype=torch.long), 1)
    gate, state = gates(one_edge, z, torch.zeros_like(z), None)
    assert_close(gate, z.double().sigmoid().to(dtype), **close)
    assert_close(state, z, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("plain", [False, True])
@NORMALIZE
def test_gates_that_are_shut_leave_finite_values_and_gradients(normalize, plain, dtype):
    incidence = random_multigraph()
    nodes, _ = inputs(incidence, 4, 1, dtype)
    term = torch.full((incidence.num_edges, 4), -1e4, dtype=dtype, requires_grad=True)
    with plain_kernels() if plain else torch.enable_grad():
        out, _ = gated_sum(incidence, nodes, term, 4, normalize, keep_state=False)
        grads = torch.autograd.grad(out.sum(), (nodes, term))
    assert out.isfinite().all()
    assert all(grad.isfinite().all() for grad in grads)
    if normalize == "row":  # equally shut, so the mean of the messages
        ones = torch.ones_like(term)
        expected = weighted_sum(incidence, ones, nodes[:, 8:12]) / edge_sum(incidence, ones).clamp(
            1
        )
        assert_close(out - nodes[:, 12:], expected, rtol=1e-4, atol=1e-5)


def test_what_is_no_number_stays_so():
    incidence = random_multigraph(4, 6)
    nodes, term = inputs(incidence, 4, 1)
    term = term.detach().clone()
    term[0, 0] = np.nan
    out, state = gated_sum(incidence, nodes, term, 4, "none", keep_state=True)
    assert state[0, 0].isnan()
    assert out[incidence.target[0], 0].isnan()


@NORMALIZE
def test_the_number_of_threads_does_not_change_a_bit(normalize):
    incidence = random_multigraph(200, 900)
    nodes, term = inputs(incidence, 24, 1, torch.float32)
    before = torch.get_num_threads(), numba.get_num_threads()
    results = []
    try:
        for count in (1, numba.config.NUMBA_NUM_THREADS):
            ew.set_num_threads(count)
            results.append(
                values_and_gradients(
                    lambda: gated_sum(incidence, nodes, term, 24, normalize, keep_state=True),
                    nodes,
                    term,
                )
            )
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])
    for one, several in zip(*results, strict=True):
        assert torch.equal(one, several)


@given(incidence=multigraphs())
def test_both_sides_of_an_incidence_list_every_edge_once_under_its_end(incidence):
    for side, near, far in (
        (incidence.by_target, incidence.target, incidence.source),
        (incidence.by_source, incidence.source, incidence.target),
    ):
        nodes = torch.arange(incidence.num_nodes).repeat_interleave(side.start.diff())
        edge = side.edge.long()
        assert edge.sort().values.tolist() == list(range(incidence.num_edges))
        assert torch.equal(near[edge], nodes)
        assert torch.equal(far[edge], side.far.long())


def test_more_edges_than_the_kernels_can_count_are_refused(monkeypatch):
    monkeypatch.setattr("edgewise.kernels.incidence.MOST", 8)
    with pytest.raises(EdgewiseError, match="6 nodes and 8 edges is too large"):
        _ = random_multigraph(6, 8).by_target
    assert len(random_multigraph(6, 7).by_target.edge) == 7
