"""A graph that need not fit into memory: plain arrays, which may be memory-mapped files."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


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
