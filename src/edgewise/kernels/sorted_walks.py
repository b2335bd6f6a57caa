"""The compiled walks along sorted hubs; see sorted_hubs.py for what they compute, and on what.

Sums over a hub's inputs, in the order of their scores, stand in a table: row ``r`` holds those over
the ``r`` inputs that have crossed the kink, before they crossed it and after. An output reads the
row of its rank. What has not crossed yet is the total less that row.
"""

import numpy as np
from numba import prange

from edgewise.kernels import backend
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
# Which masks keep a link stands in the low bits of its node.
MASK_BITS, UNMASKED = np.uint64(3), np.uint64(4)
LOW_BITS = (ONE << MASK_BITS) - ONE
# Nodes come in the order of their scores, so their links lie anywhere in memory. Those of a node
# some places ahead, or the first of them, are prefetched.
PREFETCH_DISTANCE, PREFETCHED_LINKS, LINKS_PER_LINE = np.uint64(16), np.uint64(64), np.uint64(16)


@backend.jit(parallel=True)
def sort_links(  # type: ignore[no-untyped-def]
    order, bounds, column, link, kept, start, source_scale, target_scale, sources, targets
):
    """Sort the members of every hub by their scores, as sources and as targets, in one walk."""
    channels, nodes = np.uint64(bounds.shape[1]), np.uint64(bounds.shape[2])
    heads = np.uint64(order.shape[1])
    for task in prange((bounds.shape[0] - 1) * bounds.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _sort_links(order[:, q * heads // channels], bounds[part, q], bounds[part + ONE, q],
                    column, link, kept, start[q * nodes : (q + ONE) * nodes], source_scale[q],
                    target_scale[q], sources, targets)  # fmt: skip


@backend.jit()
def _sort_links(  # type: ignore[no-untyped-def]
    order, first, last, column, link, kept, start, source_scale, target_scale, sources, targets
):
    source, source_link, source_factor, source_place = sources
    target, target_link, target_factor, target_place = targets
    nodes = np.uint64(len(first))
    filled = np.empty((len(start), 2), np.uint32)  # how far the lists of each hub are filled
    filled[:, 0] = start
    filled[:, 1] = start
    for place in range(TWO * nodes):
        _prefetch_links(order, place, first, last, column, link)
        i = np.uint64(order[place])
        if i < nodes:
            for e in range(first[i], last[i]):
                k = column[e]
                p = filled[k, 0]
                filled[k, 0] = p + ONE
                source[p, 0] = i << MASK_BITS | UNMASKED
                source[p, 1] = filled[k, 1]
                source_link[p], source_place[p] = link[e], e
                source_factor[p, 0] = link[e] * source_scale[i, 0]
                source_factor[p, 1] = link[e] * source_scale[i, 1]
        else:
            i -= nodes
            for e in range(first[i], last[i]):
                k = column[e]
                p = filled[k, 1]
                filled[k, 1] = p + ONE
                target[p, 0] = i << MASK_BITS | (UNMASKED if kept is None else np.uint64(kept[e]))
                target[p, 1] = filled[k, 0]
                target_link[p], target_place[p] = link[e], e
                target_factor[p, 0] = link[e] * target_scale[i, 0]
                target_factor[p, 1] = link[e] * target_scale[i, 1]


@backend.jit()
def _prefetch_links(order, place, first, last, column, link):  # type: ignore[no-untyped-def]
    nodes = np.uint64(len(first))
    i = np.uint64(order[min(place + PREFETCH_DISTANCE, TWO * nodes - ONE)])
    i = i if i < nodes else i - nodes
    for e in range(first[i], min(last[i], first[i] + PREFETCHED_LINKS), LINKS_PER_LINE):
        prefetch(column, (e,))
        prefetch(link, (e,))


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
    sums = np.empty((_largest(start, first_hub, last_hub) + 1, 2 * len(lanes)), z.dtype)
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
    """``grad_link`` are two arrays, of the links as those of sources and of targets."""
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
    source, source_link = sources
    target, target_link = targets
    source_grad, target_grad = grad_link
    zero = zeros(source_value, lanes)
    zero_pair, width = concatenate(zero, zero), TWO * np.uint64(len(lanes))
    sums = np.empty((_largest(start, first_hub, last_hub) + 1, 4 * len(lanes)), source_value.dtype)
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        for f in range(ZERO, np.uint64(source_value.shape[1]), np.uint64(len(lanes))):
            over_sources, over_targets = zero_pair, zero_pair
            store(zero_pair, sums, ZERO, ZERO)
            store(zero_pair, sums, ZERO, width)
            for p in range(first, last):
                _prefetch_row(source_value, source, p + distance, f)
                _prefetch_row(target_value, target, p + distance, f)
                _prefetch_row(source_scale, source, p + distance, ZERO)
                _prefetch_row(target_scale, target, p + distance, ZERO)
                j, i = source[p, 0] >> MASK_BITS, target[p, 0] >> MASK_BITS
                pair = _scaled(source_scale[j, 0], source_scale[j, 1],
                               load(zero, source_value, j, f))  # fmt: skip
                over_sources = multiply_add(over_sources, source_link[p], pair)
                store(over_sources, sums, p - first + ONE, ZERO)
                mask = load(zero, masks, target[p, 0] & LOW_BITS, f)
                term = multiply(mask, load(zero, target_value, i, f))
                pair = _scaled(target_scale[i, 1], target_scale[i, 0], term)
                over_targets = multiply_add(over_targets, target_link[p], pair)
                store(over_targets, sums, p - first + ONE, width)
            below_all, above_all = low_half(over_sources), low_half(over_targets)
            for p in range(first, last):
                _prefetch_node(grad_target, target, p + distance)
                i = target[p, 0] >> MASK_BITS
                crossed = load(zero_pair, sums, target[p, 1] - first, ZERO)
                mask = load(zero, masks, target[p, 0] & LOW_BITS, f)
                value = multiply(mask, load(zero, target_value, i, f))
                left = multiply_add(below_all, -1, low_half(crossed))
                below = target_scale[i, 0] * horizontal_sum(multiply(value, left))
                above = target_scale[i, 1] * horizontal_sum(multiply(value, high_half(crossed)))
                target_grad[p] += below + above
                grad_target[i] += target_link[p] * (slope * below + above)
            for p in range(first, last):
                _prefetch_node(grad_source, source, p + distance)
                j = source[p, 0] >> MASK_BITS
                crossed = load(zero_pair, sums, source[p, 1] - first, width)
                value = load(zero, source_value, j, f)
                left = multiply_add(above_all, -1, low_half(crossed))
                above = source_scale[j, 1] * horizontal_sum(multiply(value, left))
                below = source_scale[j, 0] * horizontal_sum(multiply(value, high_half(crossed)))
                source_grad[p] += below + above
                grad_source[j] += source_link[p] * (slope * below + above)


@backend.jit(fastmath=backend.FAST_MATH)
def _scaled(before, after, value):  # type: ignore[no-untyped-def]
    """What a node adds to the sums before it crosses the kink, and to those after."""
    return concatenate(multiply(before, value), multiply(after, value))


@backend.jit()
def _largest(start, first_hub, last_hub):  # type: ignore[no-untyped-def]
    """The size of the largest of some hubs."""
    size = 0
    for hub in range(first_hub, last_hub):
        size = max(size, np.int64(start[hub + ONE] - start[hub]))
    return size


@backend.jit(parallel=True)
def put_in_place(source_place, target_place, source_grad, target_grad, start, nodes, grad_link):  # type: ignore[no-untyped-def]
    """Add up the gradients of every link, and put them where it stands in ``B``."""
    for q in prange(np.uint64(len(start) - 1) // nodes):
        first, last = start[q * nodes], start[(q + ONE) * nodes]
        for p in range(first, last):
            grad_link[source_place[p]] = source_grad[p]
        for p in range(first, last):
            grad_link[target_place[p]] += target_grad[p]


@backend.jit()
def _prefetch_node(numbers, links, p):  # type: ignore[no-untyped-def]
    if p < np.uint64(len(links)):
        prefetch(numbers, (links[p, 0] >> MASK_BITS,))


@backend.jit()
def _prefetch_row(rows, links, p, f):  # type: ignore[no-untyped-def]
    """The row of the node of a link that comes later, in whichever hub."""
    if p < np.uint64(len(links)):
        prefetch(rows, (links[p, 0] >> MASK_BITS, f))
