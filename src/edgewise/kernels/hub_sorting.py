"""The members of every large hub in the order of their scores, as sources and as targets."""

import numpy as np
from numba import prange

from edgewise.kernels import backend

# Unsigned numbers index an array without a check for "from the end".
ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
# Hubs of so few members are not sorted: all their pairs are gone through.
FEW_MEMBERS = np.uint64(8)
# A key is the place of a member in the order of all nodes, and below it which member it is.
PLACE_BITS, DIGIT_BITS = np.uint64(32), np.uint64(8)
DIGITS = ONE << DIGIT_BITS


@backend.jit(parallel=True)
def sort_members(start, parts, node, place, order, rank):  # type: ignore[no-untyped-def]
    """``place`` is that of every source and target in the order of their scores, by head.

    ``order`` and ``rank`` are two arrays each, of the sources and of the targets: which member of
    its hub stands at each place, and how many of the other side come before each member.
    """
    channels, nodes = np.uint64(parts.shape[1]), np.uint64(place.shape[1]) // TWO
    heads = np.uint64(len(place))
    for task in prange((parts.shape[0] - 1) * parts.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        hubs = start[q * nodes : (q + ONE) * nodes + ONE]
        _sort_members(hubs, parts[part, q], parts[part + ONE, q], node,
                      place[q * heads // channels], order, rank)  # fmt: skip


@backend.jit()
def _sort_members(start, first_hub, last_hub, node, place, order, rank):  # type: ignore[no-untyped-def]
    nodes = np.uint64(len(place)) // TWO
    source_order, target_order = order
    source_rank, target_rank = rank
    keys, room = np.empty((2, 2 * largest(start, first_hub, last_hub)), np.uint64)
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        size = last - first
        if size <= FEW_MEMBERS:
            continue
        for m in range(size):
            i = np.uint64(node[first + m])
            keys[m] = np.uint64(place[i]) << PLACE_BITS | m
            keys[size + m] = np.uint64(place[nodes + i]) << PLACE_BITS | (size + m)
        _sort_by_digits(keys, room, TWO * size, TWO * nodes)
        p, r = first, first  # the next place among the sources, and among the targets
        for k in range(TWO * size):
            m = keys[k] & ((ONE << PLACE_BITS) - ONE)
            if m < size:
                source_order[p], source_rank[first + m] = m, r - first
                p += ONE
            else:
                target_order[r], target_rank[first + m - size] = m - size, p - first
                r += ONE


@backend.jit()
def _sort_by_digits(keys, room, count, places):  # type: ignore[no-untyped-def]
    """Sort by places, of which there are so many; ``room`` is as long as the keys."""
    begin, shift = np.empty(np.int64(DIGITS) + 1, np.uint64), PLACE_BITS
    while places > (ONE << (shift - PLACE_BITS)):
        begin[:] = 0
        for k in range(count):
            begin[(keys[k] >> shift) % DIGITS + ONE] += ONE
        for digit in range(DIGITS):
            begin[digit + ONE] += begin[digit]
        for k in range(count):
            digit = (keys[k] >> shift) % DIGITS
            room[begin[digit]] = keys[k]
            begin[digit] += ONE
        for k in range(count):
            keys[k] = room[k]
        shift += DIGIT_BITS


@backend.jit()
def largest(start, first_hub, last_hub):  # type: ignore[no-untyped-def]
    """The size of the largest of some hubs."""
    size = 0
    for hub in range(first_hub, last_hub):
        size = max(size, np.int64(start[hub + ONE] - start[hub]))
    return size
