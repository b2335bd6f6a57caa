"""The nodes that both ends of a pair are joined with. Arranges a pattern, and computes nothing."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from edgewise.kernels import backend


class NeighborLists(NamedTuple):
    """The different neighbours of each node in ascending order, whichever way an edge goes."""

    start: Int[np.ndarray, " nodes_and_one"]
    neighbor: Int[np.ndarray, " pairs"]
    leaving: Int[np.ndarray, " pairs"]  # the group of the edges from the node to its neighbour
    entering: Int[np.ndarray, " pairs"]  # the group of the edges back

    @classmethod
    def of(
        cls,
        edge_index: Int[np.ndarray, "2 edges"],
        there: Int[np.ndarray, " edges"],
        back: Int[np.ndarray, " edges"],
        num_nodes: int,
    ) -> "NeighborLists":
        """From edges and their groups, see :func:`edgewise.graphs.incident.pair_groups`.

        Self-loops join no two nodes, and are left out.
        """
        kept = edge_index[0] != edge_index[1]
        source, target = edge_index[:, kept].astype(np.int64)
        node, far = np.concatenate([source, target]), np.concatenate([target, source])
        _, first = np.unique(node * num_nodes + far, return_index=True)
        leaving = np.concatenate([there[kept], back[kept]])[first]
        entering = np.concatenate([back[kept], there[kept]])[first]
        start = np.searchsorted(node[first], np.arange(num_nodes + 1))
        return cls(start, far[first], leaving, entering)


class CommonNeighbors(NamedTuple):
    """For each common neighbour of each pair, the places in the lists of the two ends."""

    start: Int[np.ndarray, " pairs_and_one"]
    first: Int[np.ndarray, " common"]  # in the list of the first end
    second: Int[np.ndarray, " common"]


def count_common_neighbors(
    lists: NeighborLists, pairs: Int[np.ndarray, "2 pairs"]
) -> Int[np.ndarray, " pairs"]:
    """How many neighbours both ends of each pair have, in time of the shorter list."""
    found = np.empty(pairs.shape[1], dtype=np.int64)
    _count(lists.start, lists.neighbor, *np.ascontiguousarray(pairs, dtype=np.int64), found)
    return found


def common_neighbors(
    lists: NeighborLists, pairs: Int[np.ndarray, "2 pairs"], counts: Int[np.ndarray, " pairs"]
) -> CommonNeighbors:
    """The neighbours that both ends of each pair have, as many as were counted."""
    start = np.concatenate([[0], np.cumsum(counts)])
    first, second = np.empty((2, start[-1]), dtype=np.int64)
    ends = np.ascontiguousarray(pairs, dtype=np.int64)
    _fill(lists.start, lists.neighbor, *ends, start, first, second)
    return CommonNeighbors(start, first, second)


@backend.jit(nogil=True)
def _place(neighbor, first, last, node):  # type: ignore[no-untyped-def]
    """Where a node stands in a sorted stretch, or -1."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if neighbor[middle] < node:
            first = middle + 1
        else:
            last = middle
    return first if first < end and neighbor[first] == node else -1


@backend.jit(nogil=True)
def _count(start, neighbor, left, right, found):  # type: ignore[no-untyped-def]
    for q in range(len(left)):
        a, b = left[q], right[q]
        if start[a + 1] - start[a] > start[b + 1] - start[b]:
            a, b = b, a
        found[q] = 0
        for k in range(start[a], start[a + 1]):
            found[q] += _place(neighbor, start[b], start[b + 1], neighbor[k]) >= 0


@backend.jit(nogil=True)
def _fill(start, neighbor, left, right, begin, first, second):  # type: ignore[no-untyped-def]
    for q in range(len(left)):
        a, b, number = left[q], right[q], begin[q]
        swapped = start[a + 1] - start[a] > start[b + 1] - start[b]
        if swapped:
            a, b = b, a
        for k in range(start[a], start[a + 1]):
            other = _place(neighbor, start[b], start[b + 1], neighbor[k])
            if other >= 0:
                first[number], second[number] = (other, k) if swapped else (k, other)
                number += 1
