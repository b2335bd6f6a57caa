"""The compiled walks along the columns of ``B``; see hubs.py for what they compute, and on what.

Every column has a row of running sums: a register over the nodes on this side of the kink, and
beside it one over the nodes that have crossed.
"""

import numpy as np
from numba import prange

from edgewise.kernels import backend
from edgewise.kernels.lanes import (
    broadcast,
    concatenate,
    high_half,
    horizontal_sum,
    load,
    low_half,
    multiply,
    multiply_add,
    prefetch,
    store,
    zeros,
)

# Unsigned numbers index an array without a check for "from the end".
ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
# Nodes come in the order of their scores, so their links lie anywhere in memory. Those of a node
# some places ahead, or the first of them, are prefetched.
PREFETCH_DISTANCE, PREFETCHED_LINKS, LINKS_PER_LINE = np.uint64(16), np.uint64(64), np.uint64(16)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_products(  # type: ignore[no-untyped-def]
    order, bounds, column, link, input_masks, input_scale, output_masks, output_scale, z, out,
    sources_are_inputs, lanes,
):  # fmt: skip
    channels, heads = np.uint64(len(z)), np.uint64(order.shape[1])
    for task in prange(out.shape[0] * out.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _walk_products(order[:, q * heads // channels], bounds[part, q], bounds[part + ONE, q],
                       column, link, input_masks, input_scale[q], output_masks, output_scale[q],
                       z[q], out[part, q], sources_are_inputs, lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_products(  # type: ignore[no-untyped-def]
    order, first, last, column, link, input_masks, input_scale, output_masks, output_scale, z, out,
    sources_are_inputs, lanes,
):  # fmt: skip
    nodes, width, zero = np.uint64(len(z)), np.uint64(len(lanes)), zeros(z, lanes)
    zero_pair = concatenate(zero, zero)
    column_sum = np.empty((len(z), 2 * len(lanes)), z.dtype)
    for f in range(ZERO, np.uint64(z.shape[1]), width):
        column_sum[:] = 0
        for i in range(nodes):
            term = multiply(input_scale[i, 0], load(zero, z, i, f))
            _add_to_columns(term, first[i], last[i], column, link, input_masks, f, column_sum, ZERO)
        for place in range(TWO * nodes):
            _prefetch_links(order, place, first, last, column, link, input_masks, output_masks)
            i, is_source = _node(order[place], nodes), order[place] < nodes
            if is_source == sources_are_inputs:
                term = _transfer(load(zero, z, i, f), input_scale[i, 0], input_scale[i, 1])
                _add_to_columns(
                    term, first[i], last[i], column, link, input_masks, f, column_sum, ZERO
                )
            else:
                total = zero_pair
                for e in range(first[i], last[i]):
                    weight = _masked_link(link, output_masks, e, f, zero_pair)
                    total = multiply_add(
                        total, weight, load(zero_pair, column_sum, column[e], ZERO)
                    )
                below = multiply(output_scale[i, 0], low_half(total))
                store(multiply_add(below, output_scale[i, 1], high_half(total)), out, i, f)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_gradients(  # type: ignore[no-untyped-def]
    order, bounds, column, link, masks, source_value, source_scale, target_value, target_scale,
    slope, grad_link, grad_target, grad_source, lanes,
):  # fmt: skip
    channels, heads = np.uint64(len(source_value)), np.uint64(order.shape[1])
    for task in prange(grad_target.shape[0] * grad_target.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _walk_gradients(order[:, q * heads // channels], bounds[part, q], bounds[part + ONE, q],
                        column, link, masks, source_value[q], source_scale[q], target_value[q],
                        target_scale[q], slope, grad_link, grad_target[part, q],
                        grad_source[part, q], lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_gradients(  # type: ignore[no-untyped-def]
    order, first, last, column, link, masks, source_value, source_scale, target_value,
    target_scale, slope, grad_link, grad_target, grad_source, lanes,
):  # fmt: skip
    """Both products at once: a column's sums over sources stand left, those over targets right.

    Sources cross the kink upwards and targets downwards: the first register of a pair is below it
    for the former and above it for the latter.
    """
    nodes, width = np.uint64(len(source_value)), np.uint64(len(lanes))
    zero = zeros(source_value, lanes)
    zero_pair, right = concatenate(zero, zero), TWO * width
    column_sum = np.empty((len(source_value), 4 * len(lanes)), source_value.dtype)
    for f in range(ZERO, np.uint64(source_value.shape[1]), width):
        column_sum[:] = 0
        for i in range(nodes):
            source_term = multiply(source_scale[i, 0], load(zero, source_value, i, f))
            target_term = multiply(target_scale[i, 1], load(zero, target_value, i, f))
            _add_to_columns(source_term, first[i], last[i], column, link, None, f, column_sum, ZERO)
            _add_to_columns(
                target_term, first[i], last[i], column, link, masks, f, column_sum, right
            )
        for place in range(TWO * nodes):
            _prefetch_links(order, place, first, last, column, link, masks, None)
            i, total = _node(order[place], nodes), zero_pair
            if order[place] < nodes:
                value, low, high = (
                    load(zero, source_value, i, f),
                    source_scale[i, 0],
                    source_scale[i, 1],
                )
                source_term = _transfer(value, low, high)
                scaled = concatenate(multiply(high, value), multiply(low, value))
                for e in range(first[i], last[i]):
                    k = column[e]
                    source_sum = load(zero_pair, column_sum, k, ZERO)
                    store(multiply_add(source_sum, link[e], source_term), column_sum, k, ZERO)
                    dots = multiply(scaled, load(zero_pair, column_sum, k, right))
                    grad_link[e] += horizontal_sum(dots)
                    total = multiply_add(total, link[e], dots)
                above, below = low_half(total), high_half(total)
                grad_source[i] += horizontal_sum(above) + slope * horizontal_sum(below)
            else:
                value, low, high = (
                    load(zero, target_value, i, f),
                    target_scale[i, 0],
                    target_scale[i, 1],
                )
                target_term = _transfer(value, high, low)
                scaled = concatenate(multiply(low, value), multiply(high, value))
                for e in range(first[i], last[i]):
                    k, mask = column[e], _link_mask(masks, e, f, zero_pair)
                    weight = multiply(link[e], mask)
                    target_sum = load(zero_pair, column_sum, k, right)
                    store(multiply_add(target_sum, weight, target_term), column_sum, k, right)
                    dots = multiply(multiply(mask, scaled), load(zero_pair, column_sum, k, ZERO))
                    grad_link[e] += horizontal_sum(dots)
                    total = multiply_add(total, link[e], dots)
                below, above = low_half(total), high_half(total)
                grad_target[i] += slope * horizontal_sum(below) + horizontal_sum(above)


@backend.jit(fastmath=backend.FAST_MATH)
def _add_to_columns(  # type: ignore[no-untyped-def]
    term, first, last, column, link, masks, f, column_sum, place
):
    """Add a node's term, times its link, to the sum of each of its columns."""
    for e in range(first, last):
        k, weight = column[e], _masked_link(link, masks, e, f, term)
        store(multiply_add(load(term, column_sum, k, place), weight, term), column_sum, k, place)


@backend.jit(fastmath=backend.FAST_MATH)
def _transfer(value, before, after):  # type: ignore[no-untyped-def]
    """What changes when a node crosses the kink: one sum loses its term, the other gains it."""
    return concatenate(multiply(-before, value), multiply(after, value))


@backend.jit(fastmath=backend.FAST_MATH)
def _masked_link(link, masks, e, f, like):  # type: ignore[no-untyped-def]
    """A link under dropout, for each of a register of features."""
    if masks is None:
        return broadcast(like, link[e])
    return multiply(link[e], _link_mask(masks, e, f, like))


@backend.jit(fastmath=backend.FAST_MATH)
def _link_mask(masks, e, f, like):  # type: ignore[no-untyped-def]
    if masks is None:
        return broadcast(like, 1)
    kept, scale = masks
    return load(like, scale, kept[e], TWO * f)


@backend.jit()
def _node(index, nodes):  # type: ignore[no-untyped-def]
    """The node of a source, or of a target, which are counted on from the sources."""
    return np.uint64(index) if index < nodes else np.uint64(index) - nodes


@backend.jit()
def _prefetch_links(order, place, first, last, column, link, masks, others):  # type: ignore[no-untyped-def]
    nodes = np.uint64(len(first))
    i = _node(order[min(place + PREFETCH_DISTANCE, TWO * nodes - ONE)], nodes)
    for e in range(first[i], min(last[i], first[i] + PREFETCHED_LINKS), LINKS_PER_LINE):
        prefetch(column, (e,))
        prefetch(link, (e,))
    _prefetch_masks(masks, first[i])
    _prefetch_masks(others, first[i])


@backend.jit()
def _prefetch_masks(masks, e):  # type: ignore[no-untyped-def]
    if masks is not None:
        prefetch(masks[0], (e,))
