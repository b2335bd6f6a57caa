"""Which edges enter and leave each node. Parallel edges are edges of their own."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.kernels.backend import jit

MOST = 2**31  # what a 32-bit place can tell


class Side(NamedTuple):
    """The edges of each node at one of their ends, in CSR form."""

    start: Int[Tensor, " nodes_and_one"]  # int64
    edge: Int[Tensor, " edges"]  # int32, the row of the edge in its own order
    far: Int[Tensor, " edges"]  # int32, the node at the other end


@dataclass(frozen=True, eq=False)
class Incidence:
    """The two ends of every edge, and the edges by either end for the compiled kernels."""

    source: Int[Tensor, " edges"]  # int64
    target: Int[Tensor, " edges"]  # int64
    num_nodes: int

    @property
    def num_edges(self) -> int:
        return self.source.size(0)

    @cached_property
    def by_target(self) -> Side:
        """The edges that enter each node; built once."""
        return _by(self.target, self.source, self.num_nodes)

    @cached_property
    def by_source(self) -> Side:
        """The edges that leave each node; built once."""
        return _by(self.source, self.target, self.num_nodes)


def _by(end: Tensor, far: Tensor, num_nodes: int) -> Side:
    if max(len(end), num_nodes) >= MOST:
        raise EdgewiseError(
            f"a graph of {num_nodes:,} nodes and {len(end):,} edges is too large for the compiled "
            f"kernels, which count below {MOST:,}; use a part of it"
        )
    start = torch.zeros(num_nodes + 1, dtype=torch.int64)
    edge = torch.empty(len(end), dtype=torch.int32)
    other = torch.empty_like(edge)
    _count_into_place(end.numpy(), far.numpy(), start.numpy(), edge.numpy(), other.numpy())
    return Side(start, edge, other)


@jit()
def _count_into_place(end, far, start, edge, other):  # type: ignore[no-untyped-def]
    for node in end:
        start[node + 1] += 1
    for node in range(1, len(start)):
        start[node] += start[node - 1]
    place = start[:-1].copy()
    for e in range(len(end)):
        here = place[end[e]]
        edge[here], other[here] = e, far[e]
        place[end[e]] += 1
