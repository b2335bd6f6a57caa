"""Stacked sparse matrix times node features, with the gradients of both.

Features come in groups: ``z`` is ``[nodes, groups, width]``, and channel ``q`` of ``Q`` reads
group ``q * groups // Q``. One group is shared by all channels; ``Q`` groups are one each; in
between stand attention heads. The result may be summed over groups of channels likewise.
"""

from typing import Any

import torch
from jaxtyping import Float
from numba import njit, prange
from torch import Tensor

from edgewise.kernels import backend
from edgewise.kernels.pattern import Pattern


def product(
    pattern: Pattern,
    value: Float[Tensor, " entries"],
    z: Float[Tensor, "nodes groups width"],
    *,
    transposed: bool = False,
    summed: bool = False,
) -> Float[Tensor, "nodes channels_or_one width"]:
    """``out[i, q] = sum_j A[i, j, q] z[j, group(q)]``, or with ``A[j, i, q]`` if transposed.

    If ``summed``, the channels are added up into one.
    """
    if backend.compiled(value, z):
        return _Product.apply(pattern, value, z, transposed, 1 if summed else pattern.channels)
    out = plain_product(pattern, value, z, transposed=transposed)
    return out.sum(1, keepdim=True) if summed else out


def plain_product(
    pattern: Pattern,
    value: Float[Tensor, " entries"],
    z: Float[Tensor, "nodes groups width"],
    *,
    transposed: bool = False,
) -> Float[Tensor, "nodes channels width"]:
    """The same in torch, gathered and added up: the reference, and the path off the CPU."""
    nodes, groups, width = z.shape
    channels = pattern.channels
    channel = pattern.row % channels
    target, source = pattern.row, pattern.column.long()
    if transposed:
        target, source = pattern.stacked_column, pattern.row // channels
    message = value.unsqueeze(1) * z[source, channel * groups // channels]
    out = message.new_zeros(nodes * channels, width).index_add(0, target, message)
    if pattern.lone_loops:
        lone = pattern.lone
        own = z[lone // channels, lone % channels * groups // channels]
        out = out.index_add(0, lone, own)
    return out.reshape(nodes, channels, width)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, pattern: Pattern, value: Tensor, z: Tensor, transposed: bool, groups: int
    ) -> Tensor:
        ctx.pattern, ctx.transposed = pattern, transposed
        ctx.save_for_backward(value, z)
        out = z.new_empty(z.size(0), groups, z.size(2))
        along, order = _oriented(pattern, transposed)
        multiply(along.start, along.column, order, value, z, out, *_rows_of(along))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        value, z = ctx.saved_tensors
        pattern, (grad,) = ctx.pattern, grads
        along, order = _oriented(pattern, not ctx.transposed)
        grad_z = torch.empty_like(z, memory_format=torch.contiguous_format)
        if not ctx.needs_input_grad[1]:
            multiply(along.start, along.column, order, value, grad, grad_z, *_rows_of(along))
            return None, None, grad_z, None, None
        # Read and written in the order of the walk: two gathers cost far less than scattering.
        if order is not None:
            value = backend.take(value, order)
        sampled = torch.empty_like(value, memory_format=torch.contiguous_format)
        with backend.running:
            _multiply_and_sample(backend.unsigned(along.start), backend.unsigned(along.column),
                                 _array(value), _array(grad), _array(z), grad_z.numpy(),
                                 sampled.numpy(), *_rows_of(along))  # fmt: skip
        if order is not None:
            sampled = backend.take(sampled, pattern.transpose.inverse)
        return None, sampled, grad_z, None, None


def multiply(
    start: Tensor,
    column: Tensor,
    order: Tensor | None,
    value: Tensor,
    z: Tensor,
    out: Tensor,
    channels: int = 1,
    lone_loops: bool = False,
) -> None:
    """The compiled product into ``out``, whose groups decide which channels are summed."""
    with backend.running:
        _multiply(backend.unsigned(start), backend.unsigned(column), _optional(order),
                  _array(value), _array(z), out.numpy(), channels, lone_loops)  # fmt: skip


def _oriented(pattern: Pattern, transposed: bool) -> tuple[Pattern, Tensor | None]:
    """The pattern to walk along, and where its values stand (None: in order)."""
    if not transposed:
        return pattern, None
    return pattern.transpose.pattern, pattern.transpose.order


def _rows_of(pattern: Pattern) -> tuple[int, bool]:
    return pattern.channels, pattern.lone_loops


def _optional(tensor: Tensor | None) -> Any:
    return None if tensor is None else backend.unsigned(tensor)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


# In both kernels the first entry of a row is assigned and the others are added: many rows have
# one entry only, and need not be cleared before.
@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def _multiply(start, column, order, value, z, out, channels, lone_loops):  # type: ignore[no-untyped-def]
    nodes, groups_out, width = out.shape
    summed, shared = channels // groups_out, channels // z.shape[1]
    for i in prange(nodes):
        for group in range(groups_out):
            empty = True
            for q in range(group * summed, (group + 1) * summed):
                source = q // shared
                first, last = start[i * channels + q], start[i * channels + q + 1]
                if lone_loops and first == last:
                    empty = _take_up(z[i, source], out[i, group], empty)
                for e in range(first, last):
                    weight = value[e if order is None else order[e]]
                    j = column[e]
                    if empty:
                        for f in range(width):
                            out[i, group, f] = weight * z[j, source, f]
                        empty = False
                    else:
                        for f in range(width):
                            out[i, group, f] += weight * z[j, source, f]
            if empty:
                for f in range(width):
                    out[i, group, f] = 0


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def _multiply_and_sample(  # type: ignore[no-untyped-def]
    start, column, value, grad, z, grad_z, sampled, channels, lone_loops
):
    """The product with ``grad``, and beside it the dot of ``z`` and ``grad`` at every entry."""
    nodes, groups, width = grad_z.shape
    summed, shared = channels // groups, channels // grad.shape[1]
    for i in prange(nodes):
        for group in range(groups):
            empty = True
            for q in range(group * summed, (group + 1) * summed):
                source = q // shared
                first, last = start[i * channels + q], start[i * channels + q + 1]
                if lone_loops and first == last:
                    empty = _take_up(grad[i, source], grad_z[i, group], empty)
                for e in range(first, last):
                    weight = value[e]
                    j = column[e]
                    dot = weight * 0
                    for f in range(width):
                        dot += z[i, group, f] * grad[j, source, f]
                    sampled[e] = dot
                    if empty:
                        for f in range(width):
                            grad_z[i, group, f] = weight * grad[j, source, f]
                        empty = False
                    else:
                        for f in range(width):
                            grad_z[i, group, f] += weight * grad[j, source, f]
            if empty:
                for f in range(width):
                    grad_z[i, group, f] = 0


@njit(inline="always")
def _take_up(own, out, empty):  # type: ignore[no-untyped-def]
    """Along a self-loop of 1; gives that the sum is not empty any more."""
    for f in range(len(out)):
        out[f] = own[f] if empty else out[f] + own[f]
    return False
