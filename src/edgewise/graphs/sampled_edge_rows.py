"""One graph whose edges are the rows, trained on by sampled edges around their ends."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edgewise.core.prefetch import prefetched
from edgewise.graphs.batch import Batch
from edgewise.graphs.edge_lookup import EdgeLookup
from edgewise.graphs.edge_rows import FOLDS, EdgeRows
from edgewise.graphs.incident import means
from edgewise.graphs.incident_blocks import IncidentEdges
from edgewise.graphs.incident_hops import IncidentArrays, incident_hops
from edgewise.graphs.queries import EdgeQueries, QueriesInBlocks
from edgewise.graphs.sampled_edges import SampledEdges
from edgewise.graphs.share import EVERYTHING, Share
from edgewise.kernels.common_neighbors import NeighborLists
from edgewise.kernels.dropout import draw_key
from edgewise.kernels.incident_sampling import IncidentLists, incident_sums
from edgewise.kernels.sampling import Numbering


@dataclass(frozen=True, eq=False)
class SampledEdgeRows(IncidentArrays, EdgeRows):
    """Edges to predict, each along some of the edges around its ends.

    What carries messages, and which labels are seen, is as without sampling: with times, the edges
    before the stretch of those that are predicted; the labels of none of a batch. What is known of
    a node and of a pair, numbers and means, is that of all edges. Evaluation sees all edges, in
    blocks.

    Args:
        fan_outs: How many edges of a node are drawn in each hop, that of the last layer first; -1
            for all.
        lookup: Where edges are found, if that is known already.
    """

    fan_outs: tuple[int, ...] = ()
    lookup: EdgeLookup | None = None

    def steps(self, rows: int, batch_size: int) -> int:
        if self.time is None:
            parts = -(-rows // batch_size)
            return max(parts, min(FOLDS, rows) if self.labels is not None else 1)
        known = self.known if self.known is not None else torch.ones(len(self)).bool()
        counts = self._stretch[known].unique(return_counts=True)[1]
        return max(1, int((-(-counts // batch_size)).sum()))

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """Every row once, in an order that torch's generator draws."""
        shuffled = rows[torch.randperm(len(rows))]
        if self.time is None:
            parts = list(shuffled.tensor_split(min(self.steps(len(rows), batch_size), len(rows))))
        else:
            stretch = self._stretch[shuffled]
            parts = [
                part
                for number in stretch.unique().tolist()
                for part in shuffled[stretch == number].split(batch_size)
            ]
            parts = [parts[number] for number in torch.randperm(len(parts)).tolist()]
        # Everything is drawn here, for the thread that samples must not draw between the steps.
        key, numbering = draw_key(), Numbering(self.graph.num_nodes)

        def make(step: int) -> Batch:
            some = parts[step]
            return self.sampled(some, share.of(some), key + step * len(self.fan_outs), numbering)

        for some, batch in zip(parts, prefetched(make, len(parts)), strict=True):
            yield some, batch if self.device.type == "cpu" else batch.to(self.device)

    def sampled(self, every: Tensor, own: Tensor, key: int, numbering: Numbering) -> Batch:
        """A batch for some of its rows; the labels of all of them are hidden.

        Args:
            every: The rows of the batch.
            own: Those that this process predicts.
            key: What is drawn.
            numbering: Of the nodes of the batch.
        """
        before = self._before(own)
        seen = self._seen
        seen[every.numpy()] = False
        try:
            return self._drawn(own, before, seen, key, numbering)
        finally:
            seen[every.numpy()] = self._known[every.numpy()]

    def _drawn(
        self, rows: Tensor, before: Any, seen: np.ndarray, key: int, numbering: Numbering
    ) -> Batch:
        numbering.clear()
        ends = numbering.extend(self._ends[:, rows.numpy()].ravel())
        hops = incident_hops(
            *(self._lists, self._ends, before, self.fan_outs, key, numbering),
            lambda edges: self._attr(edges, seen),
        )
        nodes = numbering.nodes
        queries = EdgeQueries(
            torch.from_numpy(ends.reshape(2, -1)), self._queried(rows, before, seen)
        )
        return Batch(self._x(nodes, before, seen), SampledEdges(hops, nodes), queries=queries)

    def _evaluated(self, rows: Tensor, hidden: Tensor | None) -> Batch:
        before, seen = self._before(rows), self._known
        if hidden is not None:
            seen = seen.copy()
            seen[hidden.numpy()] = False
        edges = IncidentEdges(
            *(self._lists, self._ends, before),
            lambda nodes: self._x(nodes, before, seen),
            lambda edges: self._attr(edges, seen),
            None,
            self.device,
        )
        queries = QueriesInBlocks(
            self.graph.edge_index[:, rows],
            lambda some: self._edges_beside(rows[some]),
            lambda some: self._queried(rows[some], before, seen),
            self.device,
        )
        nothing = torch.empty(0, self.num_features, device=self.device)
        return Batch(nothing, edges, queries=queries)

    def _edges_beside(self, rows: Tensor) -> Int[np.ndarray, " rows"]:
        """How many edges join the two nodes of each row."""
        found = [self._found.sizes(groups) for groups in self._groups_beside(rows)]
        return np.sum(found, axis=0)

    def _groups_beside(self, rows: Tensor) -> list[Int[np.ndarray, " rows"]]:
        """The edges from the first to the second node of each row, and those back."""
        source, target = self._ends[:, rows.numpy()]
        sides = [(source, target), (target, source)]
        return [self._found.groups(*side) for side in sides[: 1 + self.directed]]

    def _attr(
        self, edges: Int[np.ndarray, " some"], seen: Bool[np.ndarray, " edges"]
    ) -> Float[np.ndarray, "some channels"]:
        """The channels of edges that carry messages, with their labels where these are seen."""
        if self.labels is None:
            return self._channels[edges]
        flag = seen[edges][:, None]
        labels = np.where(flag, self._labels[edges], 0)
        return np.hstack([self._channels[edges], flag, labels]).astype(self._channels.dtype)

    def _x(self, nodes: np.ndarray, before: Any, seen: np.ndarray) -> Tensor:
        x = self.graph.x[torch.from_numpy(nodes)]
        if not self.incident:
            return x
        # Anew from all edges of a node: what is subtracted from a sum leaves its rounding behind.
        sums = incident_sums(self._lists, before, nodes, self._channels, self._labels, seen)
        ends = [torch.from_numpy(one) for one in sums]
        ends = ends if self.directed else [ends[0] + ends[1]]
        return torch.cat([x, *(means(one, self.graph.num_channels) for one in ends)], dim=1)

    def _queried(self, rows: Tensor, before: Any, seen: np.ndarray) -> Tensor:
        """The own channels of edges to predict, and the means of the others between their ends."""
        # An edge is not beside itself; a self-loop goes the other way, too.
        left_out: list[Any] = [rows.numpy(), np.int64(-1)]
        own = self.graph.channels[rows]
        hidden = own.new_zeros(len(rows), self.num_channels - self.graph.num_channels)
        others = [
            means(self._pair_sums(groups, edges, before, seen), own.size(1))
            for groups, edges in zip(self._groups_beside(rows), left_out, strict=False)
        ]
        if self.paths:
            nobody = np.int64(-1)
            sums = partial(self._pair_sums, left_out=nobody, before=before, seen=seen)
            others.append(self._path_means(rows, sums))
        return torch.cat([own, hidden, *others], dim=1)

    def _pair_sums(
        self, groups: np.ndarray, left_out: np.ndarray | np.int64, before: Any, seen: np.ndarray
    ) -> Tensor:
        """The sums over groups of edges, each without one edge: -1 for none.

        The label of an edge that is left out is hidden, so that its rounding is not left behind.
        """
        each, place = np.unique(groups, return_inverse=True)
        group, edges = self._found.edges(each)
        carries = self._times[edges] < before
        parts = self._sum_parts(edges[carries], seen)
        sums = parts.new_zeros(len(each), parts.size(1))
        sums = sums.index_add(0, torch.from_numpy(group[carries]), parts)
        found = sums[torch.from_numpy(place)]
        left_out = np.broadcast_to(left_out, groups.shape)
        (own,) = np.nonzero((left_out >= 0) & (self._times[left_out] < before))
        found[torch.from_numpy(own)] -= self._sum_parts(left_out[own], seen)
        return found

    def _sum_parts(
        self, edges: Int[np.ndarray, " some"], seen: Bool[np.ndarray, " edges"]
    ) -> Tensor:
        """What single edges contribute to the sums of their group."""
        parts = np.hstack([np.ones((len(edges), 1)), self._attr(edges, seen)])
        return torch.from_numpy(parts.astype(self._channels.dtype))

    def _before(self, rows: Tensor) -> Any:
        """The time before which edges carry messages to these rows, which are of one stretch."""
        if self.time is None or self.starts is None:
            return np.int8(1)
        return self.starts[int(self._stretch[rows[0]])].numpy()[()]

    @cached_property
    def _times(self) -> np.ndarray:
        """The time of each edge; 0, where there is none, which is before 1."""
        return np.zeros(len(self), dtype=np.int8) if self.time is None else self.time.numpy()

    @cached_property
    def _labels(self) -> Float[np.ndarray, "edges labels"]:
        labels = self.graph.channels[:, :0] if self.labels is None else self.labels
        return np.ascontiguousarray(labels.to(self.graph.channels.dtype).numpy())

    @cached_property
    def _known(self) -> Bool[np.ndarray, " edges"]:
        every = torch.ones(len(self), dtype=torch.bool) if self.known is None else self.known
        return every.numpy()

    @cached_property
    def _seen(self) -> Bool[np.ndarray, " edges"]:
        """Whether the label of an edge is seen; that of a batch is hidden while it is made."""
        return self._known.copy()

    @cached_property
    def _found(self) -> EdgeLookup:
        if self.lookup is not None:
            return self.lookup
        nodes = self.graph.num_nodes
        return EdgeLookup.of(self._ends, self._times, nodes, directed=self.directed)

    @cached_property
    def _lists(self) -> IncidentLists:
        return self._found.incident

    @cached_property
    def _neighbors(self) -> NeighborLists:
        (source, target), nodes = self._ends, self.graph.num_nodes
        there, back = self._found.groups(source, target), self._found.groups(target, source)
        return NeighborLists.of(self._ends, there, back, nodes)
