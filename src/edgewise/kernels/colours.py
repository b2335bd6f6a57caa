r"""Nodes that a network cannot tell apart, found by colour refinement.

Two nodes with equal features have equal states before the first layer; those that also have equal
neighbours along equal edges have equal states after it, and so on (Weisfeiler and Leman). So each
layer need be computed only once for each *colour*, an idea of `Bollen et al. (2023)
<https://arxiv.org/abs/2304.14793>`_: exact compression. In a batch of molecules a colour is an atom
with its surroundings up to as many bonds as there were layers, and most of those occur many times.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.kernels.backend import jit, running
from edgewise.kernels.incidence import Incidence

Numbers = np.ndarray[Any, np.dtype[Any]]
_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # Fowler, Noll and Vo
_HALF = np.uint64(32)
_SHORT = 16  # numbers up to which insertion sorts faster


@dataclass(frozen=True, eq=False)
class Groups:
    """Members of each group, in CSR form."""

    start: Numbers  # [groups + 1], uint64
    member: Numbers  # uint32


@dataclass(frozen=True, eq=False)
class Level:
    """What a layer does to colours: those of its nodes and edges on the way out, made of those on
    the way in.
    """

    parent: Numbers  # [colours], the colour that a node had
    node_count: Tensor  # [colours], how many nodes have it
    entering: Groups  # the colours of the edges that enter a node, by its colour
    target: Numbers  # [edge colours], the colour that the target had
    source: Numbers  # [edge colours], the colour that the source had
    edge_parent: Numbers  # [edge colours], the colour that the edge had
    edge_count: Tensor  # [edge colours], how many edges have it
    num_nodes: int  # how many colours of nodes there were
    num_edges: int  # how many colours of edges there were

    @cached_property
    def children(self) -> Groups:
        return grouped(self.parent, self.num_nodes)

    @cached_property
    def edge_children(self) -> Groups:
        return grouped(self.edge_parent, self.num_edges)

    @cached_property
    def by_target(self) -> Groups:
        return grouped(self.target, self.num_nodes)

    @cached_property
    def by_source(self) -> Groups:
        return grouped(self.source, self.num_nodes)

    @cached_property
    def receivers(self) -> Groups:
        """The colours of nodes that an edge of each colour enters, as often as it does."""
        places = grouped(self.entering.member, len(self.target))
        start = self.entering.start
        owner = np.repeat(np.arange(len(start) - 1, dtype=np.uint32), np.diff(start).astype(int))
        return Groups(places.start, owner[places.member])


@dataclass(frozen=True, eq=False)
class Refinement:
    """The colours of a graph before the first layer, how each layer refines them, and the last."""

    first_node: Tensor  # a node of each colour before the first layer
    first_edge: Tensor  # an edge of each colour
    levels: Sequence[Level]
    colour: Tensor  # [nodes], after the last layer


def refine(x: Tensor, edge_index: Tensor, edge_attr: Tensor, depth: int) -> Refinement:
    """The colours of nodes and edges through ``depth`` layers, in time linear in the edges.

    Args:
        x: Node features; numbers are alike if they have the same bits.
        edge_index: ``[2, edges]``, from source to target.
        edge_attr: Edge features.
        depth: The number of layers, each of which sums over the edges that enter a node.
    """
    ends = edge_index.long().contiguous()
    source, target = ends[0].numpy(), ends[1].numpy()
    with running:
        sides = Incidence(ends[0], ends[1], len(x)).by_target
        start, edge = sides.start.numpy(), sides.edge.numpy()
        nodes, edges = _rows(x), _rows(edge_attr)
        first = nodes[1], edges[1]
        levels = []
        for _ in range(depth):
            keys = nodes[0][target], nodes[0][source], edges[0]
            new_edges = _numbered_rows(np.stack(keys, axis=1))
            words = np.empty(len(target) + len(x), dtype=np.uint32)
            word_start = start + np.arange(len(start))
            _surroundings(start, edge, nodes[0], new_edges[0], words)
            new_nodes = _numbered(word_start, words)
            levels.append(_level(nodes, edges, new_nodes, new_edges, (source, target), start, edge))
            nodes, edges = new_nodes, new_edges
    return Refinement(
        first_node=torch.from_numpy(first[0]),
        first_edge=torch.from_numpy(first[1]),
        levels=levels,
        colour=torch.from_numpy(nodes[0].astype(np.int64)),
    )


def _level(nodes, edges, new_nodes, new_edges, ends, start, edge) -> Level:  # type: ignore[no-untyped-def]
    (source, target), (of_node, first_node), (of_edge, first_edge) = ends, new_nodes, new_edges
    entering = np.zeros(len(first_node) + 1, dtype=np.uint64)
    entering[1:] = (start[first_node + 1] - start[first_node]).cumsum()
    member = np.empty(int(entering[-1]), dtype=np.uint32)
    _entering(start, edge, first_node, of_edge, entering, member)
    return Level(
        parent=nodes[0][first_node],
        node_count=_counts(of_node, len(first_node)),
        entering=Groups(entering, member),
        target=nodes[0][target[first_edge]],
        source=nodes[0][source[first_edge]],
        edge_parent=edges[0][first_edge],
        edge_count=_counts(of_edge, len(first_edge)),
        num_nodes=len(nodes[1]),
        num_edges=len(edges[1]),
    )


def grouped(key: Numbers, count: int) -> Groups:
    """The places of each key below ``count``, in their order."""
    start, member = np.zeros(count + 1, dtype=np.uint64), np.empty(len(key), dtype=np.uint32)
    _count_into_place(key, start, member)
    return Groups(start, member)


def _rows(features: Tensor) -> tuple[Numbers, Numbers]:
    return _numbered_rows(features.detach().contiguous().numpy().view(np.uint32))


def _numbered_rows(rows: Numbers) -> tuple[Numbers, Numbers]:
    """The number of each row of a matrix, equal for equal rows, and the first row of each."""
    return _numbered(np.arange(len(rows) + 1) * rows.shape[1], rows.ravel())


def _numbered(start: Numbers, words: Numbers) -> tuple[Numbers, Numbers]:
    number = np.empty(len(start) - 1, dtype=np.uint32)
    first = np.empty(len(number), dtype=np.int64)
    count = _number(start, words, number, first)
    return number, first[:count]


def _counts(colour: Numbers, count: int) -> Tensor:
    return torch.from_numpy(np.bincount(colour, minlength=count).astype(np.float32))


@jit()
def _number(start, words, number, first):  # type: ignore[no-untyped-def]
    """Number the ranges of words by a hash table; ranges are compared, so hashes may collide."""
    size = 2
    while size < 2 * len(number):
        size *= 2
    table, hashes = np.full(size, -1, dtype=np.int64), np.empty(len(number), dtype=np.uint64)
    mask, count = np.uint64(size - 1), 0
    for i in range(len(number)):
        code = _OFFSET
        for p in range(start[i], start[i + 1]):
            code = (code ^ np.uint64(words[p])) * _PRIME
            code ^= code >> _HALF
        slot = code & mask
        while True:
            known = table[slot]
            if known < 0:
                table[slot], first[count], hashes[count], number[i] = count, i, code, count
                count += 1
                break
            if hashes[known] == code and _equal(start, words, first[known], i):
                number[i] = known
                break
            slot = (slot + np.uint64(1)) & mask
    return count


@jit()
def _equal(start, words, i, j):  # type: ignore[no-untyped-def]
    length = start[i + 1] - start[i]
    if length != start[j + 1] - start[j]:
        return False
    for k in range(length):  # noqa: SIM110
        if words[start[i] + k] != words[start[j] + k]:
            return False
    return True


@jit()
def _surroundings(start, edge, node_colour, edge_colour, words):  # type: ignore[no-untyped-def]
    """For every node its own colour, and those of the edges that enter it in increasing order."""
    for i in range(len(node_colour)):
        first, degree = start[i] + i + 1, start[i + 1] - start[i]
        words[first - 1] = node_colour[i]
        for k in range(degree):
            colour = edge_colour[edge[start[i] + k]]
            place = first + k
            while degree <= _SHORT and place > first and words[place - 1] > colour:
                words[place] = words[place - 1]
                place -= 1
            words[place] = colour
        if degree > _SHORT:
            words[first : first + degree].sort()


@jit()
def _entering(start, edge, first_node, edge_colour, entering, member):  # type: ignore[no-untyped-def]
    for c in range(len(first_node)):
        i = first_node[c]
        for k in range(start[i + 1] - start[i]):
            member[entering[c] + np.uint64(k)] = edge_colour[edge[start[i] + k]]


@jit()
def _count_into_place(key, start, member):  # type: ignore[no-untyped-def]
    for k in key:
        start[k + 1] += np.uint64(1)
    for k in range(1, len(start)):
        start[k] += start[k - 1]
    place = start[:-1].copy()
    for p in range(len(key)):
        member[place[key[p]]] = p
        place[key[p]] += np.uint64(1)
