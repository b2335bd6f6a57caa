"""The compiled walks past the hubs. What they compute, and on what, is told in hubs.py.

Every hub has a row of sums: a register of those whose nodes are on this side of the kink, and
beside it one of those whose nodes have crossed.
"""

import numpy as np
from numba import prange

from edgewise.kernels import backend
from edgewise.kernels.lanes import (
    added_up,
    everywhere,
    fetch,
    first_half,
    load,
    nothing,
    plus,
    second_half,
    side_by_side,
    store,
    times,
)

# Unsigned numbers index an array without a check for "from the end".
NONE, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
# Nodes come in the order of their scores, so their links lie anywhere. Those of the node some
# events ahead, or the first of them, are fetched while those of this one are used.
AHEAD, FETCHED, LINE = np.uint64(16), np.uint64(64), np.uint64(16)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_products(  # type: ignore[no-untyped-def]
    events, bounds, column, link, giver_masks, giver, taker_masks, taker, z, out, sources_give,
    lanes,
):  # fmt: skip
    channels, heads = np.uint64(len(z)), np.uint64(events.shape[1])
    for task in prange(out.shape[0] * out.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _walk_products(events[:, q * heads // channels], bounds[part, q], bounds[part + ONE, q],
                       column, link, giver_masks, giver[q], taker_masks, taker[q], z[q],
                       out[part, q], sources_give, lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_products(  # type: ignore[no-untyped-def]
    events, first, last, column, link, giver_masks, giver, taker_masks, taker, z, out,
    sources_give, lanes,
):  # fmt: skip
    nodes, width, zero = np.uint64(len(z)), np.uint64(len(lanes)), nothing(z, lanes)
    both = side_by_side(zero, zero)
    hubs = np.empty((len(z), 2 * len(lanes)), z.dtype)
    for f in range(NONE, np.uint64(z.shape[1]), width):
        hubs[:] = 0
        for i in range(nodes):
            mine = times(giver[i, 0], load(zero, z, i, f))
            _give(mine, first[i], last[i], column, link, giver_masks, f, hubs, NONE)
        for place in range(TWO * nodes):
            _fetch_ahead(events, place, first, last, column, link, giver_masks, taker_masks)
            i, is_source = _node(events[place], nodes), events[place] < nodes
            if is_source == sources_give:
                mine = _crossing(load(zero, z, i, f), giver[i, 0], giver[i, 1])
                _give(mine, first[i], last[i], column, link, giver_masks, f, hubs, NONE)
            else:
                total = both
                for e in range(first[i], last[i]):
                    share = _share(link, taker_masks, e, f, both)
                    total = plus(total, share, load(both, hubs, column[e], NONE))
                before = times(taker[i, 0], first_half(total))
                store(plus(before, taker[i, 1], second_half(total)), out, i, f)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_gradients(  # type: ignore[no-untyped-def]
    events, bounds, column, link, masks, held, source, asked, target, tilt, grad_link,
    grad_target, grad_source, lanes,
):  # fmt: skip
    channels, heads = np.uint64(len(held)), np.uint64(events.shape[1])
    for task in prange(grad_target.shape[0] * grad_target.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _walk_gradients(events[:, q * heads // channels], bounds[part, q], bounds[part + ONE, q],
                        column, link, masks, held[q], source[q], asked[q], target[q], tilt,
                        grad_link, grad_target[part, q], grad_source[part, q], lanes)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_gradients(  # type: ignore[no-untyped-def]
    events, first, last, column, link, masks, held, source, asked, target, tilt, grad_link,
    grad_target, grad_source, lanes,
):  # fmt: skip
    """Both products at once: what sources hold stands on the left of a hub, what targets ask right.

    Sources cross the kink upwards and targets downwards: "before" is below for the former and
    above for the latter.
    """
    nodes, width, zero = np.uint64(len(held)), np.uint64(len(lanes)), nothing(held, lanes)
    both, right = side_by_side(zero, zero), TWO * width
    hubs = np.empty((len(held), 4 * len(lanes)), held.dtype)
    for f in range(NONE, np.uint64(held.shape[1]), width):
        hubs[:] = 0
        for i in range(nodes):
            answer = times(source[i, 0], load(zero, held, i, f))
            question = times(target[i, 1], load(zero, asked, i, f))
            _give(answer, first[i], last[i], column, link, None, f, hubs, NONE)
            _give(question, first[i], last[i], column, link, masks, f, hubs, right)
        for place in range(TWO * nodes):
            _fetch_ahead(events, place, first, last, column, link, masks, None)
            i, total = _node(events[place], nodes), both
            if events[place] < nodes:
                mine, low, high = load(zero, held, i, f), source[i, 0], source[i, 1]
                answer = _crossing(mine, low, high)
                mine = side_by_side(times(high, mine), times(low, mine))
                for e in range(first[i], last[i]):
                    k = column[e]
                    store(plus(load(both, hubs, k, NONE), link[e], answer), hubs, k, NONE)
                    gain = times(mine, load(both, hubs, k, right))
                    grad_link[e] += added_up(gain)
                    total = plus(total, link[e], gain)
                grad_source[i] += added_up(first_half(total)) + tilt * added_up(second_half(total))
            else:
                mine, low, high = load(zero, asked, i, f), target[i, 0], target[i, 1]
                question = _crossing(mine, high, low)
                mine = side_by_side(times(low, mine), times(high, mine))
                for e in range(first[i], last[i]):
                    k, kept = column[e], _kept(masks, e, f, both)
                    share = times(link[e], kept)
                    store(plus(load(both, hubs, k, right), share, question), hubs, k, right)
                    gain = times(times(kept, mine), load(both, hubs, k, NONE))
                    grad_link[e] += added_up(gain)
                    total = plus(total, link[e], gain)
                grad_target[i] += tilt * added_up(first_half(total)) + added_up(second_half(total))


@backend.jit(fastmath=backend.FAST_MATH)
def _give(numbers, first, last, column, link, masks, f, hubs, place):  # type: ignore[no-untyped-def]
    """Add the numbers of a node to its hubs, as far as it is linked to each."""
    for e in range(first, last):
        k, share = column[e], _share(link, masks, e, f, numbers)
        store(plus(load(numbers, hubs, k, place), share, numbers), hubs, k, place)


@backend.jit(fastmath=backend.FAST_MATH)
def _crossing(numbers, before, after):  # type: ignore[no-untyped-def]
    """What changes in a hub when a node crosses: one sum loses it, the other gains it."""
    return side_by_side(times(-before, numbers), times(after, numbers))


@backend.jit(fastmath=backend.FAST_MATH)
def _share(link, masks, e, f, like):  # type: ignore[no-untyped-def]
    """A link in each of a group of columns, under dropout."""
    if masks is None:
        return everywhere(like, link[e])
    return times(link[e], _kept(masks, e, f, like))


@backend.jit(fastmath=backend.FAST_MATH)
def _kept(masks, e, f, like):  # type: ignore[no-untyped-def]
    """What dropout leaves of a link, as a factor."""
    if masks is None:
        return everywhere(like, 1)
    kind, factor = masks
    return load(like, factor, kind[e], TWO * f)


@backend.jit()
def _node(event, nodes):  # type: ignore[no-untyped-def]
    return np.uint64(event) if event < nodes else np.uint64(event) - nodes


@backend.jit()
def _fetch_ahead(events, place, first, last, column, link, masks, others):  # type: ignore[no-untyped-def]
    nodes = np.uint64(len(first))
    i = _node(events[min(place + AHEAD, TWO * nodes - ONE)], nodes)
    for e in range(first[i], min(last[i], first[i] + FETCHED), LINE):
        fetch(column, (e,))
        fetch(link, (e,))
    _fetch_masks(masks, first[i])
    _fetch_masks(others, first[i])


@backend.jit()
def _fetch_masks(masks, e):  # type: ignore[no-untyped-def]
    if masks is not None:
        fetch(masks[0], (e,))
