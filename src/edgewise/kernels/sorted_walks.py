"""The compiled walks along sorted hubs; see sorted_hubs.py for what they compute, and on what.

Sums over a hub's inputs, in the order of their scores, stand in a table: row ``r`` holds those over
the ``r`` inputs that have crossed the kink, before they crossed it and after. An output reads the
row of its rank. What has not crossed yet is the total less that row.
"""

import numpy as np
from numba import prange

from edgewise.kernels import backend
from edgewise.kernels.hub_sorting import MASK_BITS, largest
from edgewise.kernels.lanes import (
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
LOW_BITS = (ONE << MASK_BITS) - ONE


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_products(  # type: ignore[no-untyped-def]
    start, parts, inputs, input_factor, outputs, output_factor, before, masks, z, out, distance,
    lanes,
):  # fmt: skip
    """``before`` says which of the two factors of a node hold before it crosses the kink."""
    channels, nodes = np.uint64(z.shape[0]), np.uint64(z.shape[1])
    for task in prange(out.shape[0] * out.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        out[part, q] = 0
        _walk_products(start[q * nodes : (q + ONE) * nodes + ONE], parts[part, q],
                       parts[part + ONE, q], inputs, input_factor, outputs, output_factor, before,
                       masks, z[q], out[part, q], distance, lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_products(  # type: ignore[no-untyped-def]
    start, first_hub, last_hub, inputs, input_factor, outputs, output_factor, before, masks, z,
    out, distance, lanes,
):  # fmt: skip
    zero, after = zeros(z, lanes), ONE - before
    zero_pair = concatenate(zero, zero)
    sums = np.empty((largest(start, first_hub, last_hub) + 1, 2 * len(lanes)), z.dtype)
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        for f in range(ZERO, np.uint64(z.shape[1]), np.uint64(len(lanes))):
            total = zero_pair
            store(total, sums, ZERO, ZERO)
            for p in range(first, last):
                _prefetch_row(z, inputs, p + distance, f)
                j, mask = inputs[p, 0] >> MASK_BITS, inputs[p, 0] & LOW_BITS
                term = multiply(load(zero, masks, mask, f), load(zero, z, j, f))
                pair = _scaled(input_factor[p, before], input_factor[p, after], term)
                total = multiply_add(total, 1, pair)
                store(total, sums, p - first + ONE, ZERO)
            left = low_half(total)
            for p in range(first, last):
                _prefetch_row(out, outputs, p + distance, f)
                i, mask = outputs[p, 0] >> MASK_BITS, outputs[p, 0] & LOW_BITS
                crossed = load(zero_pair, sums, outputs[p, 1] - first, ZERO)
                left_now = multiply_add(left, -1, low_half(crossed))
                read = multiply(output_factor[p, before], left_now)
                read = multiply_add(read, output_factor[p, after], high_half(crossed))
                masked = multiply(load(zero, masks, mask, f), read)
                store(multiply_add(load(zero, out, i, f), 1, masked), out, i, f)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_gradients(  # type: ignore[no-untyped-def]
    start, parts, sources, targets, source_value, source_scale, target_value, target_scale, masks,
    slope, grad_link, grad_target, grad_source, distance, lanes,
):  # fmt: skip
    """``grad_link`` are two arrays, of the links as those of sources and of targets, or empty."""
    channels, nodes = np.uint64(source_value.shape[0]), np.uint64(source_value.shape[1])
    for task in prange(grad_target.shape[0] * grad_target.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _walk_gradients(start[q * nodes : (q + ONE) * nodes + ONE], parts[part, q],
                        parts[part + ONE, q], sources, targets, source_value[q], source_scale[q],
                        target_value[q], target_scale[q], masks, slope, grad_link,
                        grad_target[part, q], grad_source[part, q], distance, lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_gradients(  # type: ignore[no-untyped-def]
    start, first_hub, last_hub, sources, targets, source_value, source_scale, target_value,
    target_scale, masks, slope, grad_link, grad_target, grad_source, distance, lanes,
):  # fmt: skip
    """Both products at once, each read by the nodes that are the input of the other.

    Sources cross the kink upwards and targets downwards.
    """
    source, source_factor = sources
    target, target_factor = targets
    source_grad, target_grad = grad_link
    of_links, zero = len(source_grad) > 0, zeros(source_value, lanes)
    zero_pair, width = concatenate(zero, zero), TWO * np.uint64(len(lanes))
    sums = np.empty((largest(start, first_hub, last_hub) + 1, 4 * len(lanes)), source_value.dtype)
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        for f in range(ZERO, np.uint64(source_value.shape[1]), np.uint64(len(lanes))):
            over_sources, over_targets = zero_pair, zero_pair
            store(zero_pair, sums, ZERO, ZERO)
            store(zero_pair, sums, ZERO, width)
            for p in range(first, last):
                _prefetch_row(source_value, source, p + distance, f)
                _prefetch_row(target_value, target, p + distance, f)
                j, i = source[p, 0] >> MASK_BITS, target[p, 0] >> MASK_BITS
                pair = _scaled(source_factor[p, 0], source_factor[p, 1],
                               load(zero, source_value, j, f))  # fmt: skip
                over_sources = multiply_add(over_sources, 1, pair)
                store(over_sources, sums, p - first + ONE, ZERO)
                mask = load(zero, masks, target[p, 0] & LOW_BITS, f)
                term = multiply(mask, load(zero, target_value, i, f))
                pair = _scaled(target_factor[p, 1], target_factor[p, 0], term)
                over_targets = multiply_add(over_targets, 1, pair)
                store(over_targets, sums, p - first + ONE, width)
            below_all, above_all = low_half(over_sources), low_half(over_targets)
            for p in range(first, last):
                _prefetch_node(grad_target, target, p + distance)
                i = target[p, 0] >> MASK_BITS
                crossed = load(zero_pair, sums, target[p, 1] - first, ZERO)
                mask = load(zero, masks, target[p, 0] & LOW_BITS, f)
                value = multiply(mask, load(zero, target_value, i, f))
                left, passed = multiply_add(below_all, -1, low_half(crossed)), high_half(crossed)
                steep = multiply(target_factor[p, 1], passed)
                read = multiply_add(steep, slope * target_factor[p, 0], left)
                grad_target[i] += horizontal_sum(multiply(value, read))
                if of_links:
                    read = multiply(target_scale[i, 1], passed)
                    read = multiply_add(read, target_scale[i, 0], left)
                    target_grad[p] += horizontal_sum(multiply(value, read))
            for p in range(first, last):
                _prefetch_node(grad_source, source, p + distance)
                j = source[p, 0] >> MASK_BITS
                crossed = load(zero_pair, sums, source[p, 1] - first, width)
                value = load(zero, source_value, j, f)
                left, passed = multiply_add(above_all, -1, low_half(crossed)), high_half(crossed)
                steep = multiply(source_factor[p, 1], left)
                read = multiply_add(steep, slope * source_factor[p, 0], passed)
                grad_source[j] += horizontal_sum(multiply(value, read))
                if of_links:
                    read = multiply(source_scale[j, 1], left)
                    read = multiply_add(read, source_scale[j, 0], passed)
                    source_grad[p] += horizontal_sum(multiply(value, read))


@backend.jit(fastmath=backend.FAST_MATH)
def _scaled(before, after, value):  # type: ignore[no-untyped-def]
    """What a node adds to the sums before it crosses the kink, and to those after."""
    return concatenate(multiply(before, value), multiply(after, value))


@backend.jit()
def _prefetch_node(numbers, links, p):  # type: ignore[no-untyped-def]
    if p < np.uint64(len(links)):
        prefetch(numbers, (links[p, 0] >> MASK_BITS,))


@backend.jit()
def _prefetch_row(rows, links, p, f):  # type: ignore[no-untyped-def]
    """The row of the node of a link that comes later, in whichever hub."""
    if p < np.uint64(len(links)):
        prefetch(rows, (links[p, 0] >> MASK_BITS, f))
