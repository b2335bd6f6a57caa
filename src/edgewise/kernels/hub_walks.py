"""The compiled walks along hubs. What they compute, and on what, is told in hubs.py."""

import numpy as np
from numba import njit, prange

from edgewise.kernels import backend
from edgewise.kernels.lanes import added_up, load, nothing, plus, store

# Unsigned numbers index an array without a check for "from the end", which halves a walk.
ONE, TWO = np.uint64(1), np.uint64(2)
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
        end = np.empty(nodes, np.uint32)  # of the list of each hub, as far as it has grown
        for hub in range(nodes):
            end[hub] = hub_start[hub * channels + q]
        for event in events[:, q * np.uint64(heads) // channels]:
            row = event % nodes * channels + q
            for e in range(start[row], start[row + ONE]):
                hub = column[e]
                if event < nodes:
                    order[end[hub]] = place[e]
                    end[hub] += 1
                else:
                    cut[place[e]] = end[hub]


@njit(parallel=True, cache=True)
def list_sources(order, node, link, source_node, source_link):  # type: ignore[no-untyped-def]
    for m in prange(len(order)):
        source_node[m], source_link[m] = node[order[m]], link[order[m]]


# In all four walks, ``weighted`` holds what is summed, each group of columns that fit into a
# register twice: times its factor below the kink, then times its factor above.


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def walk_pull(  # type: ignore[no-untyped-def]
    parts, start, sources, targets, masks, weighted, factor, out, lanes
):
    channels = weighted.shape[0]
    for task in prange(PARTS * channels):
        part, q = task // channels, task % channels
        sums = _sums(start, lanes, out)
        mine, factors, rows = out[part, q], factor[q], weighted[q]
        for k in range(parts[part], parts[part + 1]):
            first, last = start[k * channels + q], start[k * channels + q + 1]
            _pull(first, last, sources, targets, masks, rows, factors, sums, mine, lanes)


@njit(cache=True, fastmath=backend.FAST_MATH)
def _pull(  # type: ignore[no-untyped-def]
    first, last, sources, targets, masks, rows, factors, sums, mine, lanes
):
    (node, link, cut), (kept, weight) = targets, masks
    above, zero = np.uint64(len(lanes)), nothing(sums, lanes)
    for column in range(np.uint64(0), np.uint64(mine.shape[1]), above):
        _running_sums(first, last, sources, rows, column, sums, lanes)
        for p in range(first, last):
            i, c = node[p], cut[p] - first
            share = plus(zero, link[p] * factors[i, 0], load(zero, sums, c, np.uint64(0)))
            share = plus(share, link[p] * factors[i, 1], load(zero, sums, c, above))
            share = plus(load(zero, mine, i, column), _kept(kept, weight, p, column, zero), share)
            store(share, mine, i, column)


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def walk_push(  # type: ignore[no-untyped-def]
    parts, start, sources, targets, masks, weighted, factor, out, lanes
):
    channels = weighted.shape[0]
    for task in prange(PARTS * channels):
        part, q = task // channels, task % channels
        sums = _sums(start, lanes, out)
        mine, factors, rows = out[part, q], factor[q], weighted[q]
        for k in range(parts[part], parts[part + 1]):
            first, last = start[k * channels + q], start[k * channels + q + 1]
            _push(first, last, sources, targets, masks, rows, factors, sums, mine, lanes)


@njit(cache=True, fastmath=backend.FAST_MATH)
def _push(  # type: ignore[no-untyped-def]
    first, last, sources, targets, masks, rows, factors, sums, mine, lanes
):
    node, link, _ = sources
    above, zero = np.uint64(len(lanes)), nothing(sums, lanes)
    for column in range(np.uint64(0), np.uint64(mine.shape[1]), above):
        _dropped_sums(first, last, targets, masks, rows, column, sums, lanes)
        given = zero
        for m in range(last - first):
            j, value = node[first + m], link[first + m]
            given = plus(given, 1, load(zero, sums, m, above))
            share = plus(load(zero, mine, j, column), value * factors[j, 1], given)
            below = load(zero, sums, m + ONE, np.uint64(0))
            store(plus(share, value * factors[j, 0], below), mine, j, column)


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def walk_target_gradients(  # type: ignore[no-untyped-def]
    parts, start, sources, targets, masks, weighted, factor, asked, tilt, grad_link, grad_score,
    lanes,
):  # fmt: skip
    channels = weighted.shape[0]
    for task in prange(PARTS * channels):
        part, q = task // channels, task % channels
        sums = _sums(start, lanes, asked)
        questions, factors, rows, score = asked[q], factor[q], weighted[q], grad_score[part, q]
        for k in range(parts[part], parts[part + 1]):
            first, last = start[k * channels + q], start[k * channels + q + 1]
            _target_gradients(first, last, sources, targets, masks, rows, factors, sums,
                              questions, tilt, grad_link, score, lanes)  # fmt: skip


@njit(cache=True, fastmath=backend.FAST_MATH)
def _target_gradients(  # type: ignore[no-untyped-def]
    first, last, sources, targets, masks, rows, factors, sums, questions, tilt, grad_link, score,
    lanes,
):  # fmt: skip
    (node, link, cut), (kept, weight) = targets, masks
    above, zero = np.uint64(len(lanes)), nothing(sums, lanes)
    for column in range(np.uint64(0), np.uint64(questions.shape[1]), above):
        _running_sums(first, last, sources, rows, column, sums, lanes)
        for p in range(first, last):
            i, c = node[p], cut[p] - first
            question = load(zero, questions, i, column)
            question = plus(zero, _kept(kept, weight, p, column, zero), question)
            low = added_up(plus(zero, question, load(zero, sums, c, np.uint64(0)))) * factors[i, 0]
            high = added_up(plus(zero, question, load(zero, sums, c, above))) * factors[i, 1]
            grad_link[p] += low + high
            score[i] += link[p] * (tilt * low + high)


@njit(parallel=True, cache=True, fastmath=backend.FAST_MATH)
def walk_source_gradients(  # type: ignore[no-untyped-def]
    parts, start, sources, targets, masks, weighted, factor, held, tilt, grad_link, grad_score,
    lanes,
):  # fmt: skip
    channels = weighted.shape[0]
    for task in prange(PARTS * channels):
        part, q = task // channels, task % channels
        sums = _sums(start, lanes, held)
        answers, factors, rows, score = held[q], factor[q], weighted[q], grad_score[part, q]
        for k in range(parts[part], parts[part + 1]):
            first, last = start[k * channels + q], start[k * channels + q + 1]
            _source_gradients(first, last, sources, targets, masks, rows, factors, sums,
                              answers, tilt, grad_link, score, lanes)  # fmt: skip


@njit(cache=True, fastmath=backend.FAST_MATH)
def _source_gradients(  # type: ignore[no-untyped-def]
    first, last, sources, targets, masks, rows, factors, sums, answers, tilt, grad_link, score,
    lanes,
):  # fmt: skip
    node, link, order = sources
    above, zero = np.uint64(len(lanes)), nothing(sums, lanes)
    for column in range(np.uint64(0), np.uint64(answers.shape[1]), above):
        _dropped_sums(first, last, targets, masks, rows, column, sums, lanes)
        given = zero
        for m in range(last - first):
            j = node[first + m]
            answer = load(zero, answers, j, column)
            given = plus(given, 1, load(zero, sums, m, above))
            below = load(zero, sums, m + ONE, np.uint64(0))
            high = added_up(plus(zero, answer, given)) * factors[j, 1]
            low = added_up(plus(zero, answer, below)) * factors[j, 0]
            grad_link[order[first + m]] += low + high
            score[j] += link[first + m] * (tilt * low + high)


@njit(cache=True)
def _sums(start, lanes, like):  # type: ignore[no-untyped-def]
    """Room for the sums at every cut of the largest hub, below the kink and above it."""
    size = 0
    for hub in range(len(start) - 1):
        size = max(size, np.int64(start[hub + 1] - start[hub]))
    return np.empty((size + 1, 2 * len(lanes)), like.dtype)


@njit(cache=True, fastmath=backend.FAST_MATH)
def _running_sums(first, last, sources, rows, column, sums, lanes):  # type: ignore[no-untyped-def]
    """For every cut: low terms of the sources before it, high terms of those from it on."""
    node, link, _ = sources
    size, above = last - first, np.uint64(len(lanes))
    low = high = zero = nothing(sums, lanes)
    store(low, sums, np.uint64(0), np.uint64(0))
    for m in range(size):
        low = plus(low, link[first + m], load(zero, rows, node[first + m], TWO * column))
        store(low, sums, m + ONE, np.uint64(0))
    store(high, sums, size, above)
    for taken in range(size):
        m = size - ONE - taken
        terms = load(zero, rows, node[first + m], TWO * column + above)
        high = plus(high, link[first + m], terms)
        store(high, sums, m, above)


@njit(cache=True, fastmath=backend.FAST_MATH)
def _dropped_sums(first, last, targets, masks, rows, column, sums, lanes):  # type: ignore[no-untyped-def]
    """The terms of the targets at their cuts: the low ones summed from the end, the high ones not.

    A source at place ``m`` is given the low terms of the cuts after ``m`` and the high terms of
    those up to ``m``.
    """
    (node, link, cut), (kept, weight) = targets, masks
    size, above, zero = last - first, np.uint64(len(lanes)), nothing(sums, lanes)
    for m in range(size + ONE):
        store(zero, sums, m, np.uint64(0))
        store(zero, sums, m, above)
    for p in range(first, last):
        i, c = node[p], cut[p] - first
        share = plus(zero, link[p], _kept(kept, weight, p, column, zero))
        low = plus(load(zero, sums, c, np.uint64(0)), share, load(zero, rows, i, TWO * column))
        store(low, sums, c, np.uint64(0))
        terms = load(zero, rows, i, TWO * column + above)
        store(plus(load(zero, sums, c, above), share, terms), sums, c, above)
    low = zero
    for taken in range(size):
        low = plus(low, 1, load(zero, sums, size - taken, np.uint64(0)))
        store(low, sums, size - taken, np.uint64(0))


@njit(cache=True, fastmath=backend.FAST_MATH)
def _kept(kept, weight, p, column, like):  # type: ignore[no-untyped-def]
    """What dropout leaves of a link in each of a group of columns."""
    share = load(like, weight, 0, column)
    if kept.shape[1]:
        share = plus(share, kept[0, p], load(like, weight, 1, column))
        share = plus(share, kept[1, p], load(like, weight, 2, column))
    return share
