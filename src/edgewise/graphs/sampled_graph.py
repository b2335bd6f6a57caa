"""One graph of arrays: trained on by sampled neighbours, predicted exactly in blocks of rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.prefetch import prefetched
from edgewise.graphs.array_graph import ArrayGraph
from edgewise.graphs.batch import Batch
from edgewise.graphs.edges_in_blocks import EdgesInBlocks
from edgewise.graphs.sampled_edges import Hop, SampledEdges
from edgewise.graphs.share import EVERYTHING, Share
from edgewise.graphs.whole_graph import NodeRows
from edgewise.graphs.whole_sums import WholeSums
from edgewise.kernels.dropout import draw_key
from edgewise.kernels.sampling import (
    ALL,
    Numbering,
    mark_neighbors,
    rows_or_zeros,
    sample_neighbors,
)


@dataclass(frozen=True, eq=False)
class SampledGraph(NodeRows):
    """A graph that need not fit into memory, as models of its nodes are trained on it.

    A training batch is some nodes, and of their neighbours as many as the fan-outs say; what is
    drawn depends on the epoch, the step, the layer and the node alone. Evaluation is exact.

    Args:
        graph: Nodes and edges.
        fan_outs: How many neighbours of a node are drawn in each hop, that of the last layer first;
            -1 for all; none of them where nothing is to be trained.
        node_ids: The name of each node; without it its number.
        device: Where to compute.
    """

    graph: ArrayGraph
    fan_outs: tuple[int, ...] = ()
    node_ids: Sequence[str] | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    whole_graph: ClassVar[bool] = False

    @cached_property
    def ids(self) -> Sequence[str]:
        """The name of each node."""
        return self.node_ids or [str(node) for node in range(len(self))]

    @cached_property
    def _sums(self) -> WholeSums:
        return WholeSums(self.graph)

    def steps(self, rows: int, batch_size: int) -> int:
        return -(-rows // batch_size)

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """The rows in an order that torch's generator draws, some at a time."""
        if not self.fan_outs:
            raise EdgewiseError(
                "a graph of arrays is trained by sampled neighbours; say how many each layer "
                "draws, such as neighbors = 15,10"
            )
        parts = rows[torch.randperm(len(rows))].split(batch_size)
        # Everything is drawn here, for the thread that samples must not draw between the steps.
        key, numbering = draw_key(), Numbering(len(self))

        def make(step: int) -> Batch:
            nodes = share.of(parts[step]).numpy()
            return self._sampled(nodes, key + step * len(self.fan_outs), numbering)

        for some, batch in zip(parts, prefetched(make, len(parts)), strict=True):
            yield some, batch if self.device.type == "cpu" else batch.to(self.device)

    def evaluation_batches(self, rows: Tensor) -> Iterator[Batch]:
        """All rows at once, of edges that are read block by block."""
        if not len(rows):
            return
        edges = StoredEdges(self.graph, self._sums, self.device)
        x = torch.empty(0, self.num_features, device=self.device)  # they stay in their array
        yield Batch(x, edges, rows=rows)

    def _sampled(self, seeds: Int[np.ndarray, " seeds"], key: int, numbering: Numbering) -> Batch:
        numbering.clear()
        numbering.extend(seeds)
        hops = [
            sampled_hop(self.graph, self._sums, numbering, fan_out, key + number)
            for number, fan_out in enumerate(self.fan_outs)
        ]
        nodes = numbering.nodes
        x = torch.from_numpy(np.take(np.asarray(self.graph.x), nodes, axis=0))
        return Batch(x, SampledEdges(hops, nodes, self._sums))


class StoredEdges(EdgesInBlocks):
    """The edges of a graph of arrays.

    Args:
        graph: Nodes and edges.
        sums: Of its channels.
        device: Where to compute.
    """

    sums: WholeSums

    def __init__(self, graph: ArrayGraph, sums: WholeSums, device: torch.device) -> None:
        super().__init__(graph.num_nodes, device, sums)
        self.graph = graph

    def features(self, nodes: Int[np.ndarray, " nodes"]) -> Float[Tensor, "nodes features"]:
        return torch.from_numpy(np.take(np.asarray(self.graph.x), nodes, axis=0))

    def cost(self, nodes: Int[np.ndarray, " nodes"]) -> Int[np.ndarray, " nodes"]:
        return self.sums.degree[nodes] + 1

    def reached(self, marked: Bool[np.ndarray, " nodes"]) -> Bool[np.ndarray, " nodes"]:
        return mark_neighbors(self.graph.adjacency.lists, marked)

    def hop(self, numbering: Numbering) -> Hop:
        return sampled_hop(self.graph, self.sums, numbering, ALL, 0)


def sampled_hop(
    graph: ArrayGraph, sums: WholeSums, numbering: Numbering, fan_out: int, key: int
) -> Hop:
    """The neighbours of all nodes that have a number, which get numbers of their own."""
    nodes = numbering.nodes
    found = sample_neighbors(graph.adjacency.lists, sums.degree, nodes, fan_out, key)
    near = np.repeat(np.arange(len(nodes)), np.diff(found.start))
    far = numbering.extend(found.node)
    attr = np.asarray(graph.edge_attr)
    there, back = (rows_or_zeros(attr, edges) for edges in (found.entering, found.leaving))
    arrays = near, far, there, back, found.weight.astype(attr.dtype)
    return Hop(len(nodes), len(numbering.nodes), *map(torch.from_numpy, arrays))
