"""Attention weights on a stacked pattern: rows that sum to one, then columns that balance."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.scores import entry_scores, factor_dtype, highest, score_factors, sums

# Sums over columns are made in this many parts, by rows, and then added: the number of threads
# changes neither the order of additions nor the result.
PARTS = 4


def attention_rows(
    pattern: Pattern,
    edge: Float[Tensor, " entries"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
) -> Float[Tensor, " entries"]:
    r"""``f_ij E_ij`` with every row divided by its sum, where ``f = exp LeakyReLU(s_i + t_j)``."""
    compiled = backend.compiled(edge, target, source)
    dtype = factor_dtype(edge, target, source, slope) if compiled else None
    if dtype is None:
        return plain_attention_rows(pattern, edge, target, source, slope)
    wide = (tensor.to(dtype) for tensor in (edge, target, source))
    return _AttentionRows.apply(pattern, *wide, slope).to(edge.dtype)


def plain_attention_rows(
    pattern: Pattern,
    edge: Float[Tensor, " entries"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
) -> Float[Tensor, " entries"]:
    """The same in torch: the reference, and the path off the CPU."""
    given, dtype = edge.dtype, backend.accumulator(edge, target, source)
    edge, target, source = (tensor.to(dtype) for tensor in (edge, target, source))
    score = entry_scores(pattern, target, source, slope)
    rows = pattern.num_nodes * pattern.channels
    weight = edge * torch.exp(score - highest(score, pattern.row, rows))
    return (weight / sums(weight, pattern.row, rows)).to(given)


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
    given, weight = weight.dtype, weight.to(backend.accumulator(weight))
    column, columns = pattern.stacked_column, pattern.num_nodes * pattern.channels
    # Relative to the highest of its column: the cube of 1 / sqrt(c) may overflow.
    top = highest(weight, column, columns)
    top = top.masked_fill(top <= 0, 1)
    scaled = weight / top
    return (top.sqrt() * scaled * sums(scaled, column, columns).rsqrt()).to(given)


class _AttentionRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, pattern: Pattern, edge: Tensor, target: Tensor, source: Tensor, slope: float
    ) -> Tensor:
        below, factor = score_factors(target, source, slope)
        weight = torch.empty(len(edge), dtype=edge.dtype)
        total = edge.new_empty(pattern.num_nodes * pattern.channels)
        with backend.running:
            _attention_rows(*index_arrays(pattern), edge.contiguous().numpy(),
                            below.contiguous().numpy(), factor.contiguous().numpy(),
                            weight.numpy(), total.numpy(),
                            np.uint64(pattern.channels))  # fmt: skip
        ctx.pattern, ctx.slope = pattern, slope
        ctx.save_for_backward(target, source, below, factor, weight, total)
        return weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        pattern, grad = ctx.pattern, grads[0].contiguous()
        target, *saved = (tensor.contiguous().numpy() for tensor in ctx.saved_tensors)
        grad_target = torch.zeros(target.shape, dtype=grad.dtype)
        grad_source = grad.new_zeros(PARTS, *target.shape)
        grad_edge = torch.empty_like(grad) if ctx.needs_input_grad[1] else None
        with backend.running:
            _attention_rows_backward(*index_arrays(pattern), target, *saved, ctx.slope,
                                     grad.numpy(), grad_target.numpy(), grad_source.numpy(),
                                     None if grad_edge is None else grad_edge.numpy(),
                                     np.uint64(pattern.channels))  # fmt: skip
        return None, grad_edge, grad_target, grad_source.sum(0), None


class _BalanceColumns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, weight: Tensor) -> Tensor:
        weight = weight.contiguous()
        scale = _column_sums(pattern, weight.numpy(), None).rsqrt()
        scale.masked_fill_(scale.isinf(), 0)
        ctx.pattern = pattern
        ctx.save_for_backward(weight, scale)
        return _scaled(pattern, weight, scale, None)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        weight, scale = ctx.saved_tensors
        grad = grads[0].contiguous()
        shift = _column_sums(ctx.pattern, weight.numpy(), grad.numpy())
        for _ in range(3):  # one by one: the cube may overflow where the product does not
            shift *= scale
        return None, _scaled(ctx.pattern, grad, scale, -0.5 * shift)


def index_arrays(pattern: Pattern) -> tuple[Any, Any]:
    """Row starts and columns of a pattern, for the kernels."""
    return backend.unsigned(pattern.start), backend.unsigned(pattern.column)


def _column_sums(pattern: Pattern, entry: Any, factor: Any) -> Tensor:
    """The sum of every stacked column, of the entries or of their products with a factor."""
    parts = np.zeros((PARTS, pattern.num_nodes * pattern.channels), entry.dtype)
    with backend.running:
        _sum_columns(*index_arrays(pattern), entry, factor, parts, np.uint64(pattern.channels))
    return torch.from_numpy(parts.sum(0))


def _scaled(pattern: Pattern, entry: Tensor, scale: Tensor, shift: Tensor | None) -> Tensor:
    """Every entry times the scale of its column, plus the shift of its column."""
    out = torch.empty_like(entry)
    with backend.running:
        _scale_columns(*index_arrays(pattern), entry.numpy(), scale.numpy(),
                       None if shift is None else shift.numpy(), out.numpy(),
                       np.uint64(pattern.channels))  # fmt: skip
    return out


# Unsigned numbers index an array without a check for "from the end".


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _attention_rows(start, column, edge, below, factor, weight, totals, channels):  # type: ignore[no-untyped-def]
    heads = np.uint64(below.shape[1])
    for row in prange(len(totals)):
        r = np.uint64(row)
        i, head = r // channels, r % channels * heads // channels
        first, last, target_factor = start[r], start[r + np.uint64(1)], below[i, head]
        total = weight.dtype.type(0)
        for e in range(first, last):
            j = np.uint64(column[e])
            weight[e] = edge[e] * max(target_factor * factor[j, head, 0], factor[j, head, 1])
            total += weight[e]
        totals[r] = total if total != 0 else weight.dtype.type(1)  # an empty row stays empty
        scale = 1 / total if total > 0 else total
        for e in range(first, last):
            weight[e] *= scale


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _attention_rows_backward(  # type: ignore[no-untyped-def]
    start, column, target, source, below, factor, weight, totals, slope, grad, grad_target,
    grad_source, grad_edge, channels,
):  # fmt: skip
    nodes, heads = target.shape
    parts = len(grad_source)
    for part in prange(parts):
        partial = grad_source[part]
        for i in range(np.uint64(part * nodes // parts), np.uint64((part + 1) * nodes // parts)):
            for q in range(channels):
                head, r = q * np.uint64(heads) // channels, i * channels + q
                first, last = start[r], start[r + np.uint64(1)]
                dot = weight.dtype.type(0)
                for e in range(first, last):
                    dot += weight[e] * grad[e]
                for e in range(first, last):
                    j, grad_score = np.uint64(column[e]), weight[e] * (grad[e] - dot)
                    if target[i, head] + source[j, head] <= 0:
                        grad_score *= slope
                    partial[j, head] += grad_score
                    grad_target[i, head] += grad_score
                    if grad_edge is not None:
                        # f / total, not weight / edge: right also where the edge value is zero.
                        f = max(below[i, head] * factor[j, head, 0], factor[j, head, 1])
                        grad_edge[e] = f / totals[r] * (grad[e] - dot)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _sum_columns(start, column, entry, factor, parts, channels):  # type: ignore[no-untyped-def]
    rows = len(start) - 1
    for part in prange(len(parts)):
        sums = parts[part]
        first, last = part * rows // len(parts), (part + 1) * rows // len(parts)
        for r in range(np.uint64(first), np.uint64(last)):
            q = r % channels
            for e in range(start[r], start[r + np.uint64(1)]):
                term = entry[e] if factor is None else entry[e] * factor[e]
                sums[column[e] * channels + q] += term


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _scale_columns(start, column, entry, scale, shift, out, channels):  # type: ignore[no-untyped-def]
    for row in prange(len(start) - 1):
        r = np.uint64(row)
        q = r % channels
        for e in range(start[r], start[r + np.uint64(1)]):
            stacked = column[e] * channels + q
            out[e] = entry[e] * scale[stacked]
            if shift is not None:
                out[e] += shift[stacked]
