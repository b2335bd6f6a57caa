"""Pairs of nodes that are asked for: edges to predict, and links to come."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from edgewise.graphs import blocks


@dataclass(frozen=True, eq=False)
class EdgeQueries:
    """Edges to predict, which need not be among those that carry messages."""

    edge_index: Int[Tensor, "2 queries"]
    features: Tensor  # [queries, width]

    def to(self, device: torch.device | str) -> "EdgeQueries":
        return EdgeQueries(self.edge_index.to(device), self.features.to(device))


@dataclass(frozen=True, eq=False)
class QueriesInBlocks:
    """Edges to predict, of which some are described at a time.

    Args:
        edge_index: Their ends.
        cost: How much is looked at to describe those at some places, each.
        describe: The features of those at some places.
        device: Where to compute.
    """

    edge_index: Int[Tensor, "2 queries"]
    cost: Callable[[Tensor], Int[np.ndarray, " some"]]
    describe: Callable[[Tensor], Tensor]
    device: torch.device

    def parts(self) -> Iterator[EdgeQueries]:
        """All of them in their order, as many at a time as a block holds."""
        for every in torch.arange(self.edge_index.size(1)).split(blocks.MOST_ROWS):
            for some in blocks.stretches(self.cost(every)):
                places = every[some]
                described = EdgeQueries(self.edge_index[:, places], self.describe(places))
                yield described.to(self.device)

    def nodes(self, count: int) -> Int[Tensor, " nodes"]:
        """Their ends, ascending and each once, of so many nodes of the graph."""
        named = torch.zeros(count, dtype=torch.bool)
        for end in self.edge_index:
            named[end] = True
        return named.nonzero()[:, 0]

    def to(self, device: torch.device | str) -> "QueriesInBlocks":
        return QueriesInBlocks(self.edge_index, self.cost, self.describe, torch.device(device))
