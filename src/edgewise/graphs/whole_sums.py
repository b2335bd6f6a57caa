"""What normalisations divide by: sums over all edges of a graph of arrays, each computed once."""

from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.array_graph import ArrayGraph
from edgewise.kernels.channel_sums import Encoding, balance_sums, row_sums
from edgewise.kernels.sampling import count_neighbors

ENCODINGS = {"directed": Encoding.DIRECTED, "sum": Encoding.SUM, "max": Encoding.MAX}


class WholeSums:
    """Sums over the edges of every node, for some nodes at a time.

    Args:
        graph: Nodes and edges.
    """

    def __init__(self, graph: ArrayGraph) -> None:
        self.graph = graph
        self._known: dict[tuple[str, str], np.ndarray] = {}

    @cached_property
    def degree(self) -> Int[np.ndarray, " nodes"]:
        """The number of neighbours of each node, in either direction."""
        return count_neighbors(self.graph.adjacency.lists)

    def rows(self, direction: str, nodes: Int[np.ndarray, " some"]) -> Float[Tensor, "some width"]:
        """Sums over the edges that enter nodes, with their self-loops, which are 1 if not given."""
        return torch.from_numpy(self._rows(direction)[nodes])

    def columns(
        self, direction: str, nodes: Int[np.ndarray, " some"]
    ) -> Float[Tensor, "some width"]:
        """The same over the edges that leave nodes: forward and backward change places."""
        sums = self.rows(direction, nodes)
        if _encoding(direction) is not Encoding.DIRECTED:
            return sums
        forward, backward, both = sums.chunk(3, dim=1)
        return torch.cat([backward, forward, both], dim=1)

    def balances(
        self, direction: str, nodes: Int[np.ndarray, " some"]
    ) -> Float[Tensor, "some width"]:
        """Column sums of rows that were divided by their sums, of doubly stochastic channels."""
        key = ("balances", direction)
        if key not in self._known:
            lists, attr = self.graph.adjacency.lists, np.asarray(self.graph.edge_attr)
            rows = self._rows(direction)
            self._known[key] = balance_sums(lists, attr, _encoding(direction), rows)
        return torch.from_numpy(self._known[key][nodes])

    def entering(
        self, direction: str, nodes: Int[np.ndarray, " some"]
    ) -> Float[Tensor, "some width"]:
        """Sums over the edges that enter nodes, as they are given."""
        return torch.from_numpy(self._rows(direction, fill=0.0)[nodes])

    def _rows(self, direction: str, fill: float = 1.0) -> Float[np.ndarray, "nodes width"]:
        key = ("rows" if fill else "entering", direction)
        if key not in self._known:
            lists, attr = self.graph.adjacency.lists, np.asarray(self.graph.edge_attr)
            self._known[key] = row_sums(lists, attr, _encoding(direction), fill=fill)
        return self._known[key]


def _encoding(direction: str) -> Encoding:
    if direction not in ENCODINGS:
        raise EdgewiseError(
            f"neighbours of a network with direction = {direction} cannot be sampled; train it on "
            f"the whole graph, or choose one of {', '.join(ENCODINGS)}"
        )
    return ENCODINGS[direction]
