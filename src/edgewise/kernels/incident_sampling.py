"""Edges at nodes where edges may be parallel: all or some of those before a time, and their sums.

Each edge stands in two lists, that of the node which it leaves and that of the node which it
enters, both in the order of time, so that what was before a time is the beginning of a list. What
is drawn for a node depends on the key and its number alone.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from numba import njit

from edgewise.kernels import backend
from edgewise.kernels.dropout import key_words
from edgewise.kernels.sampling import FEW, draw_below


class IncidentLists(NamedTuple):
    """The edges that leave and enter each node, by time."""

    out_start: Int[np.ndarray, " nodes_and_one"]
    out_edge: Int[np.ndarray, " edges"]
    out_time: Shaped[np.ndarray, " edges"]
    in_start: Int[np.ndarray, " nodes_and_one"]
    in_edge: Int[np.ndarray, " edges"]
    in_time: Shaped[np.ndarray, " edges"]

    @classmethod
    def of(
        cls,
        edge_index: Int[np.ndarray, "2 edges"],
        time: Shaped[np.ndarray, " edges"],
        num_nodes: int,
    ) -> "IncidentLists":
        parts = []
        for end in edge_index:
            order = np.lexsort((time, end))
            start = np.searchsorted(end[order], np.arange(num_nodes + 1))
            parts += [start, order, time[order]]
        return cls(*parts)


class IncidentEdges(NamedTuple):
    """Edges of some nodes, one node after the other."""

    start: Int[np.ndarray, " nodes_and_one"]
    edge: Int[np.ndarray, " pairs"]
    leaves: Bool[np.ndarray, " pairs"]  # whether the edge leaves the node, or enters it
    weight: Float[np.ndarray, " pairs"]  # the inverse of the probability of being drawn


def sample_incident(
    lists: IncidentLists, before: object, nodes: Int[np.ndarray, " some"], fan_out: int, key: int
) -> IncidentEdges:
    """Up to ``fan_out`` edges of each node before a time, without replacement; below 0 for all."""
    most = np.diff(lists.out_start)[nodes] + np.diff(lists.in_start)[nodes]
    room = int((most if fan_out < 0 else np.minimum(most, fan_out)).sum())
    start = np.zeros(len(nodes) + 1, dtype=np.int64)
    edge, place = np.empty((2, room), dtype=np.int64)
    leaves, weight = np.empty(room, dtype=np.bool_), np.empty(room)
    _sample(*lists, before, nodes, fan_out, *key_words(key), start, place, edge, leaves, weight)
    filled = start[-1]
    return IncidentEdges(start, edge[:filled], leaves[:filled], weight[:filled])


def incident_sums(
    lists: IncidentLists,
    before: object,
    nodes: Int[np.ndarray, " some"],
    channels: Float[np.ndarray, "edges channels"],
    labels: Float[np.ndarray, "edges labels"],
    seen: Bool[np.ndarray, " edges"],
) -> tuple[Float[np.ndarray, "some sums"], Float[np.ndarray, "some sums"]]:
    """Of the edges that leave nodes, and of those that enter them, before a time: their number,
    the sums of their channels, the number of labels that are seen, and the sums of these.
    """
    width = 1 + channels.shape[1] + (1 + labels.shape[1] if labels.shape[1] else 0)
    sums = np.zeros((2, len(nodes), width), dtype=channels.dtype)
    _sum(*lists[:3], before, nodes, channels, labels, seen, sums[0])
    _sum(*lists[3:], before, nodes, channels, labels, seen, sums[1])
    return sums[0], sums[1]


def incident_counts(
    lists: IncidentLists, before: object, nodes: Int[np.ndarray, " some"]
) -> Int[np.ndarray, "2 some"]:
    """How many edges leave nodes, and how many enter them, before a time."""
    counts = np.empty((2, len(nodes)), dtype=np.int64)
    for (start, _, time), count in zip((lists[:3], lists[3:]), counts, strict=True):
        _count(start, time, before, nodes, count)
    return counts


def mark_incident(
    lists: IncidentLists,
    before: object,
    ends: Int[np.ndarray, "2 edges"],
    marked: Bool[np.ndarray, " nodes"],
) -> Bool[np.ndarray, " nodes"]:
    """The marked nodes, and all that an edge before a time joins one of them with."""
    found = marked.copy()
    if not marked.all():
        _mark(*lists[:3], before, ends[1], marked, found)
        _mark(*lists[3:], before, ends[0], marked, found)
    return found


@njit(inline="always")
def _end(time, first, last, before):  # type: ignore[no-untyped-def]
    """Where what is not before a time begins in a sorted stretch."""
    while first < last:
        middle = (first + last) // 2
        if time[middle] < before:
            first = middle + 1
        else:
            last = middle
    return first


@backend.jit(nogil=True)
def _sample(  # type: ignore[no-untyped-def]
    out_start, out_edge, out_time, in_start, in_edge, in_time, before, nodes, fan_out, low_key,
    high_key, start, place, edge, leaves, weight,
):  # fmt: skip
    filled = 0
    for n in range(len(nodes)):
        i = nodes[n]
        a, b = out_start[i], in_start[i]
        leave = _end(out_time, a, out_start[i + 1], before) - a
        count = leave + _end(in_time, b, in_start[i + 1], before) - b
        wanted = count if fan_out < 0 else min(count, fan_out)
        first = filled
        if count <= FEW * wanted:
            for seen in range(count):
                # Each with the probability that fills what is left of the sample.
                left = wanted - (filled - first)
                if draw_below(low_key, high_key, i, seen, count - seen) < left:
                    place[filled] = seen
                    filled += 1
        else:
            number = 0
            while filled - first < wanted:
                drawn = draw_below(low_key, high_key, i, number, count)
                number += 1
                known = False
                for k in range(first, filled):
                    known = known or place[k] == drawn
                if not known:
                    place[filled] = drawn
                    filled += 1
        for k in range(first, filled):
            leaves[k] = place[k] < leave
            edge[k] = out_edge[a + place[k]] if leaves[k] else in_edge[b + place[k] - leave]
            weight[k] = count / wanted
        start[n + 1] = filled


@backend.jit(nogil=True)
def _count(list_start, list_time, before, nodes, count):  # type: ignore[no-untyped-def]
    for n in range(len(nodes)):
        first = list_start[nodes[n]]
        count[n] = _end(list_time, first, list_start[nodes[n] + 1], before) - first


@backend.jit(nogil=True)
def _mark(list_start, list_edge, list_time, before, far, marked, found):  # type: ignore[no-untyped-def]
    for i in range(len(marked)):
        if marked[i]:
            first = list_start[i]
            for k in range(first, _end(list_time, first, list_start[i + 1], before)):
                found[far[list_edge[k]]] = True


@backend.jit(nogil=True)
def _sum(list_start, list_edge, list_time, before, nodes, channels, labels, seen, sums):  # type: ignore[no-untyped-def]
    width = channels.shape[1]
    for n in range(len(nodes)):
        first = list_start[nodes[n]]
        for k in range(first, _end(list_time, first, list_start[nodes[n] + 1], before)):
            e = list_edge[k]
            sums[n, 0] += 1
            for c in range(width):
                sums[n, 1 + c] += channels[e, c]
            if labels.shape[1] and seen[e]:
                sums[n, 1 + width] += 1
                for c in range(labels.shape[1]):
                    sums[n, 2 + width + c] += labels[e, c]
