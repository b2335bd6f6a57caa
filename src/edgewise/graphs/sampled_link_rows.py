"""Pairs of nodes as rows, trained on by sampled edges around their ends."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edgewise.core.prefetch import prefetched
from edgewise.graphs.batch import Batch
from edgewise.graphs.blocks import MOST_COMMON, stretches
from edgewise.graphs.incident import grouped, members, pair_groups
from edgewise.graphs.incident_blocks import IncidentEdges
from edgewise.graphs.incident_hops import IncidentArrays, incident_hops
from edgewise.graphs.link_rows import FOLDS, LinkRows
from edgewise.graphs.negatives import NegativeSampler
from edgewise.graphs.queries import EdgeQueries, QueriesInBlocks
from edgewise.graphs.sampled_edges import SampledEdges
from edgewise.graphs.share import EVERYTHING, Share
from edgewise.kernels.common_neighbors import (
    NeighborLists,
    common_neighbors,
    count_common_neighbors,
)
from edgewise.kernels.dropout import draw_key
from edgewise.kernels.incident_sampling import incident_counts
from edgewise.kernels.sampling import Numbering

_NEVER = np.inf  # when an edge happens that carries no messages


@dataclass(frozen=True, eq=False)
class SampledLinkRows(IncidentArrays, LinkRows):
    """Pairs to predict, each along some of the edges around its ends.

    What carries messages is as without sampling: none of the links of a batch, nor, with times,
    what is not before their stretch. What is known of a node and of a pair, numbers of edges and
    common neighbours, is that of all such edges. Evaluation sees all edges, in blocks.

    Args:
        fan_outs: How many edges of a node are drawn in each hop, that of the last layer first; -1
            for all.
    """

    fan_outs: tuple[int, ...] = ()

    def steps(self, rows: int, batch_size: int) -> int:
        if self.times is None:
            return min(max(FOLDS, -(-rows // batch_size)), max(rows // 2, 1))
        links = self.trained & (self.link_of_row >= 0)
        counts = self.times.stretch[links].unique(return_counts=True)[1]
        return max(1, int((-(-counts // max(batch_size // 2, 1))).sum()))

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """Every link once, beside a pair that is drawn anew in place of each row without one."""
        links = rows[self.link_of_row[rows] >= 0]
        empty = rows[self.link_of_row[rows] < 0]
        # Everything is drawn here, for the thread that samples must not draw between the steps.
        parts = [
            (some, torch.cat([self.pairs[:, some], sampler.draw(self.pairs[:, some])], dim=1))
            for some, sampler in self._sampled_parts(links, len(rows), batch_size)
        ]
        key, numbering = draw_key(), Numbering(self.graph.num_nodes)

        def make(step: int) -> Batch:
            some, pairs = parts[step]
            asked = share.of(torch.arange(pairs.size(1)))
            return self.sampled(some, pairs[:, asked], key + step * len(self.fan_outs), numbering)

        for (some, _), batch in zip(parts, prefetched(make, len(parts)), strict=True):
            without = empty[torch.arange(len(some)) % len(empty)]  # their truth is that of all
            every = torch.cat([some, without])
            yield every, batch if self.device.type == "cpu" else batch.to(self.device)

    def _sampled_parts(
        self, links: Tensor, rows: int, batch_size: int
    ) -> Iterator[tuple[Tensor, NegativeSampler]]:
        """Links that are trained at once, and what they are told from."""
        shuffled = links[torch.randperm(len(links))]
        if self.times is None:
            for some in shuffled.tensor_split(min(self.steps(rows, batch_size), len(links))):
                yield some, self.sampler
            return
        stretch = self.times.stretch[shuffled]
        parts = [
            (part, number)
            for number in stretch.unique().tolist()
            for part in shuffled[stretch == number].split(max(batch_size // 2, 1))
        ]
        for place in torch.randperm(len(parts)).tolist():
            yield parts[place][0], self.sampler_until(parts[place][1])

    def sampled(self, links: Tensor, pairs: Tensor, key: int, numbering: Numbering) -> Batch:
        """A batch for some pairs; the links of all its rows carry nothing.

        Args:
            links: The rows of the batch that are links.
            pairs: The pairs that this process predicts.
            key: What is drawn.
            numbering: Of the nodes of the batch.
        """
        hidden = self.link_of_row[links].numpy()
        if self.times is not None:
            hidden = hidden[:0]  # what carries messages is before all of them
        self._hidden[hidden] = True
        try:
            return self._drawn(pairs.numpy(), hidden, self._before(links), key, numbering)
        finally:
            self._hidden[hidden] = False

    def _drawn(
        self,
        pairs: Int[np.ndarray, "2 pairs"],
        hidden: Int[np.ndarray, " links"],
        before: Any,
        key: int,
        numbering: Numbering,
    ) -> Batch:
        numbering.clear()
        ends = numbering.extend(np.ascontiguousarray(pairs).ravel())
        hops = incident_hops(
            *(self._lists, self._ends, before, self.fan_outs, key, numbering),
            lambda edges: self._channels[edges],
            lambda edges: ~self._hidden[self._link[edges]],
        )
        nodes = numbering.nodes
        known = self._known_of_pairs(pairs, before, self._hidden)
        queries = EdgeQueries(torch.from_numpy(ends.reshape(2, -1)), known)
        return Batch(self._x(nodes, hidden, before), SampledEdges(hops, nodes), queries=queries)

    def _x(
        self, nodes: Int[np.ndarray, " some"], hidden: Int[np.ndarray, " links"], before: Any
    ) -> Tensor:
        """The features of nodes, and the number of edges at each that carry messages."""
        counts = incident_counts(self._lists, before, nodes)
        # Few links are hidden, so they are taken out of what was counted with them.
        _, edges = members(*self._edges_of_links, hidden)
        edges = edges[self._times[edges] < before]
        order = np.argsort(nodes)
        for count, end in zip(counts, self._ends[:, edges], strict=True):
            place = np.searchsorted(nodes, end, sorter=order).clip(max=len(nodes) - 1)
            place = order[place]
            np.subtract.at(count, place[nodes[place] == end], 1)
        return self._with_degrees(nodes, counts)

    def _with_degrees(self, nodes: Int[np.ndarray, " some"], counts: np.ndarray) -> Tensor:
        """The features of nodes, beside the numbers of edges that leave and enter them."""
        counts = counts if self.directed else counts.sum(axis=0, keepdims=True)
        x = self.graph.x[torch.from_numpy(nodes)]
        degree = torch.from_numpy(counts.T).to(x.dtype).log1p()
        return torch.cat([x, degree], dim=1)

    def _evaluated(self, pairs: Tensor, key: int) -> Batch:
        hidden = np.zeros_like(self._hidden)
        if self.times is None and key != FOLDS:
            hidden[self._fold(key).numpy()] = True
        before = np.float64(1) if self.times is None else np.float64(self.times.starts[key])
        carries = self._evaluated_along(key).numpy()
        nodes = self.graph.num_nodes
        counts = np.stack([np.bincount(end[carries], minlength=nodes) for end in self._ends])
        edges = IncidentEdges(
            *(self._lists, self._ends, before),
            lambda nodes: self._with_degrees(nodes, counts[:, nodes]),
            lambda edges: self._channels[edges],
            lambda edges: carries[edges],
            self.device,
        )
        queries = QueriesInBlocks(
            pairs,
            lambda some: np.ones(len(some), dtype=np.int64),
            lambda some: self._known_of_pairs(pairs[:, some].numpy(), before, hidden),
            self.device,
        )
        nothing = torch.empty(0, self.num_features, device=self.device)
        return Batch(nothing, edges, queries=queries)

    def _known_of_pairs(
        self, pairs: Int[np.ndarray, "2 pairs"], before: Any, hidden: Bool[np.ndarray, " links"]
    ) -> Float[Tensor, "pairs width"]:
        """As :func:`edgewise.graphs.link_rows.known_of_pairs` has it."""
        types = 0 if self.types is None else self.types.size(1)
        back = np.zeros((pairs.shape[1], 1 + types), dtype=np.float32)
        if self.directed:
            place, edges = self._edges_between(pairs[1], pairs[0])
            carries = (self._times[edges] < before) & ~hidden[self._link[edges]]
            place, edges = place[carries], edges[carries]
            back[place, 0] = 1
            if self.types is not None:
                np.maximum.at(back[:, 1:], place, self.types.numpy()[edges])
        common = self._count_common(pairs, before, hidden).astype(np.float32)
        known = np.column_stack([back[:, 0], np.log1p(common), back[:, 1:]])
        return torch.from_numpy(known).to(self.graph.x.dtype)

    def _count_common(
        self, pairs: Int[np.ndarray, "2 pairs"], before: Any, hidden: Bool[np.ndarray, " links"]
    ) -> Int[np.ndarray, " pairs"]:
        """How many nodes both ends of each pair are joined with by edges that carry messages."""
        counts = count_common_neighbors(self._neighbors, pairs)
        common = np.empty_like(counts)
        for some in stretches(counts, len(counts), MOST_COMMON):
            found = common_neighbors(self._neighbors, pairs[:, some], counts[some])
            query = np.repeat(np.arange(len(counts[some])), counts[some])
            joined = (self._joined(end, before, hidden) for end in (found.first, found.second))
            both = np.logical_and(*joined)
            common[some] = np.bincount(query[both], minlength=len(counts[some]))
        return common

    def _joined(
        self, places: Int[np.ndarray, " some"], before: Any, hidden: Bool[np.ndarray, " links"]
    ) -> Bool[np.ndarray, " some"]:
        """Whether an edge that carries messages joins two neighbours, whichever way."""
        found = np.zeros(len(places), dtype=np.bool_)
        for way in (self._neighbors.leaving[places], self._neighbors.entering[places]):
            found |= (self._first_time[way] < before) & ~hidden[self._link_of_group[way]]
        return found

    def _edges_between(
        self, source: Int[np.ndarray, " pairs"], target: Int[np.ndarray, " pairs"]
    ) -> tuple[Int[np.ndarray, " found"], Int[np.ndarray, " found"]]:
        """The edges from one node to another: the place of the pair, and the edge."""
        asked, keys = source * self.graph.num_nodes + target, self._keys
        group = np.searchsorted(keys, asked).clip(max=len(keys) - 1)
        known = np.flatnonzero(keys[group] == asked)
        place, edges = members(*self._edges_of_groups, group[known])
        return known[place], edges

    def _before(self, links: Tensor) -> np.float64:
        """The time before which edges carry messages to these rows, which are of one stretch."""
        if self.times is None:
            return np.float64(1)
        return np.float64(self.times.starts[int(self.times.stretch[links[0]])])

    @cached_property
    def _times(self) -> Float[np.ndarray, " edges"]:
        """The time of each edge; 0, where there is none, which is before 1."""
        time = np.zeros(self.graph.num_edges) if self.times is None else self.times.edge.numpy()
        return np.where(self.carries.numpy(), time, _NEVER)

    @cached_property
    def _link(self) -> Int[np.ndarray, " edges"]:
        return self.link.numpy()

    @cached_property
    def _edges_of_links(self) -> tuple[np.ndarray, np.ndarray]:
        return grouped(self._link, self._num_links)

    @property
    def _num_links(self) -> int:
        return int(self._link.max(initial=-1)) + 1

    @cached_property
    def _hidden(self) -> Bool[np.ndarray, " links_and_one"]:
        """Whether a link carries nothing, while a batch is made; the last one is that of nobody."""
        return np.zeros(self._num_links + 1, dtype=np.bool_)

    @cached_property
    def _groups(self) -> tuple[np.ndarray, np.ndarray, int]:
        """The group of edges from one node to another, of each edge and of those back."""
        there, back, count = pair_groups(self.graph.edge_index, self.graph.num_nodes, directed=True)
        return there.numpy(), back.numpy(), count

    @cached_property
    def _keys(self) -> Int[np.ndarray, " groups"]:
        """What the two nodes of a group are found by, in ascending order."""
        (source, target), nodes = self._ends, self.graph.num_nodes
        there, back, count = self._groups
        keys = np.empty(count, dtype=np.int64)
        keys[there], keys[back] = source * nodes + target, target * nodes + source
        return keys

    @cached_property
    def _edges_of_groups(self) -> tuple[np.ndarray, np.ndarray]:
        there, _, count = self._groups
        return grouped(there, count)

    @cached_property
    def _link_of_group(self) -> Int[np.ndarray, " groups"]:
        found = np.full(self._groups[2], len(self._hidden) - 1)
        found[self._groups[0]] = self._link
        return found

    @cached_property
    def _first_time(self) -> Float[np.ndarray, " groups"]:
        """When the first edge of a group happens that carries messages."""
        found = np.full(self._groups[2], _NEVER)
        np.minimum.at(found, self._groups[0], self._times)
        return found

    @cached_property
    def _neighbors(self) -> NeighborLists:
        there, back, _ = self._groups
        return NeighborLists.of(self._ends, there, back, self.graph.num_nodes)
