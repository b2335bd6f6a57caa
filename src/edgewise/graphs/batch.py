"""What a network is given: node features, edges, and which rows to predict."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.channels import (
    directed_channels,
    is_symmetric,
    joined_channels,
    merged_channels,
    parallel_channels,
)
from edgewise.graphs.features import Features, compact_features
from edgewise.graphs.graph import Graph
from edgewise.graphs.queries import EdgeQueries, QueriesInBlocks

Channels = tuple[Tensor, Tensor]  # edge_index, edge_attr


def _summed(edge_index: Tensor, edge_attr: Tensor) -> Channels:
    return joined_channels(edge_index, edge_attr, torch.add)


def _largest(edge_index: Tensor, edge_attr: Tensor) -> Channels:
    return joined_channels(edge_index, edge_attr, torch.maximum)


def _as_given(edge_index: Tensor, edge_attr: Tensor) -> Channels:
    return edge_index, edge_attr


def _parallel_both_ways(edge_index: Tensor, edge_attr: Tensor) -> Channels:
    return torch.cat([edge_index, edge_index.flip(0)], dim=1), torch.cat([edge_attr, edge_attr])


def _merged(edge_index: Tensor, edge_attr: Tensor) -> Channels:
    return directed_channels(*merged_channels(edge_index, edge_attr))


def _merged_sum(edge_index: Tensor, edge_attr: Tensor) -> Channels:
    return _summed(*merged_channels(edge_index, edge_attr))


def _by_symmetry(edge_index: Tensor, edge_attr: Tensor) -> Channels:
    join = _as_given if is_symmetric(edge_index, edge_attr) else _summed
    return join(edge_index, edge_attr)


# How the two directions between two nodes become channels.
DIRECTIONS: dict[str, Callable[[Tensor, Tensor], Channels]] = {
    "directed": directed_channels,  # forward, backward and their sum
    "sum": _summed,
    "max": _largest,
    "as_given": _as_given,
    # Where edges may be parallel: each for itself, or those between the same two nodes summed.
    "parallel": parallel_channels,
    "parallel_both_ways": _parallel_both_ways,
    "merged": _merged,
    "merged_sum": _merged_sum,
    "by_symmetry": _by_symmetry,  # models of version 0.1, which looked at each graph anew
}

# Those that make forward, backward and summed channels of each.
TRIPLED = frozenset({"directed", "parallel", "merged"})


@runtime_checkable
class Preparer(Protocol):
    """A layer, as far as edges know it."""

    @property
    def edge_key(self) -> Hashable:
        """Layers with equal keys prepare the same."""
        ...

    def prepare(self, edges: "Edges") -> Any:
        """What the layer propagates along."""
        ...

    def prepare_many(self, edges: "Edges") -> Any:
        """The same for many graphs, to cut those of a batch from; None: it cannot be cut."""
        ...

    def cut(self, prepared: Any, node_offset: Tensor, chosen: Tensor) -> Any:
        """What belongs to the chosen graphs, of what was prepared for many."""
        ...

    def prepare_sampled(self, edges: Any) -> Any:
        """What the layer propagates along, of sampled neighbours."""
        ...


class Edges:
    """Edges as raw channels, and what layers prepared from them, each once.

    Args:
        edge_index: ``[2, edges]``.
        edge_attr: ``[edges, channels]``.
        num_nodes: Number of nodes.
    """

    def __init__(self, edge_index: Tensor, edge_attr: Tensor, num_nodes: int) -> None:
        self._edge_index, self._edge_attr, self.num_nodes = edge_index, edge_attr, num_nodes
        self._prepared: dict[Hashable, Any] = {}
        self._encoded: dict[str, Edges] = {}

    @property
    def edge_index(self) -> Int[Tensor, "2 edges"]:
        return self._edge_index

    @property
    def edge_attr(self) -> Tensor:
        return self._edge_attr

    def encoded(self, direction: str) -> "Edges":
        """The same edges with direction as channels, one of :data:`DIRECTIONS`."""
        if direction not in self._encoded:
            channels = DIRECTIONS[direction](self.edge_index, self.edge_attr)
            self._encoded[direction] = Edges(*channels, self.num_nodes)
        return self._encoded[direction]

    def prepared(self, layer: Preparer) -> Any:
        """What a layer propagates along."""
        key = layer.edge_key
        if key not in self._prepared:
            self._prepared[key] = layer.prepare(self)
        return self._prepared[key]

    def of_layer(self, number: int, layers: int) -> "Edges":
        """The edges of one of so many layers: all of them, unless neighbours are sampled."""
        return self

    def entering_sums(self) -> Tensor:
        """The channels of the edges that enter each node, added up."""
        value = self.edge_attr
        total = value.new_zeros(self.num_nodes, value.size(1))
        return total.index_add(0, self.edge_index[1].long(), value)

    def prepared_many(self, layer: Preparer) -> Any:
        """What a layer prepares for many graphs, to cut those of a batch from."""
        key = ("many", layer.edge_key)
        if key not in self._prepared:
            self._prepared[key] = layer.prepare_many(self)
        return self._prepared[key]

    def to(self, device: torch.device | str) -> "Edges":
        if self.edge_index.device == torch.device(device):
            return self
        return Edges(self.edge_index.to(device), self.edge_attr.to(device), self.num_nodes)


@dataclass(frozen=True)
class Share:
    """The part of each training batch that is computed by one of several processes.

    Example:
        >>> Share(rank=1, workers=2).of(torch.arange(5))
        tensor([3, 4])
    """

    rank: int = 0
    workers: int = 1

    def divides(self, rows: Tensor) -> bool:
        """Whether there are rows for every process; if not, each computes all of them."""
        return len(rows) >= self.workers

    def of(self, rows: Tensor) -> Tensor:
        """The rows of a batch that this process computes: a stretch of them."""
        return rows.tensor_split(self.workers)[self.rank] if self.divides(rows) else rows

    def balanced(self, rows: Tensor, cost: Tensor) -> Tensor:
        """The rows in an order in which all stretches cost about the same.

        They are dealt out by their cost, from the first process to the last and back again.

        Example:
            >>> Share(workers=2).balanced(torch.arange(5), torch.tensor([9, 5, 1, 2, 8]))
            tensor([0, 3, 2, 4, 1])
        """
        if self.workers == 1:
            return rows
        turn = torch.arange(len(rows))
        process, turns = turn % self.workers, turn // self.workers
        back = (turns % 2 == 1) & (turns < len(rows) // self.workers)
        process[back] = self.workers - 1 - process[back]
        order = cost.argsort(descending=True, stable=True)
        return rows[order[process.argsort(stable=True)]]


EVERYTHING = Share()  # of a process that trains alone


@runtime_checkable
class Batches(Protocol):
    """Rows that come in batches: the nodes of one graph, or many graphs."""

    @property
    def whole_graph(self) -> bool:
        """Whether every batch has all nodes, however few rows it predicts."""
        ...

    @property
    def num_features(self) -> int: ...

    @property
    def num_channels(self) -> int: ...

    @property
    def ids(self) -> Sequence[str]: ...

    @property
    def device(self) -> torch.device: ...

    def __len__(self) -> int: ...

    def steps(self, rows: int, batch_size: int) -> int:
        """How many batches so many training rows make."""
        ...

    def training_batches(
        self, rows: Tensor, batch_size: int, share: Share = EVERYTHING
    ) -> Iterator[tuple[Tensor, "Batch"]]:
        """The rows once, each batch beside its rows; random draws are torch's.

        Of several processes, which draw alike, each is given all rows of a batch, beside a batch
        that predicts those of ``share.of(rows)`` alone.
        """
        ...

    def evaluation_batches(self, rows: Tensor) -> Iterator["Batch"]:
        """The rows once, in their order unless ``Batch.place`` says otherwise."""
        ...


@dataclass(frozen=True, eq=False)
class Batch:
    """One graph, or several as one block-diagonal graph.

    Args:
        x: Node features, dense or :class:`~edgewise.SparseFeatures`.
        edges: Its edges, with what layers prepared from them.
        graph: The graph of each node; None for one graph.
        num_graphs: Number of graphs.
        rows: The rows to predict (nodes, or graphs); None for all.
        queries: The edges to predict, where rows are edges.
        place: Where its rows stand among those that were asked for; None: behind those of the
            batch before.

    Example:
        >>> batch = Batch.of(torch.eye(3), torch.tensor([[0, 1], [1, 2]]))
        >>> batch
        Batch(nodes=3, edges=2, graphs=1)
    """

    x: Features
    edges: Edges
    graph: Tensor | None = None
    num_graphs: int = 1
    rows: Tensor | None = None
    queries: EdgeQueries | QueriesInBlocks | None = None
    place: Tensor | None = None

    @classmethod
    def of(
        cls,
        x: Features,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        graph: Tensor | None = None,
        num_graphs: int | None = None,
        rows: Tensor | None = None,
    ) -> "Batch":
        """A batch from tensors as PyG names them; ``graph`` is its ``batch``."""
        if edge_attr is None:
            dtype, device = x.dtype, edge_index.device
            edge_attr = torch.ones(edge_index.size(1), 1, dtype=dtype, device=device)
        edge_attr = edge_attr.unsqueeze(1) if edge_attr.dim() == 1 else edge_attr
        if num_graphs is None:
            num_graphs = 1 if graph is None else int(graph.max()) + 1 if len(graph) else 1
        if graph is not None:
            _check_graph(graph, num_graphs, len(x))
        return cls(x, Edges(edge_index, edge_attr, len(x)), graph, num_graphs, rows)

    @classmethod
    def from_graph(cls, graph: Graph, rows: Tensor | None = None) -> "Batch":
        """A whole graph; features that are mostly zero are stored without their zeros."""
        edges = Edges(graph.edge_index, graph.channels, graph.num_nodes)
        return cls(compact_features(graph.x), edges, rows=rows)

    @property
    def edge_index(self) -> Tensor:
        return self.edges.edge_index

    @property
    def edge_attr(self) -> Tensor:
        return self.edges.edge_attr

    @property
    def graph_of_node(self) -> Int[Tensor, " nodes"]:
        """The graph of each node, also where there is one only."""
        if self.graph is not None:
            return self.graph
        return torch.zeros(len(self.x), dtype=torch.int64, device=self.x.device)

    def with_rows(self, rows: Tensor | None) -> "Batch":
        """The same batch for other rows; the edges are shared."""
        return replace(self, rows=rows)

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device; what layers prepared is prepared there anew."""
        graph, rows = (None if t is None else t.to(device) for t in (self.graph, self.rows))
        queries = None if self.queries is None else self.queries.to(device)
        edges = self.edges.to(device)
        return Batch(self.x.to(device), edges, graph, self.num_graphs, rows, queries, self.place)

    def __repr__(self) -> str:
        size = f"nodes={len(self.x)}, edges={self.edge_index.size(1)}, graphs={self.num_graphs}"
        return f"Batch({size})" if self.rows is None else f"Batch({size}, rows={len(self.rows)})"


def computed_rows(data: Batches, rows: Tensor, compute: Callable[[Batch], Tensor]) -> Tensor | None:
    """What is computed for each row, in the order of the rows; None where there are no rows."""
    parts, places = [], []
    for batch in data.evaluation_batches(rows):
        parts.append(compute(batch))
        places.append(batch.place)
    if not parts:
        return None
    every = torch.cat(parts)
    if any(place is None for place in places):
        return every
    order = torch.cat([place for place in places if place is not None])
    return torch.empty_like(every).index_copy(0, order.to(every.device), every)


def _check_graph(graph: Tensor, num_graphs: int, num_nodes: int) -> None:
    if graph.shape != (num_nodes,):
        raise EdgewiseError(
            f"graph has {list(graph.shape)} numbers for {num_nodes} nodes; give the graph of each"
        )
    outside = graph[(graph < 0) | (graph >= num_graphs)]
    if len(outside):
        raise EdgewiseError(
            f"graph names graph {int(outside[0])}, but with num_graphs={num_graphs} the graphs are "
            f"numbered 0 to {num_graphs - 1}"
        )
