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
PREFETCH_DISTANCE = np.uint64(16)
# Of arrays in which a node has one row.
ONE_ROW = (ONE, ZERO)
FEW = int(FEW_MEMBERS)  # a constant to the compiler, which then unrolls loops over all pairs


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_products(  # type: ignore[no-untyped-def]
    start, parts, node, score, order, rank, before, links, factors, z, groups, out, above, lanes
):
    """``out[i] = sum_k sum_j f_ij B_ik B_jk z_j``, ``f`` the larger product of two factors.

    ``links`` and ``factors`` are of inputs and outputs. ``order`` is that of the inputs, ``rank``
    that of the outputs among them, ``before`` the kind of factor of an input that has not crossed
    the kink yet. Channel ``q`` reads group ``q * groups // channels`` of a node's rows in ``z``,
    and writes row ``q`` of it in ``out``; in ``above``, unless it is None, the same sum over the
    pairs above the kink alone.
    """
    channels, nodes = np.uint64(factors[0].shape[0]), np.uint64(factors[0].shape[1])
    heads = np.uint64(len(score))
    for task in prange((len(parts) - 1) * factors[0].shape[0]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _walk_products(start[q * nodes : (q + ONE) * nodes + ONE], parts[part, q],
                       parts[part + ONE, q], node, score[q * heads // channels], order, rank,
                       before, links[0], links[1], factors[0][q], factors[1][q], z,
                       (groups, q * groups // channels), out, above,
                       (channels, part * nodes * channels + q), lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_products(  # type: ignore[no-untyped-def]
    start, first_hub, last_hub, node, score, order, rank, before, link, out_link, factor,
    out_factor, z, z_rows, out, above, out_rows, lanes,
):  # fmt: skip
    zero, after = zeros(z, lanes), ONE - before
    zero_pair, width = concatenate(zero, zero), np.uint64(z.shape[1])
    near, member = np.empty((FEW, 6), z.dtype), np.empty(FEW, np.uint64)
    sums = np.empty((largest(start, first_hub, last_hub) + 1, 2 * len(lanes)), z.dtype)
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        size = last - first
        if size <= FEW_MEMBERS:
            for m in range(size):
                p, i = first + m, np.uint64(node[first + m])
                prefetch_row(z, z_rows, node, p + PREFETCH_DISTANCE)
                prefetch_row(out, out_rows, node, p + PREFETCH_DISTANCE)
                prefetch_row(factor, ONE_ROW, node, p + PREFETCH_DISTANCE)
                prefetch_row(out_factor, ONE_ROW, node, p + PREFETCH_DISTANCE)
                member[m] = i
                near[m, 0] = link[p] * factor[i, 0]
                near[m, 1] = link[p] * factor[i, 1]
                near[m, 2] = out_link[p] * out_factor[i, 0]
                near[m, 3] = out_link[p] * out_factor[i, 1]
                if above is not None:
                    prefetch_row(above, out_rows, node, p + PREFETCH_DISTANCE)
                    prefetch_row(score, ONE_ROW, node, p + PREFETCH_DISTANCE)
                    near[m, 4], near[m, 5] = score[i, after], score[i, before]
            for f in range(ZERO, width, np.uint64(len(lanes))):
                for m in range(size):
                    total, total_above = zero, zero
                    for n in range(size):
                        low, high = near[m, 2] * near[n, 0], near[m, 3] * near[n, 1]
                        term = load(zero, z, row_of(z_rows, member[n]), f)
                        total = multiply_add(total, max(low, high), term)
                        if above is not None:
                            # A number, for a branch would be predicted wrong half of the time.
                            is_above = z.dtype.type(near[m, 5] + near[n, 4] > 0)
                            total_above = multiply_add(total_above, is_above * high, term)
                    row = row_of(out_rows, member[m])
                    add_to_row(total, out, row, f)
                    if above is not None:
                        add_to_row(total_above, above, row, f)
            continue
        for f in range(ZERO, width, np.uint64(len(lanes))):
            total = zero_pair
            store(total, sums, ZERO, ZERO)
            for k in range(size):
                if k + PREFETCH_DISTANCE < size:
                    later = first + np.uint64(order[first + k + PREFETCH_DISTANCE])
                    prefetch_row(z, z_rows, node, later)
                p = first + np.uint64(order[first + k])
                i = np.uint64(node[p])
                term = multiply(link[p], load(zero, z, row_of(z_rows, i), f))
                pair = scaled(factor[i, before], factor[i, after], term)
                total = multiply_add(total, 1, pair)
                store(total, sums, k + ONE, ZERO)
            left = low_half(total)
            for p in range(first, last):
                prefetch_row(out, out_rows, node, p + PREFETCH_DISTANCE)
                if above is not None:
                    prefetch_row(above, out_rows, node, p + PREFETCH_DISTANCE)
                i = np.uint64(node[p])
                row = row_of(out_rows, i)
                crossed = load(zero_pair, sums, rank[p], ZERO)
                not_yet = multiply_add(left, -1, low_half(crossed))
                not_yet = multiply(out_link[p] * out_factor[i, before], not_yet)
                crossed = multiply(out_link[p] * out_factor[i, after], high_half(crossed))
                add_to_row(multiply_add(not_yet, 1, crossed), out, row, f)
                if above is not None:
                    add_to_row(crossed if before == ZERO else not_yet, above, row, f)


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
