"""The edges that carry messages where edges may be parallel, for some nodes at a time."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from edgewise.graphs.edges_in_blocks import EdgesInBlocks
from edgewise.graphs.incident_hops import Attr, Carries, incident_hops
from edgewise.graphs.sampled_edges import Hop
from edgewise.kernels.incident_sampling import IncidentLists, mark_incident
from edgewise.kernels.sampling import ALL, Numbering


class IncidentEdges(EdgesInBlocks):
    """All edges before a time, each for itself.

    Args:
        lists: The edges of each node.
        ends: Source and target of each edge.
        before: The time.
        features: Gives the features of nodes.
        attr: Gives the channels of edges.
        carries: Says which edges carry messages; without it all.
        device: Where to compute.
    """

    def __init__(
        self,
        lists: IncidentLists,
        ends: Int[np.ndarray, "2 edges"],
        before: object,
        features: Callable[[Int[np.ndarray, " nodes"]], Float[Tensor, "nodes features"]],
        attr: Attr,
        carries: Carries | None,
        device: torch.device,
    ) -> None:
        super().__init__(len(lists.out_start) - 1, device)
        self._lists, self._ends, self._before = lists, ends, before
        self._features, self._attr, self._carries = features, attr, carries

    def features(self, nodes: Int[np.ndarray, " nodes"]) -> Float[Tensor, "nodes features"]:
        return self._features(nodes)

    def cost(self, nodes: Int[np.ndarray, " nodes"]) -> Int[np.ndarray, " nodes"]:
        starts = self._lists.out_start, self._lists.in_start
        return sum(start[nodes + 1] - start[nodes] for start in starts)

    def reached(self, marked: Bool[np.ndarray, " nodes"]) -> Bool[np.ndarray, " nodes"]:
        return mark_incident(self._lists, self._before, self._ends, marked)

    def hop(self, numbering: Numbering) -> Hop:
        (found,) = incident_hops(
            *(self._lists, self._ends, self._before, (ALL,), 0, numbering),
            self._attr,
            self._carries,
        )
        return found
