"""``B B^T`` on its own pattern, entry by entry: what a doubly stochastic operator stands for."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.dropout import two_masks
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.two_hops import RUNS


def outer_values(
    factor: Pattern, value: Float[Tensor, " links"], both: Pattern
) -> Float[Tensor, " entries"]:
    """The values of ``B B^T`` at the entries of ``both``."""
    if backend.compiled(value):
        return _OuterValues.apply(factor, value, both)
    return plain_outer_values(factor, value, value, both)


def plain_outer_values(
    factor: Pattern,
    left: Float[Tensor, " links"],
    right: Float[Tensor, " links"],
    both: Pattern,
) -> Float[Tensor, " entries"]:
    """``L R^T`` in torch, over every two-step path: the reference, and the path off the CPU.

    ``left`` and ``right`` are values on the one pattern ``factor``, and may be the same.
    """
    turned = factor.transpose
    size = turned.pattern.start.diff()
    hub = factor.stacked_column
    here = torch.arange(factor.num_entries, device=left.device)
    here = here.repeat_interleave(size[hub], output_size=factor.paths)
    before = size[hub].cumsum(0) - size[hub]
    step = torch.arange(len(here), device=left.device) - before[here]
    there = turned.order.long()[turned.pattern.start[hub][here] + step]
    key = factor.row[here] * factor.num_nodes + factor.row[there] // factor.channels
    place = torch.searchsorted(both.row * both.num_nodes + both.column, key)
    return left.new_zeros(both.num_entries).index_add(0, place, left[here] * right[there])


def dropped_outer_values(
    factor: Pattern,
    value: Float[Tensor, " links"],
    kept: UInt8[Tensor, " links"],
    scale: float,
    both: Pattern,
) -> tuple[Float[Tensor, " entries"], Float[Tensor, " entries"]]:
    """``(m B) B^T`` at the entries of ``both``, for each of two masks ``m`` on the links of ``B``.

    ``kept`` tells which of the masks keep a link (:func:`~edgewise.kernels.dropout.kept_by_two`),
    and ``scale`` is what a kept link is multiplied by.
    """
    if backend.compiled(value):
        return _DroppedOuterValues.apply(factor, value, kept, scale, both)
    first, second = (
        plain_outer_values(factor, value * mask, value, both)
        for mask in two_masks(kept, scale, value.dtype)
    )
    return first, second


class _OuterValues(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, factor: Pattern, value: Tensor, both: Pattern) -> Tensor:
        ctx.factor, ctx.both = factor, both
        value = value.contiguous()
        ctx.save_for_backward(value)
        out = value.new_empty(both.num_entries)
        with backend.running:
            _outer(*_factor_arrays(factor), value.detach().numpy(), both.start.numpy(),
                   both.column.numpy(), out.numpy(), factor.num_nodes, factor.channels)  # fmt: skip
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, None]:
        (value,) = ctx.saved_tensors
        factor, both, (grad,) = ctx.factor, ctx.both, grads
        # The pattern is symmetric, so its transpose lists the mirrored entries in place.
        symmetric = grad + backend.take(grad, both.transpose.order)
        out = torch.empty_like(value)
        with backend.running:
            _outer_backward(*_factor_arrays(factor), value.numpy(), both.start.numpy(),
                            both.column.numpy(), symmetric.numpy(), out.numpy(),
                            factor.num_nodes, factor.channels)  # fmt: skip
        return None, out, None


class _DroppedOuterValues(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, factor: Pattern, value: Tensor, kept: Tensor, scale: float, both: Pattern
    ) -> tuple[Tensor, Tensor]:
        ctx.factor, ctx.kept, ctx.scale, ctx.both = factor, kept.numpy(), scale, both
        value = value.contiguous()
        ctx.save_for_backward(value)
        first, second = value.new_empty(2, both.num_entries)
        with backend.running:
            _dropped_outer(*_factor_arrays(factor), value.detach().numpy(), ctx.kept, scale,
                           both.start.numpy(), both.column.numpy(), first.numpy(),
                           second.numpy(), factor.num_nodes, factor.channels)  # fmt: skip
        return first, second

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (value,) = ctx.saved_tensors
        factor, both = ctx.factor, ctx.both
        if not ctx.needs_input_grad[1]:
            return None, None, None, None, None
        grads = tuple(grad.contiguous() for grad in grads)
        mirrored = [backend.take(grad, both.transpose.order) for grad in grads]
        along = torch.stack([*grads, *mirrored], dim=1)
        out = torch.empty_like(value)
        with backend.running:
            _dropped_outer_backward(*_factor_arrays(factor), value.numpy(), ctx.kept, ctx.scale,
                                    both.start.numpy(), both.column.numpy(), along.numpy(),
                                    out.numpy(), factor.num_nodes, factor.channels)  # fmt: skip
        return None, out, None, None, None


def _factor_arrays(factor: Pattern) -> tuple[Any, ...]:
    turned = factor.transpose
    return (
        factor.start.numpy(),
        factor.column.numpy(),
        turned.pattern.start.numpy(),
        turned.pattern.column.numpy(),
        turned.order.numpy(),
    )


@backend.jit(parallel=True)
def _outer(  # type: ignore[no-untyped-def]
    start, column, hub_start, member, order, value, both_start, both_column, out, nodes, channels
):
    rows = nodes * channels
    for run in prange(RUNS):
        sums = np.zeros(nodes, value.dtype)
        for r in range(run * rows // RUNS, (run + 1) * rows // RUNS):
            for e in range(start[r], start[r + 1]):
                hub = column[e] * channels + r % channels
                for m in range(hub_start[hub], hub_start[hub + 1]):
                    sums[member[m]] += value[e] * value[order[m]]
            for e in range(both_start[r], both_start[r + 1]):
                out[e] = sums[both_column[e]]
                sums[both_column[e]] = 0


@backend.jit(parallel=True)
def _outer_backward(  # type: ignore[no-untyped-def]
    start, column, hub_start, member, order, value, both_start, both_column, grad, out,
    nodes, channels,
):  # fmt: skip
    rows = nodes * channels
    for run in prange(RUNS):
        along = np.zeros(nodes, value.dtype)
        for r in range(run * rows // RUNS, (run + 1) * rows // RUNS):
            for e in range(both_start[r], both_start[r + 1]):
                along[both_column[e]] = grad[e]
            for e in range(start[r], start[r + 1]):
                hub = column[e] * channels + r % channels
                total = value.dtype.type(0)
                for m in range(hub_start[hub], hub_start[hub + 1]):
                    total += along[member[m]] * value[order[m]]
                out[e] = total
            for e in range(both_start[r], both_start[r + 1]):
                along[both_column[e]] = 0


@backend.jit(parallel=True)
def _dropped_outer(  # type: ignore[no-untyped-def]
    start, column, hub_start, member, order, value, kept, scale, both_start, both_column, first,
    second, nodes, channels,
):  # fmt: skip
    rows, nothing, scale = nodes * channels, value.dtype.type(0), value.dtype.type(scale)
    for run in prange(RUNS):
        sums = np.zeros((nodes, 2), value.dtype)
        for r in range(run * rows // RUNS, (run + 1) * rows // RUNS):
            for e in range(start[r], start[r + 1]):
                if kept[e] == 0:
                    continue
                link = scale * value[e]
                one, other = link if kept[e] & 1 else nothing, link if kept[e] & 2 else nothing
                hub = column[e] * channels + r % channels
                for m in range(hub_start[hub], hub_start[hub + 1]):
                    j, linked = member[m], value[order[m]]
                    sums[j, 0] += one * linked
                    sums[j, 1] += other * linked
            for e in range(both_start[r], both_start[r + 1]):
                j = both_column[e]
                first[e], second[e] = sums[j, 0], sums[j, 1]
                sums[j, 0] = sums[j, 1] = 0


@backend.jit(parallel=True)
def _dropped_outer_backward(  # type: ignore[no-untyped-def]
    start, column, hub_start, member, order, value, kept, scale, both_start, both_column, grad,
    out, nodes, channels,
):  # fmt: skip
    """``grad`` holds the gradients of both products, and those of the mirrored entries."""
    rows, nothing, scale = nodes * channels, value.dtype.type(0), value.dtype.type(scale)
    for run in prange(RUNS):
        along = np.zeros((nodes, 4), value.dtype)
        for r in range(run * rows // RUNS, (run + 1) * rows // RUNS):
            for e in range(both_start[r], both_start[r + 1]):
                along[both_column[e]] = grad[e]
            for e in range(start[r], start[r + 1]):
                hub, mine = column[e] * channels + r % channels, kept[e]
                total = nothing
                for m in range(hub_start[hub], hub_start[hub + 1]):
                    j, linked = along[member[m]], value[order[m]]
                    theirs = kept[order[m]]
                    gain = j[0] if mine & 1 else nothing
                    gain += j[1] if mine & 2 else nothing
                    gain += j[2] if theirs & 1 else nothing
                    gain += j[3] if theirs & 2 else nothing
                    total += gain * linked
                out[e] = scale * total
            for e in range(both_start[r], both_start[r + 1]):
                along[both_column[e]] = 0
