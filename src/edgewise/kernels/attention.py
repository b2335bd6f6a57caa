"""Attention weights on a stacked pattern: rows that sum to one, then columns that balance.

Scores come in heads: channel ``q`` of ``Q`` uses head ``q * heads // Q``.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import njit, prange
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu

from edgewise.kernels import backend
from edgewise.kernels.pattern import Pattern


def attention_rows(
    pattern: Pattern,
    edge: Float[Tensor, " entries"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
) -> Float[Tensor, " entries"]:
    r"""``f_ij E_ij`` with every row divided by its sum, where ``f = exp LeakyReLU(s_i + t_j)``."""
    if backend.compiled(edge, target, source):
        return _AttentionRows.apply(pattern, edge, target, source, slope)
    return plain_attention_rows(pattern, edge, target, source, slope)


def plain_attention_rows(
    pattern: Pattern,
    edge: Float[Tensor, " entries"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
) -> Float[Tensor, " entries"]:
    """The same in torch: the reference, and the path off the CPU."""
    score = entry_scores(pattern, target, source, slope)
    rows = pattern.num_nodes * pattern.channels
    highest = score.new_full((rows,), -torch.inf).scatter_reduce(
        0, pattern.row, score.detach(), "amax"
    )
    weight = edge * torch.exp(score - highest[pattern.row])
    total = weight.new_zeros(rows).index_add(0, pattern.row, weight)
    return weight / total.masked_fill(total == 0, 1)[pattern.row]


def entry_scores(
    pattern: Pattern,
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
) -> Float[Tensor, " entries"]:
    """``LeakyReLU(s_i + t_j)`` at every entry."""
    heads = target.size(1)
    head = pattern.row % pattern.channels * heads // pattern.channels
    pair = target[pattern.row // pattern.channels, head] + source[pattern.column.long(), head]
    return leaky_relu(pair, slope)


def balance_columns(
    pattern: Pattern, weight: Float[Tensor, " entries"]
) -> Float[Tensor, " entries"]:
    r"""``B = P diag(c)^{-1/2}``, ``c`` the column sums: then ``B B^T`` is doubly stochastic.

    A column without weight stays empty: nothing reads it.
    """
    if backend.compiled(weight):
        return _BalanceColumns.apply(pattern, weight)
    return plain_balance_columns(pattern, weight)


def plain_balance_columns(
    pattern: Pattern, weight: Float[Tensor, " entries"]
) -> Float[Tensor, " entries"]:
    """The same in torch: the reference, and the path off the CPU."""
    columns = weight.new_zeros(pattern.num_nodes * pattern.channels)
    column_sum = columns.index_add(0, pattern.stacked_column, weight)
    return weight * column_sum.masked_fill(column_sum == 0, 1).rsqrt()[pattern.stacked_column]


class _AttentionRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, pattern: Pattern, edge: Tensor, target: Tensor, source: Tensor, slope: float
    ) -> Tensor:
        ctx.pattern, ctx.slope = pattern, slope
        edge, target, source = edge.contiguous(), target.contiguous(), source.contiguous()
        weight = torch.empty_like(edge)
        log_total = edge.new_empty(pattern.num_nodes * pattern.channels)
        with backend.running:
            _attend(pattern.start.numpy(), pattern.column.numpy(), edge.detach().numpy(),
                    target.detach().numpy(), source.detach().numpy(), slope, weight.numpy(),
                    log_total.numpy(), pattern.channels)  # fmt: skip
        ctx.save_for_backward(target, source, weight, log_total)
        return weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        target, source, weight, log_total = ctx.saved_tensors
        pattern, grad = ctx.pattern, grads[0].contiguous()
        grad_score = torch.empty_like(weight)
        grad_edge = torch.empty_like(weight) if ctx.needs_input_grad[1] else None
        grad_target, grad_source = torch.empty_like(target), torch.empty_like(source)
        start, column = pattern.start.numpy(), pattern.column.numpy()
        turned = pattern.transpose
        with backend.running:
            _attend_backward(start, column, target.detach().numpy(), source.detach().numpy(),
                             ctx.slope, weight.numpy(), grad.numpy(), log_total.numpy(),
                             grad_score.numpy(), grad_target.numpy(),
                             None if grad_edge is None else grad_edge.numpy(),
                             pattern.channels)  # fmt: skip
            _sum_by_node(turned.pattern.start.numpy(), turned.order.numpy(), grad_score.numpy(),
                         grad_source.numpy(), pattern.channels)  # fmt: skip
        return None, grad_edge, grad_target, grad_source, None


class _BalanceColumns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, weight: Tensor) -> Tensor:
        weight = weight.contiguous()
        scale = weight.new_empty(pattern.num_nodes * pattern.channels)
        balanced = torch.empty_like(weight)
        turned = pattern.transpose
        with backend.running:
            _inverse_root_sums(turned.pattern.start.numpy(), turned.order.numpy(),
                               weight.detach().numpy(), scale.numpy())  # fmt: skip
            _scale_columns(pattern.start.numpy(), pattern.column.numpy(), weight.detach().numpy(),
                           scale.numpy(), None, balanced.numpy(), pattern.channels)  # fmt: skip
        ctx.pattern = pattern
        ctx.save_for_backward(weight, scale)
        return balanced

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        weight, scale = ctx.saved_tensors
        pattern, grad = ctx.pattern, grads[0].contiguous()
        grad_sum, grad_weight = torch.empty_like(scale), torch.empty_like(weight)
        turned = pattern.transpose
        with backend.running:
            _column_dots(turned.pattern.start.numpy(), turned.order.numpy(), weight.numpy(),
                         grad.numpy(), grad_sum.numpy())  # fmt: skip
            for _ in range(3):  # one by one: the cube may overflow where the product does not
                grad_sum *= scale
            grad_sum *= -0.5
            _scale_columns(pattern.start.numpy(), pattern.column.numpy(), grad.numpy(),
                           scale.numpy(), grad_sum.numpy(), grad_weight.numpy(),
                           pattern.channels)  # fmt: skip
        return None, grad_weight


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def _attend(  # type: ignore[no-untyped-def]
    start, column, edge, target, source, slope, weight, log_total, channels
):
    heads = target.shape[1]
    for r in prange(len(start) - 1):
        i, head = r // channels, r % channels * heads // channels
        if start[r] == start[r + 1]:
            continue
        highest = -np.inf
        for e in range(start[r], start[r + 1]):
            highest = max(highest, source[column[e], head])
        # LeakyReLU is increasing: the highest source has the highest score.
        highest = _leaky(target[i, head] + highest, slope)
        total = weight.dtype.type(0)
        for e in range(start[r], start[r + 1]):
            score = _leaky(target[i, head] + source[column[e], head], slope)
            weight[e] = edge[e] * np.exp(score - highest)
            total += weight[e]
        log_total[r] = highest + np.log(total)
        scale = 1 / total if total > 0 else total
        for e in range(start[r], start[r + 1]):
            weight[e] *= scale


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def _attend_backward(  # type: ignore[no-untyped-def]
    start, column, target, source, slope, weight, grad, log_total, grad_score, grad_target,
    grad_edge, channels,
):  # fmt: skip
    nodes, heads = target.shape
    for i in prange(nodes):
        for head in range(heads):
            grad_target[i, head] = 0
        for q in range(channels):
            head = q * heads // channels
            first, last = start[i * channels + q], start[i * channels + q + 1]
            dot = weight.dtype.type(0)
            for e in range(first, last):
                dot += weight[e] * grad[e]
            for e in range(first, last):
                change = weight[e] * (grad[e] - dot)
                pair = target[i, head] + source[column[e], head]
                if pair <= 0:
                    change *= slope
                if grad_edge is not None:
                    # f / total, not weight / edge: right also where the edge value is zero.
                    share = np.exp(_leaky(pair, slope) - log_total[i * channels + q])
                    grad_edge[e] = share * (grad[e] - dot)
                grad_score[e] = change
                grad_target[i, head] += change


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def _sum_by_node(start, order, entry, out, channels):  # type: ignore[no-untyped-def]
    nodes, heads = out.shape
    for i in prange(nodes):
        for head in range(heads):
            out[i, head] = 0
        for q in range(channels):
            for e in range(start[i * channels + q], start[i * channels + q + 1]):
                out[i, q * heads // channels] += entry[order[e]]


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def _inverse_root_sums(start, order, weight, scale):  # type: ignore[no-untyped-def]
    for r in prange(len(start) - 1):
        total = weight.dtype.type(0)
        for e in range(start[r], start[r + 1]):
            total += weight[order[e]]
        scale[r] = 1 / np.sqrt(total) if total > 0 else total


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def _column_dots(start, order, weight, grad, out):  # type: ignore[no-untyped-def]
    for r in prange(len(start) - 1):
        total = weight.dtype.type(0)
        for e in range(start[r], start[r + 1]):
            total += weight[order[e]] * grad[order[e]]
        out[r] = total


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def _scale_columns(start, column, entry, scale, shift, out, channels):  # type: ignore[no-untyped-def]
    for r in prange(len(start) - 1):
        for e in range(start[r], start[r + 1]):
            place = column[e] * channels + r % channels
            out[e] = entry[e] * scale[place]
            if shift is not None:
                out[e] += shift[place]


@njit(inline="always")
def _leaky(score, slope):  # type: ignore[no-untyped-def]
    return score if score > 0 else slope * score
