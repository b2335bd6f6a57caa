"""All edges of a graph, of which networks read the neighbourhoods of some nodes at a time."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edgewise.graphs.edges import Edges
from edgewise.graphs.sampled_edges import Hop, SampledEdges, SampledLayer
from edgewise.graphs.whole_sums import WholeSums
from edgewise.kernels.sampling import Numbering


class EdgesInBlocks(Edges):
    """Edges that are never all there at once; a class of this kind says where they are read.

    Args:
        num_nodes: Number of nodes.
        device: Where to compute.
        sums: Of the channels of the whole graph, for layers that divide by them.
    """

    def __init__(self, num_nodes: int, device: torch.device, sums: WholeSums | None = None) -> None:
        self.num_nodes, self.device, self.sums = num_nodes, device, sums
        self._numbering = Numbering(num_nodes)

    def features(self, nodes: Int[np.ndarray, " nodes"]) -> Float[Tensor, "nodes features"]:
        """The features of some nodes."""
        raise NotImplementedError

    def cost(self, nodes: Int[np.ndarray, " nodes"]) -> Int[np.ndarray, " nodes"]:
        """How many pairs each of some nodes has with its neighbours, at most."""
        raise NotImplementedError

    def reached(self, marked: Bool[np.ndarray, " nodes"]) -> Bool[np.ndarray, " nodes"]:
        """The marked nodes, and all that they gather from."""
        raise NotImplementedError

    def hop(self, numbering: Numbering) -> Hop:
        """All neighbours of the nodes that have a number, which get numbers of their own."""
        raise NotImplementedError

    def around(
        self, rows: Int[np.ndarray, " rows"], direction: str, hop: int
    ) -> tuple[Int[np.ndarray, " nodes"], SampledLayer]:
        """The rows and all their neighbours, and the edges of one hop of a layer between them."""
        self._numbering.clear()
        self._numbering.extend(rows)
        found = self.hop(self._numbering).to(self.device)
        edges = SampledEdges([found], self._numbering.nodes, self.sums, direction)
        return self._numbering.nodes, SampledLayer(edges, 0, 1, only=hop)
