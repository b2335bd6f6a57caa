"""One graph whose pairs of nodes are the rows: is there an edge between them?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from edgewise.graphs.batch import EVERYTHING, Batch, EdgeQueries, Edges, Share
from edgewise.graphs.edge_rows import FOLDS, edge_name
from edgewise.graphs.graph import Graph
from edgewise.graphs.negatives import NegativeSampler

PAIR_FEATURES = 2  # what is known of a pair beside its ends


@dataclass(frozen=True, eq=False)
class LinkRows:
    """A graph as models of its links are trained on it.

    A pair is predicted along edges of ``carries`` alone. In training, a tenth of them is predicted
    at a time, beside as many pairs without an edge, and carries nothing meanwhile.

    Args:
        graph: Nodes and edges.
        link: The number of the pair that each edge joins; parallel edges have the same.
        pairs: The rows, ``[2, rows]``.
        link_of_row: The number of each row among the links; -1: there is no edge.
        trained: Whether a row is one of training.
        carries: Whether an edge carries messages.
        directed: Whether an edge goes one way.
        device: Where to compute.
    """

    graph: Graph
    link: Tensor
    pairs: Tensor
    link_of_row: Tensor
    trained: Tensor
    carries: Tensor
    directed: bool = True
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

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

    @cached_property
    def ends(self) -> tuple[list[str], list[str]]:
        """The names of the two nodes of each row."""
        names = self.graph.node_ids or tuple(map(str, range(self.graph.num_nodes)))
        source, target = self.pairs.tolist()
        return [names[i] for i in source], [names[i] for i in target]

    @cached_property
    def ids(self) -> Sequence[str]:
        return [edge_name(*pair) for pair in zip(*self.ends, strict=True)]

    @cached_property
    def sampler(self) -> NegativeSampler:
        # Of the edges that carry messages: what is not known in training may well be drawn.
        known = self.graph.edge_index[:, self.carries]
        return NegativeSampler(known, self.graph.num_nodes, directed=self.directed)

    def steps(self, rows: int, batch_size: int) -> int:
        return min(FOLDS, max(rows // 2, 1))

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, Batch]]:
        """Every link once, beside a pair that is drawn anew in place of each row without one."""
        links = rows[self.link_of_row[rows] >= 0]
        empty = rows[self.link_of_row[rows] < 0]
        shuffled = links[torch.randperm(len(links))]
        for some in shuffled.tensor_split(min(self.steps(len(rows), batch_size), len(links))):
            drawn = self.sampler.draw(self.pairs[:, some])
            pairs = torch.cat([self.pairs[:, some], drawn], dim=1)
            without = empty[torch.arange(len(some)) % len(empty)]  # their truth is that of all
            every, asked = torch.cat([some, without]), share.of(torch.arange(pairs.size(1)))
            yield every, self._batch(pairs[:, asked], self.link_of_row[some])

    def evaluation_batches(self, rows: Tensor) -> Iterator[Batch]:
        # A row without an edge stands behind a link, and is predicted with it.
        near = torch.cummax(self.link_of_row, 0).values[rows]
        key = torch.where(self.trained[rows], near % FOLDS, FOLDS)
        for value in key.unique().tolist():
            place = (key == value).nonzero()[:, 0]
            hidden = None
            if value < FOLDS:
                train = self.link_of_row[self.trained & (self.link_of_row >= 0)]
                hidden = train[train % FOLDS == value]
            yield replace(self._batch(self.pairs[:, rows[place]], hidden), place=place)

    def _batch(self, pairs: Tensor, hidden: Tensor | None) -> Batch:
        graph, carries = self.graph, self.carries
        if hidden is not None:
            carries = carries & ~torch.isin(self.link, hidden)
        index, attr = graph.edge_index[:, carries], graph.channels[carries]
        counts = [torch.bincount(end, minlength=graph.num_nodes) for end in index]
        counts = counts if self.directed else [counts[0] + counts[1]]
        degree = torch.stack(counts, dim=1).to(graph.x.dtype).log1p()
        x = torch.cat([graph.x, degree], dim=1)
        queries = EdgeQueries(pairs, self._known_of_pairs(index, pairs).to(x.dtype))
        batch = Batch(x, Edges(index, attr, graph.num_nodes), queries=queries)
        return batch.to(self.device)

    def _known_of_pairs(self, index: Tensor, pairs: Tensor) -> Tensor:
        """Whether there is an edge the other way, and how many neighbours both have."""
        from scipy.sparse import csr_array

        nodes = self.graph.num_nodes
        source, target = index.numpy()
        ones = np.ones(len(source), dtype=np.float32)
        there = csr_array((ones, (source, target)), shape=(nodes, nodes))
        there.data[:] = 1
        both = there + there.T
        both.data[:] = 1
        first, second = pairs.numpy()
        common = np.asarray(both[first].multiply(both[second]).sum(axis=1)).ravel()
        back = np.asarray(there[second, first]).ravel()
        back = back if self.directed else np.zeros_like(back)
        return torch.from_numpy(np.stack([back, np.log1p(common)], axis=1).astype(np.float32))
