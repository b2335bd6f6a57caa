"""Stacked sparse matrix times node features (SpMM), with the gradients of both.

Features come in groups: ``z`` is ``[nodes, groups, width]``, and channel ``q`` of ``Q`` reads
group ``q * groups // Q``. One group is shared by all channels; ``Q`` groups are one each; in
between stand attention heads. The result may be summed over groups of channels likewise.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.lanes import (
    LINE_BYTES,
    horizontal_sum,
    load,
    multiply_add,
    prefetch_register,
    store,
    zeros,
)
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.registers import padded_to_registers

# Unsigned numbers index an array without a check for "from the end".
ZERO, ONE = np.uint64(0), np.uint64(1)
# Gradients fetch rows of more bytes than the nearest caches hold a few entries ahead.
ENTRIES_AHEAD, CACHE_BYTES = np.uint64(8), 2**19
# A product alone prefetches the first entries of a node some places ahead, and the others of a long
# row as above. Rows of one cache line gain by it, half of the time on a graph of 500,000 nodes;
# wider ones lose (64 columns on PubMed, 15 MB: a fifth), unless the last cache does not hold them.
NODES_AHEAD, NARROW_BYTES, WIDE_BYTES = np.uint64(6), 2**21, 2**25


def product(
    pattern: Pattern,
    value: Float[Tensor, " entries"],
    z: Float[Tensor, "nodes groups width"],
    *,
    transposed: bool = False,
    summed: bool = False,
    rows: int | None = None,
    turned: Callable[[], Tensor | None] = lambda: None,
) -> Float[Tensor, "rows channels_or_one width"]:
    """``out[i, q] = sum_j A[i, j, q] z[j, group(q)]``, or with ``A[j, i, q]`` if transposed.

    If ``summed``, the channels are added up into one. With ``rows``, all entries stand in the first
    so many rows, and the result has no others. ``turned`` gives the values in the order of the
    transpose, where somebody keeps them.
    """
    if backend.compiled(value, z):
        groups = 1 if summed else pattern.channels
        return _Product.apply(pattern, value, z, transposed, groups, rows, turned)
    out = plain_product(pattern, value, z, transposed=transposed)[:rows]
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
        ctx: Any,
        pattern: Pattern,
        value: Tensor,
        z: Tensor,
        transposed: bool,
        groups: int,
        rows: int | None,
        turned: Callable[[], Tensor | None],
    ) -> Tensor:
        ctx.pattern, ctx.transposed, ctx.turned = pattern, transposed, turned
        ctx.save_for_backward(value, z)
        out = z.new_empty(z.size(0) if rows is None else rows, groups, z.size(2))
        walked, order, value = _oriented(pattern, transposed, value, turned)
        multiply(walked.start, walked.column, order, value, z, out, *_rows_of(walked))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        value, z = ctx.saved_tensors
        pattern, (grad,) = ctx.pattern, grads
        walked, order, value = _oriented(pattern, not ctx.transposed, value, ctx.turned)
        if not ctx.needs_input_grad[1]:
            grad_z = torch.empty_like(z, memory_format=torch.contiguous_format)
            multiply(walked.start, walked.column, order, value, grad, grad_z, *_rows_of(walked))
            return None, None, grad_z, None, None, None, None
        # In the order of the transpose, and then put back: a gather costs far less than scattering.
        sampled = torch.empty_like(value, memory_format=torch.contiguous_format)
        lanes, grad_wide, z_wide = padded_to_registers(grad, z)
        grad_z = torch.empty_like(z_wide, memory_format=torch.contiguous_format)
        value, places = _read_once(value, order, grad_wide, lanes)
        with backend.running:
            _multiply_and_sample(backend.unsigned(walked.start), backend.unsigned(walked.column),
                                 places, _array(value), _rows(grad_wide), _rows(z_wide),
                                 _rows(grad_z), sampled.numpy(), _groups(walked.channels, grad, z),
                                 walked.lone_loops, _entries_ahead(grad_wide), lanes)  # fmt: skip
        grad_z = grad_z[..., : z.size(2)]
        if order is not None:
            sampled = backend.take(sampled, pattern.transpose.inverse)
        return None, sampled, grad_z, None, None, None, None


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

    ``order`` is the permutation of the values (None: they are in order).
    """
    lanes, wide = padded_to_registers(z)
    result = out if wide is z else out.new_empty(*out.shape[:2], wide.size(2))
    value, places = _read_once(value, order, wide, lanes)
    with backend.running:
        _multiply(backend.unsigned(start), backend.unsigned(column), places, _array(value),
                  _rows(wide), _rows(result), _groups(channels, z, out), lone_loops,
                  _nodes_ahead(wide), lanes)  # fmt: skip
    if result is not out:
        out.copy_(result[..., : out.size(2)])


def _oriented(
    pattern: Pattern, transposed: bool, value: Tensor, turned: Callable[[], Tensor | None]
) -> tuple[Pattern, Tensor | None, Tensor]:
    """The pattern to walk along, the permutation of its values (None: in order), and these."""
    if not transposed:
        return pattern, None, value
    kept = turned()
    if kept is not None:
        return pattern.transpose.pattern, None, kept
    return pattern.transpose.pattern, pattern.transpose.order, value


def _read_once(
    value: Tensor, order: Tensor | None, wide: Tensor, lanes: tuple[int, ...]
) -> tuple[Tensor, Any]:
    """Values and their places (None: in order). Those that are read again for each register of
    features are put in order first.
    """
    if order is None or wide.size(2) > len(lanes):
        return value if order is None else backend.take(value, order), None
    return value, backend.unsigned(order)


def _rows_of(pattern: Pattern) -> tuple[int, bool]:
    return pattern.channels, pattern.lone_loops


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


def _rows(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().flatten(0, 1).numpy()


def _groups(channels: int, read: Tensor, written: Tensor) -> tuple[np.uint64, ...]:
    return np.uint64(channels), np.uint64(read.size(1)), np.uint64(written.size(1))


def _entries_ahead(read: Tensor) -> np.uint64:
    return ENTRIES_AHEAD if read.numel() * read.element_size() > CACHE_BYTES else ZERO


def _nodes_ahead(read: Tensor) -> np.uint64:
    cached = NARROW_BYTES if read.size(2) * read.element_size() <= LINE_BYTES else WIDE_BYTES
    return NODES_AHEAD if read.numel() * read.element_size() > cached else ZERO


# ``groups`` is the number of rows of a node in the pattern, in the input and in the output.
# Features are summed in registers, one register of them after the other.


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _multiply(start, column, places, value, z, out, groups, lone_loops, ahead, lanes):  # type: ignore[no-untyped-def]
    channels, groups_in, groups_out = groups
    nodes, summed = np.uint64(len(out)) // groups_out, channels // groups_out
    for node in prange(nodes):
        i, zero = np.uint64(node), zeros(out, lanes)
        later = min(i + ahead, nodes - ONE)
        for group in range(groups_out):
            row, channel = i * groups_out + group, group * summed
            for f in range(ZERO, np.uint64(out.shape[1]), np.uint64(len(lanes))):
                total = zero
                for q in range(channel, channel + summed):
                    source = _group(q, channels, groups_in)
                    if ahead:
                        place = later * channels + q
                        _prefetch_first(zero, z, start, column, place, groups_in, source, f)
                    first, last = start[i * channels + q], start[i * channels + q + ONE]
                    if lone_loops and first == last:
                        total = multiply_add(total, 1, load(zero, z, i * groups_in + source, f))
                    for e in range(first, last):
                        if ahead and e + ENTRIES_AHEAD < last:
                            row_ahead = column[e + ENTRIES_AHEAD] * groups_in + source
                            prefetch_register(zero, z, row_ahead, f)
                        terms = load(zero, z, column[e] * groups_in + source, f)
                        total = multiply_add(total, _value(value, places, e), terms)
                store(total, out, row, f)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _multiply_and_sample(  # type: ignore[no-untyped-def]
    start, column, places, value, grad, z, grad_z, sampled, groups, lone_loops, ahead, lanes
):
    """The product with ``grad``, and the dot of ``z`` and ``grad`` at every entry (SDDMM)."""
    channels, groups_in, groups_out = groups
    summed, entries = channels // groups_out, np.uint64(len(column))
    for node in prange(np.uint64(len(z)) // groups_out):
        i, zero = np.uint64(node), zeros(z, lanes)
        for group in range(groups_out):
            row, channel = i * groups_out + group, group * summed
            for f in range(ZERO, np.uint64(z.shape[1]), np.uint64(len(lanes))):
                total, own = zero, load(zero, z, row, f)
                for q in range(channel, channel + summed):
                    source = _group(q, channels, groups_in)
                    first, last = start[i * channels + q], start[i * channels + q + ONE]
                    if lone_loops and first == last:
                        total = multiply_add(total, 1, load(zero, grad, i * groups_in + source, f))
                    for e in range(first, last):
                        if ahead:
                            row_ahead = column[min(e + ahead, entries - ONE)] * groups_in + source
                            prefetch_register(zero, grad, row_ahead, f)
                        terms = load(zero, grad, column[e] * groups_in + source, f)
                        total = multiply_add(total, _value(value, places, e), terms)
                        dot = horizontal_sum(multiply_add(zero, own, terms))
                        sampled[e] = dot if f == ZERO else sampled[e] + dot
                store(total, grad_z, row, f)


@backend.jit()
def _value(value, places, e):  # type: ignore[no-untyped-def]
    return value[e] if places is None else value[places[e]]


@backend.jit()
def _group(channel, channels, groups):  # type: ignore[no-untyped-def]
    """The group that a channel reads; a division, at every row, would be felt."""
    if groups == ONE:
        return ZERO
    return channel if groups == channels else channel * groups // channels


@backend.jit()
def _prefetch_first(like, rows, start, column, i, groups, group, f):  # type: ignore[no-untyped-def]
    """What the first entries of row ``i`` of the pattern will gather."""
    first = start[i]
    for e in range(first, min(start[i + ONE], first + ENTRIES_AHEAD)):
        prefetch_register(like, rows, column[e] * groups + group, f)
