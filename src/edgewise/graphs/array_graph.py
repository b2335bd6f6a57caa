"""A graph that need not fit into memory: plain arrays, which may be memory-mapped files."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.graph import Graph
from edgewise.kernels.channel_sums import same_both_ways
from edgewise.kernels.sampling import EdgeLists


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The edges in two orders: those that leave each node, and those that enter it.

    Edge ``k`` is the ``k``-th in the order by source, then by target; its channels are row ``k`` of
    :attr:`ArrayGraph.edge_attr`. Node numbers are int32 where they fit, else int64.
    """

    out_start: Int[np.ndarray, " nodes_and_one"]  # edges that leave node i: out_start[i] and on
    target: Int[np.ndarray, " edges"]
    in_start: Int[np.ndarray, " nodes_and_one"]  # edges that enter node i: in_start[i] and on
    source: Int[np.ndarray, " edges"]
    in_edge: Int[np.ndarray, " edges"]  # the number of each entering edge in the order by source

    @classmethod
    def of(cls, edge_index: Int[Tensor, "2 edges"], num_nodes: int) -> "Adjacency":
        """The edges of a graph in memory, which are in their order by source, then by target."""
        source, target = edge_index.numpy()
        by_target = np.argsort(target, kind="stable")
        out_start, in_start = (
            np.searchsorted(end, np.arange(num_nodes + 1)) for end in (source, target[by_target])
        )
        return cls(out_start, target, in_start, source[by_target], by_target)

    @property
    def lists(self) -> EdgeLists:
        """The arrays as compiled code takes them."""
        arrays = (self.out_start, self.target, self.in_start, self.source, self.in_edge)
        return EdgeLists(*map(np.asarray, arrays))

    @property
    def num_nodes(self) -> int:
        return len(self.out_start) - 1

    @property
    def num_edges(self) -> int:
        return len(self.target)


@dataclass(frozen=True, eq=False)
class ArrayGraph:
    """Nodes and edges as arrays.

    Args:
        x: Node features.
        adjacency: The edges in both orders.
        edge_attr: Non-negative channels of the edges, in their order by source.
    """

    x: Float[np.ndarray, "nodes features"]
    adjacency: Adjacency
    edge_attr: Float[np.ndarray, "edges channels"]

    @classmethod
    def of(cls, graph: Graph) -> "ArrayGraph":
        """A graph that is in memory, without parallel edges."""
        if graph.parallel:
            raise EdgewiseError("neighbours are sampled where two nodes are joined once each way")
        source, target = graph.edge_index.long()
        order = (source * graph.num_nodes + target).argsort()
        adjacency = Adjacency.of(graph.edge_index[:, order].long(), graph.num_nodes)
        return cls(graph.x.numpy(), adjacency, graph.channels[order].numpy())

    def __repr__(self) -> str:
        return (
            f"ArrayGraph(nodes={self.num_nodes}, edges={self.num_edges}, "
            f"channels={self.num_channels}, features={self.num_features})"
        )

    @property
    def num_nodes(self) -> int:
        return len(self.x)

    @property
    def num_edges(self) -> int:
        return self.adjacency.num_edges

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    @property
    def num_channels(self) -> int:
        return self.edge_attr.shape[1]

    @property
    def is_symmetric(self) -> bool:
        """Whether every edge has a reverse edge with the same values."""
        return same_both_ways(self.adjacency.lists, np.asarray(self.edge_attr))

    def neighbors(self, node: int) -> np.ndarray:
        """The other nodes that an edge joins a node with, in either direction, ascending."""
        edges = self.adjacency
        leaving = edges.target[edges.out_start[node] : edges.out_start[node + 1]]
        entering = edges.source[edges.in_start[node] : edges.in_start[node + 1]]
        near = np.concatenate([leaving, entering])
        return np.unique(near[near != node])
