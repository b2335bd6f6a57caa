"""What a network is given: node features, edges, and which rows to predict."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.edges import Edges
from edgewise.graphs.features import Features, compact_features
from edgewise.graphs.graph import Graph
from edgewise.graphs.queries import EdgeQueries, QueriesInBlocks
from edgewise.graphs.share import EVERYTHING, Share


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
