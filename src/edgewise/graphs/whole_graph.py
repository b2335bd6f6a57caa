"""One graph whose nodes are the rows: every batch is the whole graph, for some of its rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from edgewise.graphs.array_graph import ArrayGraph
from edgewise.graphs.batch import EVERYTHING, Batch, Share
from edgewise.graphs.graph import Graph


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
    """A graph as it is trained on. Its features and operators are prepared once, and shared."""

    graph: Graph
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    whole_graph: ClassVar[bool] = True

    @property
    def ids(self) -> Sequence[str]:
        """The name of each node."""
        return self.graph.node_ids or tuple(map(str, range(self.graph.num_nodes)))

    @cached_property
    def _whole(self) -> Batch:
        batch = Batch.from_graph(self.graph)
        return batch if self.device.type == "cpu" else batch.to(self.device)

    def batch(self, rows: Tensor | None = None) -> Batch:
        """The whole graph, for some of its rows or all."""
        return self._whole.with_rows(None if rows is None else rows.to(self.device))

    def steps(self, rows: int, batch_size: int) -> int:
        return 1

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """A step on the whole graph is an epoch."""
        yield rows, self.batch(share.of(rows))

    def evaluation_batches(self, rows: Tensor) -> Iterator[Batch]:
        yield self.batch(rows)
