"""One graph whose edges are the rows. A batch says which edges carry messages to which others."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from edgewise.graphs.batch import Batch
from edgewise.graphs.edges import Edges
from edgewise.graphs.graph import Graph
from edgewise.graphs.incident import Messages, means, pair_groups, sums_width
from edgewise.graphs.pair_names import PairNames
from edgewise.graphs.queries import EdgeQueries
from edgewise.graphs.share import EVERYTHING, Share
from edgewise.graphs.two_paths import GroupSums, path_means, path_width
from edgewise.kernels.common_neighbors import NeighborLists

FOLDS = 10  # into which training edges are cut, where they show their labels to one another


def query_width(channels: int, *, directed: bool, paths: bool = False) -> int:
    """The width of what an edge to predict comes with: its channels, and means of those beside it.

    Args:
        channels: Of an edge, see :attr:`EdgeRows.num_channels`.
        directed: Whether those the other way are told apart.
        paths: Whether paths of two edges between its ends are told of.
    """
    around = 1 + channels
    return channels + (1 + directed) * around + paths * path_width(around, directed=directed)


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """A graph as models of its edges are trained on it.

    An edge is predicted from its ends, its own channels, and messages along other edges:

    - labels travel with the edges of ``known`` alone, and never to their own edge: while some are
      predicted, theirs are hidden in every layer, and all others show;
    - with times, an edge in a stretch of time is predicted along edges before that stretch alone.

    Args:
        graph: Nodes and edges; parallel edges are rows of their own.
        labels: Labels as channels, ``[edges, labels]``; None: no label is ever seen.
        known: Whether an edge may show its label to others.
        time: When each edge happens.
        starts: When each stretch of time starts, in order; the first is before all edges.
        directed: Whether an edge goes one way.
        incident: Whether nodes get the number of their edges and the means of their channels as
            features.
        paths: Whether an edge is told of the paths of two edges between its ends.
        rows: The row of each edge in its table.
        device: Where to compute.
    """

    graph: Graph
    labels: Tensor | None = None
    known: Tensor | None = None
    time: Tensor | None = None
    starts: Tensor | None = None
    directed: bool = True
    incident: bool = True
    paths: bool = False
    rows: Tensor | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    whole_graph: ClassVar[bool] = True

    def __len__(self) -> int:
        return self.graph.num_edges

    def __repr__(self) -> str:
        return repr(self.graph)

    @property
    def num_labels(self) -> int:
        return 0 if self.labels is None else self.labels.size(1)

    @property
    def num_features(self) -> int:
        around = sums_width(self.graph.num_channels, self.num_labels)
        return self.graph.num_features + (1 + self.directed) * around * self.incident

    @property
    def num_channels(self) -> int:
        """Channels of an edge; one of them says whether its label is seen."""
        return self.graph.num_channels + (1 + self.num_labels if self.num_labels else 0)

    @property
    def pairs(self) -> Tensor:
        """The two nodes of each row."""
        return self.graph.edge_index

    @property
    def ids(self) -> PairNames:
        """The name of each row."""
        return PairNames(self.pairs, self.graph.node_ids)

    def steps(self, rows: int, batch_size: int) -> int:
        if self.time is not None:
            known = self.known if self.known is not None else torch.ones(len(self)).bool()
            return max(1, len(self._stretch[known].unique()))
        parts = -(-rows // batch_size)
        return max(parts, FOLDS if self.labels is not None else 1)

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """Every row once: a stretch of time after the other, or some rows after the other."""
        if self.time is not None:
            groups = [rows[self._stretch[rows] == s] for s in self._stretch[rows].unique().tolist()]
            for number in torch.randperm(len(groups)).tolist():
                yield groups[number], self._stretch_batch(share.of(groups[number]))
            return
        steps = self.steps(len(rows), batch_size)
        shuffled = rows[torch.randperm(len(rows))] if steps > 1 else rows
        for some in shuffled.tensor_split(min(steps, len(rows))):
            hidden = some if self.labels is not None else None
            yield some, self._batch(share.of(some), hidden=hidden)

    def evaluation_batches(self, rows: Tensor) -> Iterator[Batch]:
        place = torch.arange(len(rows))
        for group in self._groups(rows):
            some = rows[place[group]]
            yield replace(self._evaluated(some, self._hidden_from(some)), place=place[group])

    def _hidden_from(self, rows: Tensor) -> Tensor | None:
        """The edges whose labels are hidden from rows that see the same ones."""
        shown = self.labels is not None and self.time is None
        if not shown or self.known is None or not self.known[rows[0]]:
            return None
        # All of the fold, whoever is asked for: a prediction depends on nothing else.
        fold = (torch.arange(len(self)) % FOLDS) == rows[0] % FOLDS
        return (fold & self.known).nonzero()[:, 0]

    def _evaluated(self, rows: Tensor, hidden: Tensor | None) -> Batch:
        """A batch for rows that are predicted along the same edges, and see the same labels."""
        return self._batch(rows, hidden) if self.time is None else self._stretch_batch(rows)

    def _groups(self, rows: Tensor) -> list[Tensor]:
        """Rows that are predicted along the same edges, and see the same labels."""
        key = torch.zeros(len(rows), dtype=torch.int64)
        if self.time is not None:
            key = self._stretch[rows]
        elif self.labels is not None and self.known is not None:
            key = torch.where(self.known[rows], rows % FOLDS, FOLDS)
        return [(key == value).nonzero()[:, 0] for value in key.unique().tolist()]

    @cached_property
    def _stretch(self) -> Tensor:
        """The stretch of time of each edge."""
        assert self.time is not None
        assert self.starts is not None
        return torch.searchsorted(self.starts, self.time, right=True) - 1

    @cached_property
    def _everything(self) -> Messages:
        return self._messages(torch.ones(len(self), dtype=torch.bool), None)

    @cached_property
    def _fixed_batches(self) -> dict[int, Batch]:
        """For each stretch, what its edges are predicted along; made when first asked for."""
        return {}

    @cached_property
    def _pairs(self) -> tuple[Tensor, Tensor, int]:
        graph = self.graph
        return pair_groups(graph.edge_index, graph.num_nodes, directed=self.directed)

    def _stretch_batch(self, rows: Tensor) -> Batch:
        stretch = int(self._stretch[rows[0]])
        assert self.time is not None
        assert self.starts is not None
        carries = self.time < self.starts[stretch]
        messages = self._messages(carries, self._visible(carries))
        if stretch not in self._fixed_batches:
            self._fixed_batches[stretch] = self._message_batch(messages)
        return self._asked(self._fixed_batches[stretch], messages, rows)

    def _batch(self, rows: Tensor, hidden: Tensor | None) -> Batch:
        if self.labels is None:
            if -1 not in self._fixed_batches:
                self._fixed_batches[-1] = self._message_batch(self._everything)
            return self._asked(self._fixed_batches[-1], self._everything, rows)
        carries = torch.ones(len(self), dtype=torch.bool)
        visible = self._visible(carries)
        if hidden is not None and visible is not None:
            visible = visible.clone()
            visible[hidden] = False
        messages = self._messages(carries, visible)
        return self._asked(self._message_batch(messages), messages, rows)

    def _visible(self, carries: Tensor) -> Tensor | None:
        """Which labels are seen, where those edges carry messages."""
        if self.labels is None:
            return None
        return carries if self.known is None else carries & self.known

    def _messages(self, carries: Tensor, visible: Tensor | None) -> Messages:
        labels = None
        if self.labels is not None and visible is not None:
            labels = torch.where(visible.unsqueeze(1), self.labels, 0.0)
        return Messages(carries, self.graph.channels, labels, visible)

    def _message_batch(self, messages: Messages) -> Batch:
        """The graph along which messages go, with what nodes know of the edges around them."""
        graph = self.graph
        x = graph.x
        if self.incident:
            ends = [messages.sums(end, graph.num_nodes) for end in graph.edge_index.long()]
            around = ends if self.directed else [ends[0] + ends[1]]
            x = torch.cat([x, *(means(sums, graph.num_channels) for sums in around)], dim=1)
        channels = [messages.channels]
        if messages.labels is not None and messages.visible is not None:
            channels += [messages.visible.to(x.dtype).unsqueeze(1), messages.labels]
        attr, index = torch.cat(channels, dim=1), graph.edge_index
        if not bool(messages.carries.all()):
            attr, index = attr[messages.carries], index[:, messages.carries]
        return Batch(x, Edges(index, attr, graph.num_nodes)).to(self.device)

    def _asked(self, batch: Batch, messages: Messages, rows: Tensor) -> Batch:
        """The batch for some edges: their own channels, and the means of others at the pair."""
        graph = self.graph
        there, back, groups = self._pairs
        sums = messages.sums(there, groups)
        beside = sums[there[rows]] - messages.own_sums(rows)
        others = [means(beside, graph.num_channels)]
        if self.directed:
            others.append(means(sums[back[rows]], graph.num_channels))
        if self.paths:
            others.append(self._path_means(rows, lambda some: sums[torch.from_numpy(some)]))
        own = graph.channels[rows]
        hidden = own.new_zeros(len(rows), self.num_channels - graph.num_channels)
        wide = torch.cat([own, hidden, *others], dim=1)
        queries = EdgeQueries(graph.edge_index[:, rows], wide)
        return replace(batch, queries=queries.to(self.device))

    def _path_means(self, rows: Tensor, group_sums: GroupSums) -> Tensor:
        pairs, channels = self.graph.edge_index[:, rows].numpy(), self.graph.num_channels
        return path_means(self._neighbors, pairs, group_sums, channels, directed=self.directed)

    @cached_property
    def _neighbors(self) -> NeighborLists:
        there, back, _ = self._pairs
        ends, back = self.graph.edge_index.numpy(), back if self.directed else there
        return NeighborLists.of(ends, there.numpy(), back.numpy(), self.graph.num_nodes)
