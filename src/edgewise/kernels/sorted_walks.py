"""The compiled products along hubs; see sorted_hubs.py for what they compute, and on what.

Of a small hub all pairs are gone through. Of a large one, sums over its inputs, in the order of
their scores, stand in a table: row ``r`` holds those over the ``r`` inputs that have crossed the
kink, before they crossed it and after. An output reads the row of its rank. What has not crossed
yet is the total less that row.
"""

import numpy as np
from numba import prange

from edgewise.kernels import backend
from edgewise.kernels.hub_sorting import FEW_MEMBERS, ONE, ZERO, largest
from edgewise.kernels.lanes import (
    concatenate,
    high_half,
    load,
    low_half,
    multiply,
    multiply_add,
    prefetch,
    store,
    zeros,
)

# Rows are fetched this many links ahead.
PREFETCH_DISTANCE = np.uint64(32)
# Of arrays in which a node has one row.
ONE_ROW = (ONE, ZERO)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_products(  # type: ignore[no-untyped-def]
    start, parts, node, order, rank, before, input_link, output_link, input_factor, output_factor,
    z, groups, out, lanes,
):  # fmt: skip
    """``out[i] = sum_k sum_j f_ij B_ik B_jk z_j``, ``f`` the larger product of two factors.

    ``order`` is that of the inputs, ``rank`` that of the outputs among them, ``before`` the kind of
    factor of an input that has not crossed the kink yet. Channel ``q`` reads group
    ``q * groups // channels`` of a node's rows in ``z``, and writes row ``q`` of it in ``out``.
    """
    channels, nodes = np.uint64(input_factor.shape[0]), np.uint64(input_factor.shape[1])
    for task in prange(len(out) * input_factor.shape[0]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _walk_products(start[q * nodes : (q + ONE) * nodes + ONE], parts[part, q],
                       parts[part + ONE, q], node, order, rank, before, input_link, output_link,
                       input_factor[q], output_factor[q], z, (groups, q * groups // channels),
                       out[part], (channels, q), lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_products(  # type: ignore[no-untyped-def]
    start, first_hub, last_hub, node, order, rank, before, input_link, output_link, input_factor,
    output_factor, z, z_rows, out, out_rows, lanes,
):  # fmt: skip
    zero, after, few = zeros(z, lanes), ONE - before, np.int64(FEW_MEMBERS)
    zero_pair, width = concatenate(zero, zero), np.uint64(z.shape[1])
    near, member = np.empty((few, 4), z.dtype), np.empty(few, np.uint64)
    sums = np.empty((largest(start, first_hub, last_hub) + 1, 2 * len(lanes)), z.dtype)
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        size = last - first
        if size <= FEW_MEMBERS:
            for m in range(size):
                p, i = first + m, np.uint64(node[first + m])
                prefetch_row(z, z_rows, node, p + PREFETCH_DISTANCE)
                prefetch_row(out, out_rows, node, p + PREFETCH_DISTANCE)
                prefetch_row(input_factor, ONE_ROW, node, p + PREFETCH_DISTANCE)
                prefetch_row(output_factor, ONE_ROW, node, p + PREFETCH_DISTANCE)
                member[m] = i
                near[m, 0] = input_link[p] * input_factor[i, 0]
                near[m, 1] = input_link[p] * input_factor[i, 1]
                near[m, 2] = output_link[p] * output_factor[i, 0]
                near[m, 3] = output_link[p] * output_factor[i, 1]
            for f in range(ZERO, width, np.uint64(len(lanes))):
                for m in range(size):
                    total = zero
                    for other in range(size):
                        weight = max(near[m, 2] * near[other, 0], near[m, 3] * near[other, 1])
                        term = load(zero, z, row_of(z_rows, member[other]), f)
                        total = multiply_add(total, weight, term)
                    add_to_row(total, out, row_of(out_rows, member[m]), f)
            continue
        for f in range(ZERO, width, np.uint64(len(lanes))):
            total = zero_pair
            store(total, sums, ZERO, ZERO)
            for k in range(size):
                if k + PREFETCH_DISTANCE < size:
                    later = first + np.uint64(order[first + k + PREFETCH_DISTANCE])
                    prefetch_row(z, z_rows, node, later)
                    prefetch_row(input_factor, ONE_ROW, node, later)
                p = first + np.uint64(order[first + k])
                i = np.uint64(node[p])
                term = multiply(input_link[p], load(zero, z, row_of(z_rows, i), f))
                pair = scaled(input_factor[i, before], input_factor[i, after], term)
                total = multiply_add(total, 1, pair)
                store(total, sums, k + ONE, ZERO)
            left = low_half(total)
            for p in range(first, last):
                prefetch_row(out, out_rows, node, p + PREFETCH_DISTANCE)
                prefetch_row(output_factor, ONE_ROW, node, p + PREFETCH_DISTANCE)
                i = np.uint64(node[p])
                crossed = load(zero_pair, sums, rank[p], ZERO)
                left_now = multiply_add(left, -1, low_half(crossed))
                read = multiply(output_factor[i, before], left_now)
                read = multiply_add(read, output_factor[i, after], high_half(crossed))
                add_to_row(multiply(output_link[p], read), out, row_of(out_rows, i), f)


@backend.jit(forceinline=True)
def row_of(rows, i):  # type: ignore[no-untyped-def]
    """The row of a node among those of all: ``rows`` is how many a node has, and which of them."""
    return i * rows[0] + rows[1]


@backend.jit(forceinline=True, fastmath=backend.FAST_MATH)
def add_to_row(numbers, rows, row, f):  # type: ignore[no-untyped-def]
    store(multiply_add(load(numbers, rows, row, f), 1, numbers), rows, row, f)


@backend.jit(forceinline=True, fastmath=backend.FAST_MATH)
def scaled(before, after, value):  # type: ignore[no-untyped-def]
    """What a node adds to the sums before it crosses the kink, and to those after."""
    return concatenate(multiply(before, value), multiply(after, value))


@backend.jit(forceinline=True)
def prefetch_row(rows, which, node, p):  # type: ignore[no-untyped-def]
    """The row of the node of a link that comes later, in whichever hub."""
    if p < np.uint64(len(node)):
        prefetch(rows, (row_of(which, np.uint64(node[p])), ZERO))
