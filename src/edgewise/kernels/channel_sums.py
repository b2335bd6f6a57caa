"""Sums of a whole graph's channels at every node, of edges that are encoded on the way.

What a normalisation divides by, for graphs whose edges are never in memory all at once. Row ``i``
of a channel holds the edges that enter node ``i``, as layers read them.
"""

from enum import IntEnum

import numpy as np
from jaxtyping import Float
from numba import njit, prange

from edgewise.kernels import backend
from edgewise.kernels.sampling import EdgeLists, next_neighbor

NODES = 4096  # that one thread takes at a time


class Encoding(IntEnum):
    """How the two directions of a pair of nodes become channels."""

    DIRECTED = 0  # the edge itself, its reverse, and their sum
    SUM = 1
    MAX = 2

    def channels(self, raw: int) -> int:
        """How many channels come of so many."""
        return 3 * raw if self is Encoding.DIRECTED else raw


def row_sums(
    lists: EdgeLists,
    edge_attr: Float[np.ndarray, "edges raw"],
    encoding: Encoding,
    *,
    fill: float,
) -> Float[np.ndarray, "nodes channels"]:
    """The sum over the edges that enter each node, and a self-loop of ``fill`` if it has none."""
    nodes = len(lists.out_start) - 1
    sums = np.empty((nodes, encoding.channels(edge_attr.shape[1])), dtype=edge_attr.dtype)
    with backend.running:
        _sum(*lists, edge_attr, int(encoding), fill, sums[:0], sums)
    return sums


def balance_sums(
    lists: EdgeLists,
    edge_attr: Float[np.ndarray, "edges raw"],
    encoding: Encoding,
    rows: Float[np.ndarray, "nodes channels"],
) -> Float[np.ndarray, "nodes channels"]:
    """The column sums of rows that are divided by their sums, self-loops of 1 included."""
    sums = np.empty_like(rows)
    with backend.running:
        _sum(*lists, edge_attr, int(encoding), 1.0, rows, sums)
    return sums


def same_both_ways(lists: EdgeLists, edge_attr: Float[np.ndarray, "edges raw"]) -> bool:
    """Whether every edge has a reverse edge with the same values."""
    return bool(_same_both_ways(*lists, edge_attr))


@backend.jit()
def _same_both_ways(out_start, target, in_start, source, in_edge, attr):  # type: ignore[no-untyped-def]
    for i in range(len(out_start) - 1):
        a, b = out_start[i], in_start[i]
        if out_start[i + 1] - a != in_start[i + 1] - b:
            return False
        for k in range(out_start[i + 1] - a):
            if target[a + k] != source[b + k]:
                return False
            for p in range(attr.shape[1]):
                if attr[a + k, p] != attr[in_edge[b + k], p]:
                    return False
    return True


@njit(inline="always")
def encoded(encoding, there, back, channel, raw):  # type: ignore[no-untyped-def]
    """One channel of an edge, of its value there and that of its reverse."""
    if encoding == Encoding.MAX:
        return max(there, back)
    if encoding == Encoding.SUM or channel >= 2 * raw:
        return there + back
    return there if channel < raw else back


@backend.jit(parallel=True)
def _sum(  # type: ignore[no-untyped-def]
    out_start, target, in_start, source, in_edge, attr, encoding, fill, rows, sums
):
    """By rows; with the sums of the rows at hand, by columns of what they were divided by."""
    nodes, channels = sums.shape
    raw, by_column = attr.shape[1], len(rows) > 0
    for part in prange((nodes + NODES - 1) // NODES):
        total = np.empty(channels)
        for i in range(part * NODES, min(nodes, (part + 1) * NODES)):
            total[:] = 0
            loop = False
            a, a_end, b, b_end = out_start[i], out_start[i + 1], in_start[i], in_start[i + 1]
            while a < a_end or b < b_end:
                j, leaves, enters = next_neighbor(target, source, a, a_end, b, b_end)
                own = j == i
                loop = loop or own
                for c in range(channels):
                    p = c % raw
                    there = np.float64(attr[in_edge[b], p]) if enters else 0.0
                    back = np.float64(attr[a, p]) if leaves else 0.0
                    if by_column:
                        there, back = back, there
                    value = encoded(encoding, there, back, c, raw)
                    if own and value == 0:
                        value = np.float64(fill)
                    total[c] += value / rows[j, c] if by_column else value
                a, b = a + leaves, b + enters
            for c in range(channels):
                if not loop:
                    total[c] += fill / rows[i, c] if by_column else fill
                sums[i, c] = total[c]
