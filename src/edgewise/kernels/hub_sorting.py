"""The links of every hub, sorted by the scores of their nodes, as sorted_walks.py reads them."""

import numpy as np
from numba import prange

from edgewise.kernels import backend

# Unsigned numbers index an array without a check for "from the end".
ZERO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
# Which masks keep a link stands in the low bits of its node.
MASK_BITS, UNMASKED = np.uint64(3), np.uint64(4)
# A key is the place of a member in the order of all nodes, and below it which member it is.
PLACE_BITS = np.uint64(32)
# So few members are each counted past the others, more are sorted by one digit of the place after
# the other.
FEW_MEMBERS, DIGIT_BITS = np.uint64(16), np.uint64(8)
DIGITS = ONE << DIGIT_BITS


@backend.jit(parallel=True)
def sort_links(  # type: ignore[no-untyped-def]
    start, parts, place, node, entry, link, kept, source_scale, target_scale, sources, targets
):
    """``place`` is that of every source and target in the order of their scores, by head.

    ``node`` and ``entry`` are the node of every link, by hub, and where the link stands in ``B``.
    """
    channels, nodes = np.uint64(source_scale.shape[0]), np.uint64(source_scale.shape[1])
    heads = np.uint64(len(place))
    for task in prange((parts.shape[0] - 1) * parts.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        _sort_links(start[q * nodes : (q + ONE) * nodes + ONE], parts[part, q],
                    parts[part + ONE, q], place[q * heads // channels], node, entry, link, kept,
                    source_scale[q], target_scale[q], sources, targets)  # fmt: skip


@backend.jit()
def _sort_links(  # type: ignore[no-untyped-def]
    start, first_hub, last_hub, place, node, entry, link, kept, source_scale, target_scale,
    sources, targets,
):  # fmt: skip
    nodes = np.uint64(len(source_scale))
    keys, room = np.empty((2, 2 * largest(start, first_hub, last_hub)), np.uint64)
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        size = last - first
        for m in range(size):
            i = np.uint64(node[first + m])
            keys[m] = np.uint64(place[i]) << PLACE_BITS | m
            keys[size + m] = np.uint64(place[nodes + i]) << PLACE_BITS | (size + m)
        if size <= FEW_MEMBERS:
            for m in range(size):
                _put_counted(keys, size, m, first, node, entry, link, kept, source_scale,
                             target_scale, sources, targets)  # fmt: skip
            continue
        _sort_by_digits(keys, room, TWO * size, TWO * nodes)
        p, r = first, first  # the next place among the sources, and among the targets
        for k in range(TWO * size):
            m = keys[k] & ((ONE << PLACE_BITS) - ONE)
            if m < size:
                _put(sources, p, r, first + m, node, entry, link, None, source_scale)
                p += ONE
            else:
                _put(targets, r, p, first + m - size, node, entry, link, kept, target_scale)
                r += ONE


@backend.jit(forceinline=True)
def _put_counted(  # type: ignore[no-untyped-def]
    keys, size, m, first, node, entry, link, kept, source_scale, target_scale, sources, targets
):
    """Write a member to its places; no branch on the keys, which would be predicted wrong."""
    as_source, as_target = keys[m], keys[size + m]
    p, rank, r, target_rank = first, first, first, first
    for other in range(size):
        other_source, other_target = keys[other], keys[size + other]
        p += np.uint64(other_source < as_source)
        rank += np.uint64(other_target < as_source)
        r += np.uint64(other_target < as_target)
        target_rank += np.uint64(other_source < as_target)
    _put(sources, p, rank, first + m, node, entry, link, None, source_scale)
    _put(targets, r, target_rank, first + m, node, entry, link, kept, target_scale)


@backend.jit(forceinline=True)
def _put(links, p, rank, m, node, entry, link, kept, scale):  # type: ignore[no-untyped-def]
    """Write a member to place ``p`` of one side; ``rank`` is its place among the others."""
    to_node, to_factor, to_entry = links
    i, e = np.uint64(node[m]), np.uint64(entry[m])
    mask = UNMASKED if kept is None else np.uint64(kept[e])
    to_node[p, 0], to_node[p, 1], to_entry[p] = i << MASK_BITS | mask, rank, e
    to_factor[p, 0], to_factor[p, 1] = link[e] * scale[i, 0], link[e] * scale[i, 1]


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


@backend.jit(parallel=True)
def put_in_place(source_entry, target_entry, source_grad, target_grad, start, nodes, grad_link):  # type: ignore[no-untyped-def]
    """Add up the gradients of every link, and put them where it stands in ``B``."""
    for q in prange(np.uint64(len(start) - 1) // nodes):
        first, last = start[q * nodes], start[(q + ONE) * nodes]
        for p in range(first, last):
            grad_link[source_entry[p]] = source_grad[p]
        for p in range(first, last):
            grad_link[target_entry[p]] += target_grad[p]
