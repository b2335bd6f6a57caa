"""Products along hubs together with the gradients of the scores; see sorted_hubs.py."""

import numpy as np
from numba import prange

from edgewise.kernels import backend
from edgewise.kernels.hub_sorting import FEW_MEMBERS, ONE, TWO, ZERO, largest
from edgewise.kernels.lanes import (
    concatenate,
    high_half,
    horizontal_sum,
    load,
    low_half,
    multiply,
    multiply_add,
    store,
    zeros,
)
from edgewise.kernels.sorted_walks import (
    ONE_ROW,
    PREFETCH_DISTANCE,
    add_to_row,
    prefetch_row,
    row_of,
    scaled,
)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_gradients(  # type: ignore[no-untyped-def]
    start, parts, node, score, orders, ranks, before, links, factors, z, z_groups, other,
    other_groups, out, gains, grad_links, lanes,
):  # fmt: skip
    """The product of ``walk_products``, and the sums of what every node gains by its pairs.

    The gain of an input ``j`` and an output ``i`` is ``f_ij B_ik B_jk (z_j . other_i)``. ``gains``
    are those of the inputs and of the outputs, ``[parts, channels, nodes, 2]``, below the kink and
    above it; ``grad_links`` the gradients of their links, which may be empty. All tuples are of
    inputs and outputs.
    """
    channels, nodes = np.uint64(factors[0].shape[0]), np.uint64(factors[0].shape[1])
    heads = np.uint64(len(score))
    for task in prange(len(out) * factors[0].shape[0]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        gains[0][part, q] = 0
        gains[1][part, q] = 0
        _walk_gradients(start[q * nodes : (q + ONE) * nodes + ONE], parts[part, q],
                        parts[part + ONE, q], node, score[q * heads // channels], orders, ranks,
                        before, links, (factors[0][q], factors[1][q]), z,
                        (z_groups, q * z_groups // channels), other,
                        (other_groups, q * other_groups // channels), out[part], (channels, q),
                        (gains[0][part, q], gains[1][part, q]), grad_links, lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_gradients(  # type: ignore[no-untyped-def]
    start, first_hub, last_hub, node, score, orders, ranks, before, links, factors, z, z_rows,
    other, other_rows, out, out_rows, gains, grad_links, lanes,
):  # fmt: skip
    zero, few = zeros(z, lanes), np.int64(FEW_MEMBERS)
    near, member = np.empty((few, 6), z.dtype), np.empty(few, np.uint64)
    sums = np.empty((largest(start, first_hub, last_hub) + 1, 4 * len(lanes)), z.dtype)
    # Taken out of the tuples once: each time, arrays would be counted.
    (order, other_order), (rank, out_rank) = orders, ranks
    (link, out_link), (factor, out_factor) = links, factors
    (gain, out_gain), (grad_link, grad_out_link) = gains, grad_links
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        if last - first <= FEW_MEMBERS:
            for p in range(first, last):
                prefetch_row(z, z_rows, node, p + PREFETCH_DISTANCE)
                prefetch_row(other, other_rows, node, p + PREFETCH_DISTANCE)
                prefetch_row(out, out_rows, node, p + PREFETCH_DISTANCE)
                prefetch_row(factor, ONE_ROW, node, p + PREFETCH_DISTANCE)
                prefetch_row(out_factor, ONE_ROW, node, p + PREFETCH_DISTANCE)
                prefetch_row(score, ONE_ROW, node, p + PREFETCH_DISTANCE)
                prefetch_row(gain, ONE_ROW, node, p + PREFETCH_DISTANCE)
                prefetch_row(out_gain, ONE_ROW, node, p + PREFETCH_DISTANCE)
            for f in range(ZERO, np.uint64(z.shape[1]), np.uint64(len(lanes))):
                _pairs(first, last, node, score, before, link, out_link, factor, out_factor, z,
                       z_rows, other, other_rows, out, out_rows, gain, out_gain, grad_link,
                       grad_out_link, near, member, f, zero)  # fmt: skip
        else:
            for f in range(ZERO, np.uint64(z.shape[1]), np.uint64(len(lanes))):
                _sorted(first, last, node, order, other_order, rank, out_rank, before, link,
                        out_link, factor, out_factor, z, z_rows, other, other_rows, out, out_rows,
                        gain, out_gain, grad_link, grad_out_link, sums, f, zero)  # fmt: skip


@backend.jit(forceinline=True, fastmath=backend.FAST_MATH)
def _pairs(  # type: ignore[no-untyped-def]
    first, last, node, score, before, link, out_link, factor, out_factor, z, z_rows, other,
    other_rows, out, out_rows, gain, out_gain, grad_link, grad_out_link, near, member, f, zero,
):  # fmt: skip
    size, of_links = last - first, len(grad_link) > 0
    input_side, output_side = ONE - before, before
    for m in range(size):
        i = np.uint64(node[first + m])
        member[m] = i
        near[m, 0] = link[first + m] * factor[i, 0]
        near[m, 1] = link[first + m] * factor[i, 1]
        near[m, 2], near[m, 3] = out_factor[i, 0], out_factor[i, 1]
        near[m, 4], near[m, 5] = score[i, input_side], score[i, output_side]
    for m in range(size):
        below, above = _gathered(m, size, near, (2, 5), (0, 4), member, z, z_rows, f, zero)
        _read(first + m, member[m], below, above, out_link, other, other_rows, f, out_gain,
              grad_out_link, of_links)  # fmt: skip
        total = multiply(out_link[first + m], multiply_add(below, 1, above))
        add_to_row(total, out, row_of(out_rows, member[m]), f)
    for m in range(size):
        i, weight = member[m], out_link[first + m]
        near[m, 0], near[m, 1] = factor[i, 0], factor[i, 1]
        near[m, 2], near[m, 3] = weight * near[m, 2], weight * near[m, 3]
    for m in range(size):
        below, above = _gathered(m, size, near, (0, 4), (2, 5), member, other, other_rows, f, zero)
        _read(first + m, member[m], below, above, link, z, z_rows, f, gain, grad_link,
              of_links)  # fmt: skip


@backend.jit(forceinline=True, fastmath=backend.FAST_MATH)
def _gathered(m, size, near, own, others, member, rows, which, f, zero):  # type: ignore[no-untyped-def]
    """What a member gathers of all, below the kink and above it.

    ``own`` and ``others`` are the columns of ``near`` with the first of two factors, and with the
    score, of the member and of those it gathers from.
    """
    below, above = zero, zero
    for n in range(size):
        # A number, for a branch would be predicted wrong half of the time.
        is_above = rows.dtype.type(near[m, own[1]] + near[n, others[1]] > 0)
        low = near[m, own[0]] * near[n, others[0]]
        high = near[m, own[0] + 1] * near[n, others[0] + 1]
        term = load(zero, rows, row_of(which, member[n]), f)
        below = multiply_add(below, low - is_above * low, term)
        above = multiply_add(above, is_above * high, term)
    return below, above


@backend.jit(forceinline=True, fastmath=backend.FAST_MATH)
def _sorted(  # type: ignore[no-untyped-def]
    first, last, node, order, other_order, rank, out_rank, before, link, out_link, factor,
    out_factor, z, z_rows, other, other_rows, out, out_rows, gain, out_gain, grad_link,
    grad_out_link, sums, f, zero,
):  # fmt: skip
    after, of_links, size = ONE - before, len(grad_link) > 0, last - first
    zero_pair = concatenate(zero, zero)
    beside = np.uint64(sums.shape[1]) // TWO  # the table of the outputs
    over_inputs, over_outputs = zero_pair, zero_pair
    store(zero_pair, sums, ZERO, ZERO)
    store(zero_pair, sums, ZERO, beside)
    for k in range(size):
        if k + PREFETCH_DISTANCE < size:
            later = first + k + PREFETCH_DISTANCE
            prefetch_row(z, z_rows, node, first + np.uint64(order[later]))
            prefetch_row(other, other_rows, node, first + np.uint64(other_order[later]))
            prefetch_row(factor, ONE_ROW, node, first + np.uint64(order[later]))
            prefetch_row(out_factor, ONE_ROW, node, first + np.uint64(other_order[later]))
        p, r = first + np.uint64(order[first + k]), first + np.uint64(other_order[first + k])
        j, i = np.uint64(node[p]), np.uint64(node[r])
        term = multiply(link[p], load(zero, z, row_of(z_rows, j), f))
        pair = scaled(factor[j, before], factor[j, after], term)
        over_inputs = multiply_add(over_inputs, 1, pair)
        store(over_inputs, sums, k + ONE, ZERO)
        # Outputs cross the kink the other way.
        term = multiply(out_link[r], load(zero, other, row_of(other_rows, i), f))
        pair = scaled(out_factor[i, after], out_factor[i, before], term)
        over_outputs = multiply_add(over_outputs, 1, pair)
        store(over_outputs, sums, k + ONE, beside)
    inputs_left, outputs_left = low_half(over_inputs), low_half(over_outputs)
    for p in range(first, last):
        prefetch_row(out, out_rows, node, p + PREFETCH_DISTANCE)
        prefetch_row(gain, ONE_ROW, node, p + PREFETCH_DISTANCE)
        prefetch_row(out_gain, ONE_ROW, node, p + PREFETCH_DISTANCE)
        prefetch_row(z, z_rows, node, p + PREFETCH_DISTANCE)
        prefetch_row(other, other_rows, node, p + PREFETCH_DISTANCE)
        i = np.uint64(node[p])
        crossed = load(zero_pair, sums, out_rank[p], ZERO)
        left = multiply(out_factor[i, before], multiply_add(inputs_left, -1, low_half(crossed)))
        passed = multiply(out_factor[i, after], high_half(crossed))
        below, above = (left, passed) if before == ZERO else (passed, left)
        _read(p, i, below, above, out_link, other, other_rows, f, out_gain, grad_out_link,
              of_links)  # fmt: skip
        total = multiply(out_link[p], multiply_add(below, 1, above))
        add_to_row(total, out, row_of(out_rows, i), f)
        crossed = load(zero_pair, sums, rank[p], beside)
        left = multiply(factor[i, after], multiply_add(outputs_left, -1, low_half(crossed)))
        passed = multiply(factor[i, before], high_half(crossed))
        below, above = (passed, left) if before == ZERO else (left, passed)
        _read(p, i, below, above, link, z, z_rows, f, gain, grad_link,
              of_links)  # fmt: skip


@backend.jit(forceinline=True, fastmath=backend.FAST_MATH)
def _read(p, i, below, above, link, value, value_rows, f, gain, grad_link, of_links):  # type: ignore[no-untyped-def]
    """What a member gains of the sums over the other side, below the kink and above it."""
    own = load(below, value, row_of(value_rows, i), f)
    low, high = horizontal_sum(multiply(own, below)), horizontal_sum(multiply(own, above))
    gain[i, 0] += link[p] * low
    gain[i, 1] += link[p] * high
    if of_links:
        grad_link[p] += low + high
