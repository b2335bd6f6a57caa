"""The compiled walks along hubs. What they compute, and on what, is told in hubs.py."""

import numpy as np
from numba import njit, prange

from edgewise.kernels import backend

# Columns that are summed together, in one vector register.
LANES = 4
# Unsigned numbers index an array without a check for "from the end", which halves a walk.
ONE = np.uint64(1)
# Sums over hubs are made in this many parts and then added, so that the number of threads
# changes neither the order of additions nor the result. Every part costs an array of nodes;
# together with the channels, two give six tasks on a directed graph.
PARTS = 2


@njit(parallel=True, cache=True)
def sweep(events, start, column, place, hub_start, order, cut, channels):  # type: ignore[no-untyped-def]
    doubled, heads = events.shape
    nodes = np.uint64(doubled // 2)
    for channel in prange(channels):
        q = np.uint64(channel)
        length = np.zeros(nodes, np.uint32)
        for event in events[:, q * np.uint64(heads) // channels]:
            row = event % nodes * channels + q
            for e in range(start[row], start[row + ONE]):
                hub = column[e]
                if event < nodes:
                    order[hub_start[hub * channels + q] + length[hub]] = place[e]
                    length[hub] += 1
                else:
                    cut[place[e]] = length[hub]


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def walk_pull(  # type: ignore[no-untyped-def]
    parts, start, node, order, cut, link, masked, mask, weight, weighted, factor, out
):
    channels, _, width = weighted.shape[1:]
    largest = _largest(start)
    for task in prange(PARTS * channels):
        part, q = task // channels, task % channels
        below = np.empty((largest + 1, LANES), out.dtype)
        above = np.empty((largest + 1, LANES), out.dtype)
        low, high, lower, upper = weighted[0, q], weighted[1, q], factor[0, q], factor[1, q]
        mine = out[part, q]
        for k in range(parts[part], parts[part + 1]):
            first, last = start[k * channels + q], start[k * channels + q + 1]
            for lane in range(np.uint64(0), np.uint64(width), np.uint64(LANES)):
                _running_sums(node, order, link, low, high, lane, first, last, below, above)
                for p in range(first, last):
                    i, c = node[p], cut[p]
                    to_low, to_high = link[p] * lower[i], link[p] * upper[i]
                    for f in range(np.uint64(LANES)):
                        share = to_low * below[c, f] + to_high * above[c, f]
                        if masked:
                            share *= _column_weight(weight, mask, p, lane + f)
                        mine[i, lane + f] += share


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def walk_target_gradients(  # type: ignore[no-untyped-def]
    parts, start, node, order, cut, link, masked, mask, weight, weighted, factor, asked, slope,
    grad_link, grad_score,
):  # fmt: skip
    channels, _, width = weighted.shape[1:]
    largest = _largest(start)
    for task in prange(PARTS * channels):
        part, q = task // channels, task % channels
        below = np.empty((largest + 1, LANES), asked.dtype)
        above = np.empty((largest + 1, LANES), asked.dtype)
        low, high, lower, upper = weighted[0, q], weighted[1, q], factor[0, q], factor[1, q]
        query, score = asked[q], grad_score[part, q]
        tilt = asked.dtype.type(slope)
        for k in range(parts[part], parts[part + 1]):
            first, last = start[k * channels + q], start[k * channels + q + 1]
            for lane in range(np.uint64(0), np.uint64(width), np.uint64(LANES)):
                _running_sums(node, order, link, low, high, lane, first, last, below, above)
                for p in range(first, last):
                    i, c = node[p], cut[p]
                    dot_low, dot_high = asked.dtype.type(0), asked.dtype.type(0)
                    for f in range(np.uint64(LANES)):
                        question = query[i, lane + f]
                        if masked:
                            question *= _column_weight(weight, mask, p, lane + f)
                        dot_low += question * below[c, f]
                        dot_high += question * above[c, f]
                    dot_low *= lower[i]
                    dot_high *= upper[i]
                    grad_link[p] += dot_low + dot_high
                    score[i] += link[p] * (tilt * dot_low + dot_high)


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def walk_push(  # type: ignore[no-untyped-def]
    parts, start, node, order, cut, link, masked, mask, weight, weighted, factor, out
):
    channels, _, width = weighted.shape[1:]
    largest = _largest(start)
    for task in prange(PARTS * channels):
        part, q = task // channels, task % channels
        below = np.empty((largest + 1, LANES), out.dtype)
        above = np.empty((largest + 1, LANES), out.dtype)
        low, high, lower, upper = weighted[0, q], weighted[1, q], factor[0, q], factor[1, q]
        mine, one = out[part, q], out.dtype.type(1)
        for k in range(parts[part], parts[part + 1]):
            first, last = start[k * channels + q], start[k * channels + q + 1]
            for lane in range(np.uint64(0), np.uint64(width), np.uint64(LANES)):
                _dropped_sums(node, cut, link, masked, mask, weight, low, high, lane, first, last,
                              below, above)  # fmt: skip
                given = _nothing(above)
                for m in range(last - first):
                    p = order[first + m]
                    j = node[p]
                    given = _add(given, one, above, m, np.uint64(0))
                    share = _scaled(link[p] * upper[j], given)
                    share = _add(share, link[p] * lower[j], below, m + ONE, np.uint64(0))
                    _store(mine, j, lane, _add(share, one, mine, j, lane))


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def walk_source_gradients(  # type: ignore[no-untyped-def]
    parts, start, node, order, cut, link, masked, mask, weight, weighted, factor, held, slope,
    grad_link, grad_score,
):  # fmt: skip
    channels, _, width = weighted.shape[1:]
    largest = _largest(start)
    for task in prange(PARTS * channels):
        part, q = task // channels, task % channels
        below = np.empty((largest + 1, LANES), held.dtype)
        above = np.empty((largest + 1, LANES), held.dtype)
        low, high, lower, upper = weighted[0, q], weighted[1, q], factor[0, q], factor[1, q]
        answer, score = held[q], grad_score[part, q]
        tilt, one = held.dtype.type(slope), held.dtype.type(1)
        for k in range(parts[part], parts[part + 1]):
            first, last = start[k * channels + q], start[k * channels + q + 1]
            for lane in range(np.uint64(0), np.uint64(width), np.uint64(LANES)):
                _dropped_sums(node, cut, link, masked, mask, weight, low, high, lane, first, last,
                              below, above)  # fmt: skip
                given = _nothing(above)
                for m in range(last - first):
                    p = order[first + m]
                    j = node[p]
                    given = _add(given, one, above, m, np.uint64(0))
                    dot_high = upper[j] * _dot(given, answer, j, lane)
                    given_low = _add(_nothing(below), one, below, m + ONE, np.uint64(0))
                    dot_low = lower[j] * _dot(given_low, answer, j, lane)
                    grad_link[p] += dot_low + dot_high
                    score[j] += link[p] * (tilt * dot_low + dot_high)


@njit
def _largest(start):  # type: ignore[no-untyped-def]
    size = 0
    for hub in range(len(start) - 1):
        size = max(size, np.int64(start[hub + 1] - start[hub]))
    return size


@njit(inline="always")
def _running_sums(node, order, link, low, high, lane, first, last, below, above):  # type: ignore[no-untyped-def]
    """For every cut: low terms of the sources before it, high terms of those from it on."""
    size = last - first
    sums = _nothing(below)
    _store(below, np.uint64(0), np.uint64(0), sums)
    for m in range(size):
        p = order[first + m]
        sums = _add(sums, link[p], low, node[p], lane)
        _store(below, m + ONE, np.uint64(0), sums)
    sums = _nothing(above)
    _store(above, size, np.uint64(0), sums)
    for taken in range(size):
        m = size - ONE - taken
        p = order[first + m]
        sums = _add(sums, link[p], high, node[p], lane)
        _store(above, m, np.uint64(0), sums)


# Sums held in registers, one per lane.


@njit(inline="always")
def _nothing(like):  # type: ignore[no-untyped-def]
    zero = like.dtype.type(0)
    return zero, zero, zero, zero


@njit(inline="always")
def _add(sums, weight, rows, row, lane):  # type: ignore[no-untyped-def]
    return (
        sums[0] + weight * rows[row, lane],
        sums[1] + weight * rows[row, lane + ONE],
        sums[2] + weight * rows[row, lane + np.uint64(2)],
        sums[3] + weight * rows[row, lane + np.uint64(3)],
    )


@njit(inline="always")
def _scaled(weight, sums):  # type: ignore[no-untyped-def]
    return weight * sums[0], weight * sums[1], weight * sums[2], weight * sums[3]


@njit(inline="always")
def _dot(sums, rows, row, lane):  # type: ignore[no-untyped-def]
    return (
        sums[0] * rows[row, lane]
        + sums[1] * rows[row, lane + ONE]
        + sums[2] * rows[row, lane + np.uint64(2)]
        + sums[3] * rows[row, lane + np.uint64(3)]
    )


@njit(inline="always")
def _store(rows, row, lane, sums):  # type: ignore[no-untyped-def]
    rows[row, lane] = sums[0]
    rows[row, lane + ONE] = sums[1]
    rows[row, lane + np.uint64(2)] = sums[2]
    rows[row, lane + np.uint64(3)] = sums[3]


@njit(inline="always")
def _dropped_sums(  # type: ignore[no-untyped-def]
    node, cut, link, masked, mask, weight, low, high, lane, first, last, below, above
):
    """The terms of the targets at their cuts: the low ones summed from the end, the high ones not.

    A source at place ``m`` is given the low terms of the cuts after ``m`` and the high terms of
    those up to ``m``.
    """
    size = last - first
    for m in range(size + ONE):
        for f in range(np.uint64(LANES)):
            below[m, f] = 0
            above[m, f] = 0
    for p in range(first, last):
        i, c = node[p], cut[p]
        for f in range(np.uint64(LANES)):
            share = link[p]
            if masked:
                share *= _column_weight(weight, mask, p, lane + f)
            below[c, f] += share * low[i, lane + f]
            above[c, f] += share * high[i, lane + f]
    sums, one = _nothing(below), below.dtype.type(1)
    for taken in range(size):
        sums = _add(sums, one, below, size - taken, np.uint64(0))
        _store(below, size - taken, np.uint64(0), sums)


@njit(inline="always")
def _column_weight(weight, mask, p, column):  # type: ignore[no-untyped-def]
    return weight[0, column] + weight[1, column] * mask[0, p] + weight[2, column] * mask[1, p]
