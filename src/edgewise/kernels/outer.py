"""``B B^T`` on its own pattern, entry by entry: what a doubly stochastic operator stands for."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.two_hops import BLOCKS


def outer_values(
    factor: Pattern, value: Float[Tensor, " links"], outer: Pattern
) -> Float[Tensor, " entries"]:
    """The values of ``B B^T`` at the entries of ``outer``."""
    if backend.compiled(value):
        return _OuterValues.apply(factor, value, outer)
    return plain_outer_values(factor, value, value, outer)


def plain_outer_values(
    factor: Pattern,
    left: Float[Tensor, " links"],
    right: Float[Tensor, " links"],
    outer: Pattern,
) -> Float[Tensor, " entries"]:
    """``L R^T`` in torch, over every two-step path: the reference, and the path off the CPU.

    ``left`` and ``right`` are values on the one pattern ``factor``, and may be the same.
    """
    transpose = factor.transpose
    size = transpose.pattern.start.diff()
    column = factor.stacked_column
    link = torch.arange(factor.num_entries, device=left.device)
    link = link.repeat_interleave(size[column], output_size=factor.paths)
    before = size[column].cumsum(0) - size[column]
    offset = torch.arange(len(link), device=left.device) - before[link]
    other = transpose.order.long()[transpose.pattern.start[column][link] + offset]
    key = factor.row[link] * factor.num_nodes + factor.row[other] // factor.channels
    entry = torch.searchsorted(outer.row * outer.num_nodes + outer.column, key)
    return left.new_zeros(outer.num_entries).index_add(0, entry, left[link] * right[other])


class _OuterValues(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factor: Pattern, value: Tensor, outer: Pattern) -> Tensor:
        ctx.factor, ctx.outer = factor, outer
        value = value.contiguous()
        ctx.save_for_backward(value)
        out = value.new_empty(outer.num_entries)
        with backend.running:
            _outer(*factor_arrays(factor), value.detach().numpy(), outer.start.numpy(),
                   outer.column.numpy(), out.numpy(), factor.num_nodes,
                   factor.channels)  # fmt: skip
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, None]:
        (value,) = ctx.saved_tensors
        factor, outer, (grad,) = ctx.factor, ctx.outer, grads
        # The pattern is symmetric, so its transpose lists the mirrored entries in place.
        symmetric = grad + backend.take(grad, outer.transpose.order)
        out = torch.empty_like(value)
        with backend.running:
            _outer_backward(*factor_arrays(factor), value.numpy(), outer.start.numpy(),
                            outer.column.numpy(), symmetric.numpy(), out.numpy(),
                            factor.num_nodes, factor.channels)  # fmt: skip
        return None, out, None


def factor_arrays(factor: Pattern) -> tuple[Any, ...]:
    """Index arrays of a pattern and of its transpose, for the kernels."""
    transpose = factor.transpose
    return (
        factor.start.numpy(),
        factor.column.numpy(),
        transpose.pattern.start.numpy(),
        transpose.pattern.column.numpy(),
        transpose.order.numpy(),
    )


@backend.jit(parallel=True)
def _outer(  # type: ignore[no-untyped-def]
    start, column, column_start, column_row, order, value, outer_start, outer_column, out, nodes,
    channels,
):  # fmt: skip
    rows = nodes * channels
    for block in prange(BLOCKS):
        sums = np.zeros(nodes, value.dtype)
        for r in range(block * rows // BLOCKS, (block + 1) * rows // BLOCKS):
            for e in range(start[r], start[r + 1]):
                k = column[e] * channels + r % channels
                for m in range(column_start[k], column_start[k + 1]):
                    sums[column_row[m]] += value[e] * value[order[m]]
            for e in range(outer_start[r], outer_start[r + 1]):
                out[e] = sums[outer_column[e]]
                sums[outer_column[e]] = 0


@backend.jit(parallel=True)
def _outer_backward(  # type: ignore[no-untyped-def]
    start, column, column_start, column_row, order, value, outer_start, outer_column, grad, out,
    nodes, channels,
):  # fmt: skip
    rows = nodes * channels
    for block in prange(BLOCKS):
        row_grad = np.zeros(nodes, value.dtype)
        for r in range(block * rows // BLOCKS, (block + 1) * rows // BLOCKS):
            for e in range(outer_start[r], outer_start[r + 1]):
                row_grad[outer_column[e]] = grad[e]
            for e in range(start[r], start[r + 1]):
                k = column[e] * channels + r % channels
                total = value.dtype.type(0)
                for m in range(column_start[k], column_start[k + 1]):
                    total += row_grad[column_row[m]] * value[order[m]]
                out[e] = total
            for e in range(outer_start[r], outer_start[r + 1]):
                row_grad[outer_column[e]] = 0
