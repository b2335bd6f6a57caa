"""Neighbours of nodes, all or some of them, drawn by hashes of a key and the node's number.

The neighbours of a node are the nodes that an edge joins it with in either direction, each once,
without the node itself: a pair of nodes carries the channels of both directions. What is drawn for
a node depends on the key and its number alone, not on the other nodes that are asked for.

Edges come as two lists for each node, those that leave it and those that enter it, both sorted by
the node at the other end. The kernels are serial, so that any thread may run them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numba import njit

from edgewise.kernels import backend
from edgewise.kernels.dropout import key_words, mix

# With at most so many times as many neighbours as are wanted, all are looked at, in their order;
# with more, places are drawn until enough are found.
FEW = 4
ALL = -1  # a fan-out without a limit


class EdgeLists(NamedTuple):
    """The edges that leave and enter each node."""

    out_start: Int[np.ndarray, " nodes_and_one"]
    target: Int[np.ndarray, " edges"]
    in_start: Int[np.ndarray, " nodes_and_one"]
    source: Int[np.ndarray, " edges"]
    in_edge: Int[np.ndarray, " edges"]  # the number of each entering edge


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Pairs of nodes and neighbours, by nodes. A self-loop is a pair, too, where there is one."""

    start: Int[np.ndarray, " nodes_and_one"]
    node: Int[np.ndarray, " pairs"]  # the neighbour
    leaving: Int[np.ndarray, " pairs"]  # the number of the edge to the neighbour, or -1
    entering: Int[np.ndarray, " pairs"]  # the number of the edge from the neighbour, or -1
    weight: Float[np.ndarray, " pairs"]  # the inverse of the probability of being drawn


def sample_neighbors(
    lists: EdgeLists,
    degree: Int[np.ndarray, " nodes"],
    nodes: Int[np.ndarray, " some"],
    fan_out: int,
    key: int,
) -> Neighbors:
    """Up to ``fan_out`` neighbours of each node without replacement, and all self-loops.

    Args:
        lists: The edges.
        degree: The number of neighbours of every node of the graph, see :func:`count_neighbors`.
        nodes: The nodes whose neighbours are wanted.
        fan_out: How many of them; :data:`ALL` for every one.
        key: What is drawn, together with the number of a node.
    """
    wanted = degree[nodes].astype(np.int64)
    wanted = wanted if fan_out < 0 else np.minimum(wanted, fan_out)
    room = int(wanted.sum()) + len(nodes)  # a self-loop each
    start = np.zeros(len(nodes) + 1, dtype=np.int64)
    neighbor, leaving, entering = np.empty((3, room), dtype=np.int64)
    weight = np.empty(room)
    count = _sample(*lists, degree, nodes, fan_out, *key_words(key), start, neighbor,
                    leaving, entering, weight)  # fmt: skip
    return Neighbors(start, *(array[:count] for array in (neighbor, leaving, entering, weight)))


def count_neighbors(lists: EdgeLists) -> Int[np.ndarray, " nodes"]:
    """The number of neighbours of every node."""
    degree = np.empty(len(lists.out_start) - 1, dtype=np.int32)
    _count(*lists[:4], degree)
    return degree


def mark_neighbors(
    lists: EdgeLists, marked: Bool[np.ndarray, " nodes"]
) -> Bool[np.ndarray, " nodes"]:
    """The marked nodes and all their neighbours."""
    found = marked.copy()
    if not marked.all():
        _mark(*lists[:4], marked, found)
    return found


class Numbering:
    """Nodes numbered from 0 in the order in which they are first named."""

    def __init__(self, num_nodes: int) -> None:
        self._place = np.full(num_nodes, -1, dtype=np.int32)
        self.nodes = np.empty(0, dtype=np.int64)

    def extend(self, named: Int[np.ndarray, " named"]) -> Int[np.ndarray, " named"]:
        """The number of each node, with numbers for those that are new."""
        numbers = np.empty(len(named), dtype=np.int64)
        new = np.empty(len(named), dtype=np.int64)
        count = _number(named, self._place, len(self.nodes), numbers, new)
        self.nodes = np.concatenate([self.nodes, new[:count]])
        return numbers

    def clear(self) -> None:
        """Start anew, without going over all nodes."""
        self._place[self.nodes] = -1
        self.nodes = self.nodes[:0]


def rows_or_zeros(
    rows: Float[np.ndarray, "rows width"], index: Int[np.ndarray, " some"]
) -> Float[np.ndarray, "some width"]:
    """``rows[index]``, and zeros where the index is negative."""
    out = np.empty((len(index), rows.shape[1]), dtype=rows.dtype)
    _rows_or_zeros(rows, index, out)
    return out


@njit(inline="always")
def next_neighbor(target, source, a, a_end, b, b_end):  # type: ignore[no-untyped-def]
    """The next of two sorted lists, and whether it stands in the first and in the second."""
    if b == b_end or (a < a_end and target[a] < source[b]):
        return target[a], 1, 0
    if a == a_end or source[b] < target[a]:
        return source[b], 0, 1
    return target[a], 1, 1


@njit(inline="always")
def _search(values, first, last, value):  # type: ignore[no-untyped-def]
    """Where a value stands in a sorted stretch; -1: nowhere."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first if first < end and values[first] == value else -1


@njit(inline="always")
def draw_below(low_key, high_key, node, number, below):  # type: ignore[no-untyped-def]
    """A number from 0 to ``below``, the same for the same key, node and number of the draw."""
    word = mix(np.uint32(mix(np.uint32(np.uint32(node) ^ low_key)) + high_key))
    word = mix(np.uint32(mix(np.uint32(word + np.uint32(number))) ^ high_key))
    return np.int64((np.uint64(word) * np.uint64(below)) >> np.uint64(32))


@backend.jit(nogil=True)
def _sample(  # type: ignore[no-untyped-def]
    out_start, target, in_start, source, in_edge, degree, nodes, fan_out, low_key, high_key, start,
    neighbor, leaving, entering, weight,
):  # fmt: skip
    filled = 0
    for n in range(len(nodes)):
        i, count = nodes[n], np.int64(degree[nodes[n]])
        a, a_end, b, b_end = out_start[i], out_start[i + 1], in_start[i], in_start[i + 1]
        wanted = count if fan_out < 0 else min(count, fan_out)
        loop = _search(target, a, a_end, i)
        if loop >= 0:
            neighbor[filled], leaving[filled], entering[filled] = i, loop, loop
            weight[filled] = 1
            filled += 1
        first = filled
        if count <= FEW * wanted:
            seen = 0
            while seen < count:
                j, leaves, enters = next_neighbor(target, source, a, a_end, b, b_end)
                if j != i:
                    # Each with the probability that fills what is left of the sample.
                    left = wanted - (filled - first)
                    if draw_below(low_key, high_key, i, seen, count - seen) < left:
                        neighbor[filled] = j
                        leaving[filled] = a if leaves else -1
                        entering[filled] = in_edge[b] if enters else -1
                        filled += 1
                    seen += 1
                a, b = a + leaves, b + enters
        else:
            number, leave = 0, a_end - a
            while filled - first < wanted:
                place = draw_below(low_key, high_key, i, number, leave + b_end - b)
                number += 1
                if place < leave:
                    j, out = np.int64(target[a + place]), a + place
                    back = _search(source, b, b_end, j)
                else:
                    back = b + place - leave
                    j, out = np.int64(source[back]), -1
                    if _search(target, a, a_end, j) >= 0:
                        continue  # who stands in both lists counts in the first
                if j == i or _among(neighbor, first, filled, j):
                    continue
                neighbor[filled], leaving[filled] = j, out
                entering[filled] = in_edge[back] if back >= 0 else -1
                filled += 1
        for k in range(first, filled):
            weight[k] = count / wanted
        start[n + 1] = filled
    return filled


@njit(inline="always")
def _among(values, first, last, value):  # type: ignore[no-untyped-def]
    for k in range(first, last):  # noqa: SIM110 compiled
        if values[k] == value:
            return True
    return False


@backend.jit(nogil=True)
def _count(out_start, target, in_start, source, degree):  # type: ignore[no-untyped-def]
    for i in range(len(degree)):
        a, a_end, b, b_end = out_start[i], out_start[i + 1], in_start[i], in_start[i + 1]
        count = 0
        while a < a_end or b < b_end:
            j, leaves, enters = next_neighbor(target, source, a, a_end, b, b_end)
            count += j != i
            a, b = a + leaves, b + enters
        degree[i] = count


@backend.jit(nogil=True)
def _mark(out_start, target, in_start, source, marked, found):  # type: ignore[no-untyped-def]
    for i in range(len(marked)):
        if marked[i]:
            for e in range(out_start[i], out_start[i + 1]):
                found[target[e]] = True
            for e in range(in_start[i], in_start[i + 1]):
                found[source[e]] = True


@backend.jit(nogil=True)
def _number(named, place, first, numbers, new):  # type: ignore[no-untyped-def]
    count = 0
    for k in range(len(named)):
        node = named[k]
        if place[node] < 0:
            place[node] = first + count
            new[count] = node
            count += 1
        numbers[k] = place[node]
    return count


@backend.jit(nogil=True)
def _rows_or_zeros(rows, index, out):  # type: ignore[no-untyped-def]
    for k in range(len(index)):
        for f in range(out.shape[1]):
            out[k, f] = rows[index[k], f] if index[k] >= 0 else 0
