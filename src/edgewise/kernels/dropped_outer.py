"""``B B^T`` under dropout on the links of its first factor, for two masks at once."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.dropout import two_masks
from edgewise.kernels.outer import factor_arrays, plain_outer_values
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.two_hops import BLOCKS


def dropped_outer_values(
    factor: Pattern,
    value: Float[Tensor, " links"],
    kept: UInt8[Tensor, " links"],
    scale: float,
    outer: Pattern,
) -> tuple[Float[Tensor, " entries"], Float[Tensor, " entries"]]:
    """``(m B) B^T`` at the entries of ``outer``, for each of two masks ``m`` on the links of ``B``.

    ``kept`` says which of the masks keep a link (:func:`~edgewise.kernels.dropout.kept_by_two`),
    and ``scale`` is the factor of a kept link.
    """
    if backend.compiled(value):
        return _DroppedOuterValues.apply(factor, value, kept, scale, outer)
    first, second = (
        plain_outer_values(factor, value * mask, value, outer)
        for mask in two_masks(kept, scale, value.dtype)
    )
    return first, second


class _DroppedOuterValues(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, factor: Pattern, value: Tensor, kept: Tensor, scale: float, outer: Pattern
    ) -> tuple[Tensor, Tensor]:
        ctx.factor, ctx.kept, ctx.scale, ctx.outer = factor, kept.numpy(), scale, outer
        value = value.contiguous()
        ctx.save_for_backward(value)
        first, second = value.new_empty(2, outer.num_entries)
        with backend.running:
            _dropped_outer(*factor_arrays(factor), value.detach().numpy(), ctx.kept, scale,
                           outer.start.numpy(), outer.column.numpy(), first.numpy(),
                           second.numpy(), factor.num_nodes, factor.channels)  # fmt: skip
        return first, second

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (value,) = ctx.saved_tensors
        factor, outer = ctx.factor, ctx.outer
        if not ctx.needs_input_grad[1]:
            return None, None, None, None, None
        grads = tuple(grad.contiguous() for grad in grads)
        mirrored = [backend.take(grad, outer.transpose.order) for grad in grads]
        row_grad = torch.stack([*grads, *mirrored], dim=1)
        out = torch.empty_like(value)
        with backend.running:
            _dropped_outer_backward(*factor_arrays(factor), value.numpy(), ctx.kept, ctx.scale,
                                    outer.start.numpy(), outer.column.numpy(), row_grad.numpy(),
                                    out.numpy(), factor.num_nodes, factor.channels)  # fmt: skip
        return None, out, None, None, None


@backend.jit(parallel=True)
def _dropped_outer(  # type: ignore[no-untyped-def]
    start, column, column_start, column_row, order, value, kept, scale, outer_start,
    outer_column, first, second, nodes, channels,
):  # fmt: skip
    rows, zero, scale = nodes * channels, value.dtype.type(0), value.dtype.type(scale)
    for block in prange(BLOCKS):
        sums = np.zeros((nodes, 2), value.dtype)
        for r in range(block * rows // BLOCKS, (block + 1) * rows // BLOCKS):
            for e in range(start[r], start[r + 1]):
                if kept[e] == 0:
                    continue
                link = scale * value[e]
                link_1, link_2 = link if kept[e] & 1 else zero, link if kept[e] & 2 else zero
                k = column[e] * channels + r % channels
                for m in range(column_start[k], column_start[k + 1]):
                    j, other_link = column_row[m], value[order[m]]
                    sums[j, 0] += link_1 * other_link
                    sums[j, 1] += link_2 * other_link
            for e in range(outer_start[r], outer_start[r + 1]):
                j = outer_column[e]
                first[e], second[e] = sums[j, 0], sums[j, 1]
                sums[j, 0] = sums[j, 1] = 0


@backend.jit(parallel=True)
def _dropped_outer_backward(  # type: ignore[no-untyped-def]
    start, column, column_start, column_row, order, value, kept, scale, outer_start,
    outer_column, grad, out, nodes, channels,
):  # fmt: skip
    """``grad`` holds the gradients of both products, and those of the mirrored entries."""
    rows, zero, scale = nodes * channels, value.dtype.type(0), value.dtype.type(scale)
    for block in prange(BLOCKS):
        row_grad = np.zeros((nodes, 4), value.dtype)
        for r in range(block * rows // BLOCKS, (block + 1) * rows // BLOCKS):
            for e in range(outer_start[r], outer_start[r + 1]):
                for part in range(4):  # number by number: assigned rows take seconds to compile
                    row_grad[outer_column[e], part] = grad[e, part]
            for e in range(start[r], start[r + 1]):
                k, own_mask = column[e] * channels + r % channels, kept[e]
                total = zero
                for m in range(column_start[k], column_start[k + 1]):
                    j, other_link, other_mask = column_row[m], value[order[m]], kept[order[m]]
                    grad_pair = row_grad[j, 0] if own_mask & 1 else zero
                    grad_pair += row_grad[j, 1] if own_mask & 2 else zero
                    grad_pair += row_grad[j, 2] if other_mask & 1 else zero
                    grad_pair += row_grad[j, 3] if other_mask & 2 else zero
                    total += grad_pair * other_link
                out[e] = scale * total
            for e in range(outer_start[r], outer_start[r + 1]):
                for part in range(4):
                    row_grad[outer_column[e], part] = 0
