"""One graph whose nodes are the rows: every batch is the whole graph, for some of its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from edgewise.graphs.array_graph import ArrayGraph
from edgewise.graphs.batch import Batch
from edgewise.graphs.graph import Graph
from edgewise.graphs.numbering import renumbered
from edgewise.graphs.share import EVERYTHING, Share

# The features of so few nodes are in the nearest caches, in whichever order they stand.
FEW_NODES = 2**14


class NodeRows:
    """Rows that are the nodes of a graph, in memory or not."""

    graph: Graph | ArrayGraph

    def __len__(self) -> int:
        return self.graph.num_nodes

    def __repr__(self) -> str:
        return repr(self.graph)

    @property
    def num_features(self) -> int:
        return self.graph.num_features

    @property
    def num_channels(self) -> int:
        return self.graph.num_channels


@dataclass(frozen=True, eq=False)
class WholeGraph(NodeRows):
    """A graph as it is trained on. Its features and operators are prepared once, and shared.

    The nodes of a large graph are numbered anew in its batches, neighbours near each other.
    """

    graph: Graph
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    whole_graph: ClassVar[bool] = True

    @property
    def ids(self) -> Sequence[str]:
        """The name of each node."""
        return self.graph.node_ids or tuple(map(str, range(self.graph.num_nodes)))

    @cached_property
    def _whole(self) -> tuple[Batch, Tensor | None]:
        """The whole graph, and where its nodes stand in it: None if they keep their numbers."""
        if self.graph.num_nodes <= FEW_NODES:
            return Batch.from_graph(self.graph).to(self.device), None
        graph, place = renumbered(self.graph)
        return Batch.from_graph(graph).to(self.device), place.to(self.device)

    def batch(self, rows: Tensor | None = None) -> Batch:
        """The whole graph, for some of its rows or all."""
        whole, place = self._whole
        rows = None if rows is None else rows.to(self.device)
        if place is not None:
            rows = place if rows is None else place[rows]
        return whole.with_rows(rows)

    def steps(self, rows: int, batch_size: int) -> int:
        return 1

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """A step on the whole graph is an epoch."""
        yield rows, self.batch(share.of(rows))

    def evaluation_batches(self, rows: Tensor) -> Iterator[Batch]:
        yield self.batch(rows)
