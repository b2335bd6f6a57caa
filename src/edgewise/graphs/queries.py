"""Pairs of nodes that are asked for: edges to predict, and links to come."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from edgewise.graphs.blocks import stretches


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
        cost: How much is looked at to describe each.
        describe: The features of those at some places.
        device: Where to compute.
    """

    edge_index: Int[Tensor, "2 queries"]
    cost: Int[np.ndarray, " queries"]
    describe: Callable[[Tensor], Tensor]
    device: torch.device

    def parts(self) -> Iterator[EdgeQueries]:
        """All of them in their order, as many at a time as a block holds."""
        for some in stretches(self.cost):
            places = torch.arange(some.start, some.stop)
            yield EdgeQueries(self.edge_index[:, some], self.describe(places)).to(self.device)

    def to(self, device: torch.device | str) -> "QueriesInBlocks":
        return QueriesInBlocks(self.edge_index, self.cost, self.describe, torch.device(device))
