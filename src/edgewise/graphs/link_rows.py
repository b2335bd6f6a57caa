"""One graph whose pairs of nodes are the rows: is there an edge between them, and of which type?"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from edgewise.graphs.batch import Batch
from edgewise.graphs.edge_rows import FOLDS
from edgewise.graphs.edges import Edges
from edgewise.graphs.graph import Graph
from edgewise.graphs.negatives import NegativeSampler
from edgewise.graphs.pair_names import PairNames
from edgewise.graphs.queries import EdgeQueries
from edgewise.graphs.share import EVERYTHING, Share


def pair_width(types: int) -> int:
    """The width of what is known of a pair beside its ends, see :attr:`LinkRows.types`."""
    return 2 + types


@dataclass(frozen=True, eq=False)
class LinkTimes:
    """When edges and rows happen, and the stretches of time in which rows are predicted.

    Args:
        edge: Of each edge.
        row: Of each row; a pair without an edge has the time of the link that it is told from.
        starts: When each stretch starts, in order; the first is before all edges.
    """

    edge: Tensor
    row: Tensor
    starts: Tensor

    @cached_property
    def stretch(self) -> Tensor:
        """The stretch of each row."""
        return torch.searchsorted(self.starts, self.row, right=True) - 1

    def before(self, stretch: int) -> Tensor:
        """The edges before a stretch: what its rows are predicted along."""
        return self.edge < self.starts[stretch]

    def until(self, stretch: int) -> Tensor:
        """The edges up to the end of a stretch: no pair without an edge is one of them."""
        return self.before(stretch + 1) if stretch + 1 < len(self.starts) else self.edge >= -np.inf


@dataclass(frozen=True, eq=False)
class LinkRows:
    """A graph as models of its links are trained on it.

    Without times, a pair is predicted along edges of ``carries`` alone; in training, a tenth of
    them is predicted at a time, and carries nothing meanwhile. With times, a pair in a stretch of
    time is predicted along edges before that stretch. In training, a link stands beside a pair
    without an edge that is drawn anew.

    Args:
        graph: Nodes and edges.
        link: The number of the pair that each edge joins; parallel edges have the same.
        pairs: The rows, ``[2, rows]``.
        link_of_row: The number of each row among the links; -1: there is no edge.
        trained: Whether a row is one of training.
        carries: Whether an edge carries messages.
        directed: Whether an edge goes one way.
        device: Where to compute.
        types: Whether an edge is of each type, ``[edges, types]``; None: edges have none.
        times: When edges and rows happen; then ``carries`` says nothing.
    """

    graph: Graph
    link: Tensor
    pairs: Tensor
    link_of_row: Tensor
    trained: Tensor
    carries: Tensor
    directed: bool = True
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    types: Tensor | None = None
    times: LinkTimes | None = None

    whole_graph: ClassVar[bool] = True

    def __len__(self) -> int:
        return self.pairs.size(1)

    def __repr__(self) -> str:
        return repr(self.graph)

    @property
    def num_features(self) -> int:
        return self.graph.num_features + 1 + self.directed

    @property
    def num_channels(self) -> int:
        return self.graph.num_channels

    @property
    def ids(self) -> PairNames:
        """The name of each row."""
        return PairNames(self.pairs, self.graph.node_ids)

    @cached_property
    def sampler(self) -> NegativeSampler:
        # Of the edges that carry messages: what is not known in training may well be drawn.
        known = self.graph.edge_index[:, self.carries]
        return NegativeSampler(known, self.graph.num_nodes, directed=self.directed)

    @cached_property
    def _samplers(self) -> dict[int, NegativeSampler]:
        """Of each stretch of time; made when first asked for."""
        return {}

    def sampler_until(self, stretch: int) -> NegativeSampler:
        """Draws pairs without an edge up to the end of a stretch, of nodes with one by then."""
        assert self.times is not None
        if stretch not in self._samplers:
            known = self.graph.edge_index[:, self.times.until(stretch)]
            self._samplers[stretch] = NegativeSampler(
                known, self.graph.num_nodes, directed=self.directed, nodes=known.unique()
            )
        return self._samplers[stretch]

    def steps(self, rows: int, batch_size: int) -> int:
        if self.times is not None:
            return max(1, len(self.times.stretch[self.trained].unique()))
        return min(FOLDS, max(rows // 2, 1))

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """Every link once, beside a pair that is drawn anew in place of each row without one."""
        links = rows[self.link_of_row[rows] >= 0]
        empty = rows[self.link_of_row[rows] < 0]
        for some, sampler, carries in self._parts(links, len(rows), batch_size):
            drawn = sampler.draw(self.pairs[:, some])
            pairs = torch.cat([self.pairs[:, some], drawn], dim=1)
            without = empty[torch.arange(len(some)) % len(empty)]  # their truth is that of all
            every, asked = torch.cat([some, without]), share.of(torch.arange(pairs.size(1)))
            yield every, self._batch(pairs[:, asked], carries)

    def _parts(
        self, links: Tensor, rows: int, batch_size: int
    ) -> Iterator[tuple[Tensor, NegativeSampler, Tensor]]:
        """Links that are trained at once, what they are told from, and what carries messages."""
        if self.times is not None:
            stretch = self.times.stretch[links]
            numbers = stretch.unique()
            for number in numbers[torch.randperm(len(numbers))].tolist():
                some = links[stretch == number]
                yield some, self.sampler_until(number), self.times.before(number)
            return
        shuffled = links[torch.randperm(len(links))]
        for some in shuffled.tensor_split(min(self.steps(rows, batch_size), len(links))):
            yield some, self.sampler, self._without(self.link_of_row[some])

    def evaluation_batches(self, rows: Tensor) -> Iterator[Batch]:
        if self.times is not None:
            key = self.times.stretch[rows]
        else:
            # A row without an edge stands behind a link, and is predicted with it.
            near = torch.cummax(self.link_of_row, 0).values[rows]
            key = torch.where(self.trained[rows], near % FOLDS, FOLDS)
        for value in key.unique().tolist():
            place = (key == value).nonzero()[:, 0]
            yield replace(self._evaluated(self.pairs[:, rows[place]], value), place=place)

    def _evaluated(self, pairs: Tensor, key: int) -> Batch:
        """A batch for pairs of one stretch of time, or of one fold: that of :data:`FOLDS` is none
        of training.
        """
        return self._batch(pairs, self._evaluated_along(key))

    def _evaluated_along(self, key: int) -> Tensor:
        """What carries messages to them."""
        if self.times is not None:
            return self.times.before(key)
        return self.carries if key == FOLDS else self._without(self._fold(key))

    def _fold(self, key: int) -> Tensor:
        """The training links that are predicted together; none of the other rows are."""
        train = self.link_of_row[self.trained & (self.link_of_row >= 0)]
        return train[train % FOLDS == key]

    def _without(self, hidden: Tensor) -> Tensor:
        """What carries messages while some links are predicted."""
        return self.carries & ~torch.isin(self.link, hidden)

    def _batch(self, pairs: Tensor, carries: Tensor) -> Batch:
        graph = self.graph
        index, attr = graph.edge_index[:, carries], graph.channels[carries]
        counts = [torch.bincount(end, minlength=graph.num_nodes) for end in index]
        counts = counts if self.directed else [counts[0] + counts[1]]
        degree = torch.stack(counts, dim=1).to(graph.x.dtype).log1p()
        x = torch.cat([graph.x, degree], dim=1)
        types = None if self.types is None else self.types[carries]
        known = known_of_pairs(index, pairs, graph.num_nodes, types, directed=self.directed)
        queries = EdgeQueries(pairs, known.to(x.dtype))
        batch = Batch(x, Edges(index, attr, graph.num_nodes), queries=queries)
        return batch.to(self.device)


def known_of_pairs(
    index: Tensor, pairs: Tensor, num_nodes: int, types: Tensor | None, *, directed: bool
) -> Tensor:
    """Whether an edge goes the other way, how many neighbours both have, types of edges back.

    Args:
        index: The edges that carry messages.
        pairs: What is asked for, ``[2, pairs]``.
        num_nodes: Number of nodes.
        types: Whether an edge is of each type, ``[edges, types]``.
        directed: Whether an edge the other way is another one; else none is told of.
    """
    from scipy.sparse import csr_array

    shape, (source, target), (first, second) = (num_nodes,) * 2, index.numpy(), pairs.numpy()

    def matrix(value: np.ndarray) -> csr_array:
        found = csr_array((value, (source, target)), shape=shape)
        found.sum_duplicates()
        found.data[:] = found.data > 0
        return found

    there = matrix(np.ones(len(source), dtype=np.float32))
    both = there + there.T
    both.data[:] = 1
    both.setdiag(0)  # no node is its own neighbour
    common = np.asarray(both[first].multiply(both[second]).sum(axis=1)).ravel()
    kinds = [] if types is None else [matrix(column) for column in types.numpy().T]
    back = [np.asarray(one[second, first]).ravel() for one in (there, *kinds)]
    back = back if directed else [np.zeros_like(one) for one in back]
    columns = [back[0], np.log1p(common), *back[1:]]
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))
