"""Stacked sparse matrix times node features, with the gradients of both.

Features come in groups: ``z`` is ``[nodes, groups, width]``, and channel ``q`` of ``Q`` reads
group ``q * groups // Q``. One group is shared by all channels; ``Q`` groups are one each; in
between stand attention heads. The result may be summed over groups of channels likewise.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from edgewise.kernels import backend
from edgewise.kernels.lanes import added_up, fetch, load, nothing, plus, store
from edgewise.kernels.pattern import Pattern

# Unsigned numbers index an array without a check for "from the end".
NONE, ONE = np.uint64(0), np.uint64(1)
# The gradients gather rows from anywhere: where these are too many bytes for the nearest caches,
# they are fetched a few entries ahead. A mere product gains nothing by it.
AHEAD, NEAR = np.uint64(8), 2**19


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
    given = torch.promote_types(value.dtype, z.dtype)
    value, z = (tensor.to(backend.accumulator(value, z)) for tensor in (value, z))
    message = value.unsqueeze(1) * z[source, channel * groups // channels]
    out = message.new_zeros(nodes * channels, width).index_add(0, target, message)
    if pattern.lone_loops:
        lone = pattern.lone
        own = z[lone // channels, lone % channels * groups // channels]
        out = out.index_add(0, lone, own)
    return out.reshape(nodes, channels, width).to(given)


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
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        value, z = ctx.saved_tensors
        pattern, (grad,) = ctx.pattern, grads
        along, order = _oriented(pattern, not ctx.transposed)
        if not ctx.needs_input_grad[1]:
            grad_z = torch.empty_like(z, memory_format=torch.contiguous_format)
            multiply(along.start, along.column, order, value, grad, grad_z, *_rows_of(along))
            return None, None, grad_z, None, None
        # Read and written in the order of the walk: two gathers cost far less than scattering.
        value = value if order is None else backend.take(value, order)
        sampled = torch.empty_like(value, memory_format=torch.contiguous_format)
        lanes, grad_wide, z_wide = _fitted(grad, z)
        grad_z = torch.empty_like(z_wide, memory_format=torch.contiguous_format)
        with backend.running:
            _multiply_and_sample(backend.unsigned(along.start), backend.unsigned(along.column),
                                 _array(value), _rows(grad_wide), _rows(z_wide), _rows(grad_z),
                                 sampled.numpy(), _groups(along.channels, grad, z),
                                 along.lone_loops, _ahead(grad_wide), lanes)  # fmt: skip
        grad_z = grad_z[..., : z.size(2)]
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
    """The compiled product into ``out``, whose groups decide which channels are summed.

    ``order`` tells where the values stand (None: in order).
    """
    value = value if order is None else backend.take(value, order)
    lanes, wide = _fitted(z)
    result = out if wide is z else out.new_empty(*out.shape[:2], wide.size(2))
    with backend.running:
        _multiply(backend.unsigned(start), backend.unsigned(column), _array(value), _rows(wide),
                  _rows(result), _groups(channels, z, out), lone_loops, lanes)  # fmt: skip
    if result is not out:
        out.copy_(result[..., : out.size(2)])


def _oriented(pattern: Pattern, transposed: bool) -> tuple[Pattern, Tensor | None]:
    """The pattern to walk along, and where its values stand (None: in order)."""
    if not transposed:
        return pattern, None
    return pattern.transpose.pattern, pattern.transpose.order


def _rows_of(pattern: Pattern) -> tuple[int, bool]:
    return pattern.channels, pattern.lone_loops


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _rows(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().flatten(0, 1).numpy()


def _groups(channels: int, read: Tensor, written: Tensor) -> tuple[np.uint64, ...]:
    return np.uint64(channels), np.uint64(read.size(1)), np.uint64(written.size(1))


def _fitted(*tensors: Tensor) -> tuple[Any, ...]:
    """Registers for the width of the tensors, as a tuple of their size, and the tensors.

    Their columns are filled up with zeros where they do not fill registers.
    """
    width = tensors[0].size(-1)
    if width <= 16:
        size = next(size for size in (4, 8, 16) if width <= size)
    else:
        size = next((size for size in (64, 32) if width % size == 0), 16)
    missing = -width % size if width else size  # the dots of nothing are to be written, too
    return (0,) * size, *(pad(t, (0, missing)) if missing else t for t in tensors)


def _ahead(read: Tensor) -> np.uint64:
    return AHEAD if read.numel() * read.element_size() > NEAR else NONE


# ``groups`` tells of how many rows a node consists in the pattern, in what is read and in what is
# written. Columns are summed in registers, one group of them after the other.


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _multiply(start, column, value, z, out, groups, lone_loops, lanes):  # type: ignore[no-untyped-def]
    channels, groups_in, groups_out = groups
    summed, shared = channels // groups_out, channels // groups_in
    for node in prange(np.uint64(len(out)) // groups_out):
        i, zero = np.uint64(node), nothing(out, lanes)
        for row in range(i * groups_out, (i + ONE) * groups_out):
            channel = row % groups_out * summed
            for f in range(NONE, np.uint64(out.shape[1]), np.uint64(len(lanes))):
                total = zero
                for q in range(channel, channel + summed):
                    source = q // shared
                    first, last = start[i * channels + q], start[i * channels + q + ONE]
                    if lone_loops and first == last:
                        total = plus(total, 1, load(zero, z, i * groups_in + source, f))
                    for e in range(first, last):
                        terms = load(zero, z, column[e] * groups_in + source, f)
                        total = plus(total, value[e], terms)
                store(total, out, row, f)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _multiply_and_sample(  # type: ignore[no-untyped-def]
    start, column, value, grad, z, grad_z, sampled, groups, lone_loops, ahead, lanes
):
    """The product with ``grad``, and beside it the dot of ``z`` and ``grad`` at every entry."""
    channels, groups_in, groups_out = groups
    summed, shared = channels // groups_out, channels // groups_in
    for node in prange(np.uint64(len(z)) // groups_out):
        i, zero = np.uint64(node), nothing(z, lanes)
        for row in range(i * groups_out, (i + ONE) * groups_out):
            channel = row % groups_out * summed
            for f in range(NONE, np.uint64(z.shape[1]), np.uint64(len(lanes))):
                total, mine = zero, load(zero, z, row, f)
                for q in range(channel, channel + summed):
                    source = q // shared
                    first, last = start[i * channels + q], start[i * channels + q + ONE]
                    if lone_loops and first == last:
                        total = plus(total, 1, load(zero, grad, i * groups_in + source, f))
                    for e in range(first, last):
                        if ahead:
                            _fetch_ahead(grad, column, e + ahead, groups_in, source, f, lanes)
                        terms = load(zero, grad, column[e] * groups_in + source, f)
                        total = plus(total, value[e], terms)
                        dot = added_up(plus(zero, mine, terms))
                        sampled[e] = dot if f == NONE else sampled[e] + dot
                store(total, grad_z, row, f)


@backend.jit()
def _fetch_ahead(rows, column, e, groups, group, first, lanes):  # type: ignore[no-untyped-def]
    row = column[min(e, np.uint64(len(column)) - ONE)] * groups + group
    line = np.uint64(64 // rows.itemsize)
    for f in range(first, first + np.uint64(len(lanes)), line):
        fetch(rows, (row, f))
