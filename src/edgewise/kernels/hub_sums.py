"""Sums over the pairs of every hub, below the kink and above it apart; see sorted_hubs.py."""

import numpy as np
from numba import prange

from edgewise.kernels import backend
from edgewise.kernels.hub_sorting import FEW_MEMBERS, ONE, ZERO, largest
from edgewise.kernels.lanes import prefetch

PREFETCH_DISTANCE = np.uint64(24)


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def walk_sums(  # type: ignore[no-untyped-def]
    start, parts, node, score, order, rank, before, link, factor, out_factor, out, grad_link
):
    """``out[i, kind] = sum_k B_ik sum_j B_jk factor[j, kind]`` over the inputs ``j`` of a kind.

    ``order`` is that of the inputs, ``rank`` that of the outputs among them, ``before`` the kind of
    an input that has not crossed the kink yet. ``grad_link``, unless it is empty, is the sum at
    every link, times ``out_factor``.
    """
    channels, nodes = np.uint64(factor.shape[0]), np.uint64(factor.shape[1])
    heads = np.uint64(len(score))
    for task in prange(out.shape[0] * out.shape[1]):
        part, q = np.uint64(task) // channels, np.uint64(task) % channels
        out[part, q] = 0
        _walk_sums(start[q * nodes : (q + ONE) * nodes + ONE], parts[part, q],
                   parts[part + ONE, q], node, score[q * heads // channels], order, rank, before,
                   link, factor[q], out_factor[q], out[part, q], grad_link)  # fmt: skip


@backend.jit(fastmath=backend.FAST_MATH)
def _walk_sums(  # type: ignore[no-untyped-def]
    start, first_hub, last_hub, node, score, order, rank, before, link, factor, out_factor, out,
    grad_link,
):  # fmt: skip
    after, of_links = ONE - before, len(grad_link) > 0
    few, zero = np.int64(FEW_MEMBERS), out.dtype.type(0)
    # The score of an output is compared with that of an input, whose side is the other one.
    input_side, output_side = after, before
    near, near_score = np.empty((few, 2), out.dtype), np.empty((few, 2), score.dtype)
    sums = np.empty((largest(start, first_hub, last_hub) + 1, 2), out.dtype)
    links = np.uint64(len(node))
    for hub in range(first_hub, last_hub):
        first, last = start[hub], start[hub + ONE]
        size = last - first
        if size <= FEW_MEMBERS:
            for m in range(size):
                i, later = np.uint64(node[first + m]), first + m + PREFETCH_DISTANCE
                if later < links:
                    ahead = np.uint64(node[later])
                    prefetch(factor, (ahead, ZERO))
                    prefetch(score, (ahead, ZERO))
                    prefetch(out, (ahead, ZERO))
                near[m, 0] = link[first + m] * factor[i, 0]
                near[m, 1] = link[first + m] * factor[i, 1]
                near_score[m, 0], near_score[m, 1] = score[i, input_side], score[i, output_side]
            for m in range(size):
                below, above, own = zero, zero, near_score[m, 1]
                for other in range(size):
                    # A number, for a branch would be predicted wrong half of the time.
                    is_above = out.dtype.type(own + near_score[other, 0] > 0)
                    below += near[other, 0] - is_above * near[other, 0]
                    above += is_above * near[other, 1]
                _put(first + m, below, above, node, link, out_factor, out, grad_link, of_links)
            continue
        sums[0, 0], sums[0, 1] = zero, zero
        for k in range(size):
            if k + PREFETCH_DISTANCE < size:
                ahead = first + np.uint64(order[first + k + PREFETCH_DISTANCE])
                prefetch(factor, (np.uint64(node[ahead]), ZERO))
            p = first + np.uint64(order[first + k])
            i = np.uint64(node[p])
            sums[k + ONE, 0] = sums[k, 0] + link[p] * factor[i, before]
            sums[k + ONE, 1] = sums[k, 1] + link[p] * factor[i, after]
        for p in range(first, last):
            if p + PREFETCH_DISTANCE < last:
                prefetch(out, (np.uint64(node[p + PREFETCH_DISTANCE]), ZERO))
            r = np.uint64(rank[p])
            left, crossed = sums[size, 0] - sums[r, 0], sums[r, 1]
            below, above = (left, crossed) if before == ZERO else (crossed, left)
            _put(p, below, above, node, link, out_factor, out, grad_link, of_links)


@backend.jit(forceinline=True, fastmath=backend.FAST_MATH)
def _put(p, below, above, node, link, out_factor, out, grad_link, of_links):  # type: ignore[no-untyped-def]
    i = np.uint64(node[p])
    out[i, 0] += link[p] * below
    out[i, 1] += link[p] * above
    if of_links:
        grad_link[p] += out_factor[i, 0] * below + out_factor[i, 1] * above
