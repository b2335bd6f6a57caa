"""A whole block of gated messages between colours as one step: layer, norms and two linear layers.

What :mod:`edgewise.nn.colours` does piece by piece, with the same bits and the same exchanges
between processes in the same order. A training step on 32 molecules spends as long between its
kernels, in Python and torch, as in them.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.core.team import Team
from edgewise.kernels import backend, gated_colours, gated_walks
from edgewise.kernels.backend import FAST_MATH, jit
from edgewise.kernels.batch_norm import (
    coefficients,
    gradient,
    gradient_sums,
    learnt,
    moments_of,
    pooled_moments,
    running_moments,
    scale_and_add,
)
from edgewise.kernels.colours import Groups, Level
from edgewise.kernels.dense import of_input, of_weight, plain_linear
from edgewise.kernels.gated_pieces import lanes_of

Numbers = Any  # an array


class Plan(NamedTuple):
    """What a block does, besides what gradients go to."""

    level: Level
    channels: int
    norm: torch.nn.BatchNorm1d | None
    norm_between: torch.nn.BatchNorm1d | None  # before the two linear layers
    edge_norm: torch.nn.BatchNorm1d | None
    hands_on: bool  # whether anything reads the edges any more
    adds_nodes: bool  # what went in
    adds_edges: bool
    training: bool
    team: Team


class _Normed(NamedTuple):
    """Rows that were normalised, for the gradient through it."""

    rows: Tensor
    lines: Tensor
    total: float  # how many rows the moments were taken over; 0: they were given


class ColouredBlock(torch.autograd.Function):
    """The nodes and edges behind a block, from those before it and its parameters."""

    @staticmethod
    def forward(
        ctx: Any, plan: Plan, x: Tensor, edges: Tensor, *parameters: Any
    ) -> tuple[Tensor, Tensor | None]:
        x, edges = x.detach().contiguous(), edges.detach().contiguous()
        weight, bias, edge_weight, wide, wide_bias, narrow, narrow_bias, *_ = parameters
        level, counts = plan.level, plan.level.node_count
        nodes = plain_linear(x, weight, bias)
        term = plain_linear(edges, edge_weight, None)
        gate = nodes.new_empty(len(level.target), plan.channels)
        state = torch.empty_like(gate)
        out = nodes.new_empty(len(level.parent), nodes.size(1) // 2 - plan.channels)
        moments = out.new_empty(2, out.size(1))
        narrow_lanes, lanes = lanes_of(gate), lanes_of(out)
        with backend.running:
            rows = _gather(level.target, level.source, level.edge_parent, level.parent,
                           level.entering.start, level.entering.member, nodes.numpy(),
                           term.numpy(), state.numpy(), gate.numpy(), out.numpy(),
                           counts.numpy(), moments.numpy(), narrow_lanes, lanes)  # fmt: skip
        first = _moments(plan, plan.norm, rows, moments)
        lines, y = out.new_empty(4, out.size(1)), torch.empty_like(out)
        with backend.running:
            rows = _normalize(*_of_norm(plan.norm, first), lines.numpy(), out.numpy(),
                              (x if plan.adds_nodes else out).numpy(), level.parent,
                              plan.adds_nodes, True, y.numpy(), counts.numpy(),
                              moments.numpy(), lanes)  # fmt: skip
        second = _moments(plan, plan.norm_between, rows, moments)
        between, z = torch.empty_like(lines), torch.empty_like(y)
        with backend.running:
            _normalize(*_of_norm(plan.norm_between, second), between.numpy(), y.numpy(), y.numpy(),
                       level.parent, False, False, z.numpy(), counts.numpy()[:0],
                       moments.numpy(), lanes)  # fmt: skip
        hidden = plain_linear(z, wide, wide_bias).relu_()
        found = plain_linear(hidden, narrow, narrow_bias).add_(y)
        normed = [_Normed(out, lines, first[1]), _Normed(y, between, second[1])]
        state_out = None
        if plan.hands_on:
            state_out, of_edges = _normed_edges(plan, state, edges)
            normed.append(of_edges)
        ctx.set_materialize_grads(False)
        ctx.plan, ctx.normed = plan, normed
        ctx.save_for_backward(x, edges, nodes, gate, z, hidden, weight, edge_weight, wide, narrow)
        return found, state_out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        x, edges, nodes, gate, z, hidden, weight, edge_weight, wide, narrow = ctx.saved_tensors
        plan, (grad, grad_edges) = ctx.plan, grads
        level, counts = plan.level, plan.level.node_count
        grad = torch.zeros_like(ctx.normed[0].rows) if grad is None else grad.contiguous()
        grad_state, before_edges = None, None
        of_edge_norm: tuple[Tensor | None, ...] = (None, None)
        if grad_edges is not None:
            grad_edges = grad_edges.contiguous()
            grad_state, of_edge_norm = _through_edge_norm(plan, ctx.normed[2], grad_edges)
            if plan.adds_edges:
                before_edges = _summed(level.edge_children, grad_edges)
        elif plan.hands_on and plan.edge_norm is not None and not plan.team.alone:
            # Others wait for this exchange, whether or not a gradient comes.
            _through_edge_norm(plan, ctx.normed[2], torch.zeros_like(ctx.normed[2].rows))

        of_narrow = of_weight(grad, hidden), grad.sum(0)
        on_hidden = torch.ops.aten.threshold_backward(of_input(grad, narrow), hidden, 0)
        of_wide = of_weight(on_hidden, z), on_hidden.sum(0)
        on_z = of_input(on_hidden, wide)
        first, second = ctx.normed[:2]
        lanes, sums = lanes_of(grad), [grad.new_empty(2, grad.size(1)) for _ in range(2)]
        with backend.running:
            _sums_only(on_z.numpy(), second.rows.numpy(), second.lines.numpy(), False,
                       sums[1].numpy(), lanes)  # fmt: skip
        every = _told(plan, second, sums[1])
        on_y = torch.empty_like(grad)
        with backend.running:
            _back_between(on_z.numpy(), second.rows.numpy(), second.lines.numpy(), counts.numpy(),
                          every.numpy(), second.total, grad.numpy(), on_y.numpy(),
                          first.rows.numpy(), first.lines.numpy(), sums[0].numpy(),
                          lanes)  # fmt: skip
        every = _told(plan, first, sums[0])
        on_out, on_nodes = torch.empty_like(grad), torch.empty_like(nodes)
        on_gate, received = torch.empty_like(gate), grad.new_empty(len(gate), grad.size(1))
        on_term = gate.new_empty(level.num_edges, gate.size(1))
        before_nodes = torch.empty_like(x) if plan.adds_nodes else x[:0]
        with backend.running:
            _scatter(on_y.numpy(), first.rows.numpy(), first.lines.numpy(), counts.numpy(),
                     every.numpy(), first.total, on_out.numpy(), level.source,
                     *_both(level.receivers), *_both(level.by_target), *_both(level.by_source),
                     *_both(level.children), *_both(level.edge_children), nodes.numpy(),
                     gate.numpy(), (gate if grad_state is None else grad_state).numpy(),
                     grad_state is not None, on_gate.numpy(), received.numpy(), on_nodes.numpy(),
                     on_term.numpy(), before_nodes.numpy(), lanes_of(gate), lanes)  # fmt: skip
        on_x = on_edges = None
        if ctx.needs_input_grad[1]:
            on_x = of_input(on_nodes, weight)
            on_x = on_x.add_(before_nodes) if plan.adds_nodes else on_x
        if ctx.needs_input_grad[2]:
            on_edges = of_input(on_term, edge_weight)
            on_edges = on_edges if before_edges is None else on_edges.add_(before_edges)
        norms = (plan.norm, sums[0]), (plan.norm_between, sums[1]), (plan.edge_norm, of_edge_norm)
        return (
            *(None, on_x, on_edges),
            *(of_weight(on_nodes, x), on_nodes.sum(0), of_weight(on_term, edges)),
            *(*of_wide, *of_narrow),
            *(part for norm, found in norms for part in ((None, None) if norm is None else found)),
        )


def _moments(plan: Plan, norm: Any, rows: float, own: Tensor) -> tuple[Tensor, float]:
    """Those to normalise by, and over how many rows they were taken; 0: learnt before.

    No norm is one that leaves everything as it is: of mean 0 and variance 1.
    """
    total, moments = 0.0, own
    if norm is None:
        return torch.stack([torch.zeros_like(own[0]), torch.ones_like(own[0])]), total
    if plan.training:
        total, moments = pooled_moments(rows, own, plan.team)
    if total < 2:
        return running_moments(norm), 0.0
    learnt(norm, moments, total)
    return moments, total


def _of_norm(norm: Any, moments: tuple[Tensor, float]) -> tuple[Any, ...]:
    if norm is None:
        return moments[0].numpy(), moments[0][1].numpy(), moments[0][0].numpy(), 0.0
    weight, bias = norm.weight.detach(), norm.bias.detach()
    return moments[0].numpy(), weight.numpy(), bias.numpy(), norm.eps


def _normed_edges(plan: Plan, state: Tensor, before: Tensor) -> tuple[Tensor, _Normed]:
    norm, counts, found = plan.edge_norm, plan.level.edge_count, state.new_empty(2, state.size(1))
    lines, out, lanes = state.new_empty(4, state.size(1)), torch.empty_like(state), lanes_of(state)
    with backend.running:
        rows = moments_of(state.numpy(), counts.numpy(), found.numpy(), lanes)
    moments = _moments(plan, norm, rows, found)
    with backend.running:
        _normalize(*_of_norm(norm, moments), lines.numpy(), state.numpy(),
                   (before if plan.adds_edges else state).numpy(), plan.level.edge_parent,
                   plan.adds_edges, True, out.numpy(), counts.numpy()[:0], found.numpy(),
                   lanes)  # fmt: skip
    return out, _Normed(state, lines, moments[1])


def _through_edge_norm(
    plan: Plan, normed: _Normed, grad: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    sums, lanes = grad.new_empty(2, grad.size(1)), lanes_of(grad)
    arrays, out = (grad.numpy(), normed.rows.numpy(), normed.lines.numpy()), torch.empty_like(grad)
    with backend.running:
        _sums_only(*arrays, True, sums.numpy(), lanes)
    every = _told(plan, normed, sums)
    with backend.running:
        gradient(*arrays, plan.level.edge_count.numpy(), every.numpy(), normed.total, True,
                 out.numpy(), lanes)  # fmt: skip
    return out, tuple(sums)


def _told(plan: Plan, normed: _Normed, sums: Tensor) -> Tensor:
    return plan.team.summed(sums) if normed.total else sums


def _summed(groups: Groups, rows: Tensor) -> Tensor:
    return gated_colours.summed_rows(groups, rows)


def _both(groups: Groups) -> tuple[Numbers, Numbers]:
    return groups.start, groups.member


@jit(fastmath=FAST_MATH)
def _gather(  # type: ignore[no-untyped-def]
    target, source, edge_parent, parent, start, entering, nodes, term, state, gate, out, counts,
    moments, gate_lanes, lanes,
):  # fmt: skip
    gated_colours.fill_gates(
        target, source, edge_parent, nodes, term, True, state, gate, gate_lanes
    )
    gated_colours.fill_sums(start, entering, parent, source, nodes, gate, out, gate_lanes)
    return moments_of(out, counts, moments, lanes)


@jit(fastmath=FAST_MATH)
def _normalize(  # type: ignore[no-untyped-def]
    given, weight, bias, eps, lines, rows, before, parent, adds, relu, out, counts, moments, lanes
):
    """Norm, activation and residual; with ``counts`` also the moments of the result."""
    coefficients(given, weight, bias, eps, lines)
    scale_and_add(rows, lines, before, parent, adds, relu, out, lanes)
    return moments_of(out, counts, moments, lanes) if len(counts) else 0.0


@jit(fastmath=FAST_MATH)
def _sums_only(grad, rows, lines, relu, sums, lanes):  # type: ignore[no-untyped-def]
    gradient_sums(grad, rows, lines, relu, sums, lanes)


@jit(fastmath=FAST_MATH)
def _back_between(  # type: ignore[no-untyped-def]
    on_z, y, lines, counts, every, total, grad, on_y, out, first_lines, sums, lanes
):
    """Through the norm before the linear layers, and the sums for that behind the messages."""
    gradient(on_z, y, lines, counts, every, total, False, on_y, lanes)
    for row in range(len(grad)):
        for column in range(grad.shape[1]):
            on_y[row, column] += grad[row, column]
    gradient_sums(on_y, out, first_lines, True, sums, lanes)


@jit(fastmath=FAST_MATH)
def _scatter(  # type: ignore[no-untyped-def]
    on_y, out, lines, counts, every, total, on_out, source, receiver_start, receiver,
    target_start, entering, source_start, leaving, child_start, child, edge_start, edge_child,
    nodes, gate, grad_state, has_state, on_gate, received, on_nodes, on_term, before,
    gate_lanes, lanes,
):  # fmt: skip
    """Through the norm behind the messages, and to nodes and edges."""
    gradient(on_y, out, lines, counts, every, total, True, on_out, lanes)
    if len(before):
        gated_walks.edge_sum(child_start, child, on_y, before, lanes)
    gated_colours.gradient_on_edges(receiver_start, receiver, source, nodes, gate, on_out,
                                    grad_state, has_state, on_gate, received,
                                    gate_lanes)  # fmt: skip
    gated_colours.gradient_on_nodes(target_start, entering, source_start, leaving, child_start,
                                    child, gate, received, on_out, on_gate, on_nodes,
                                    gate_lanes)  # fmt: skip
    gated_walks.edge_sum(edge_start, edge_child, on_gate, on_term, gate_lanes)
