"""Hops of a batch along edges of which each is drawn for itself, parallel ones included."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from edgewise.graphs.graph import Graph
from edgewise.graphs.sampled_edges import Hop
from edgewise.kernels.incident_sampling import IncidentLists, sample_incident
from edgewise.kernels.sampling import Numbering

Attr = Callable[[Int[np.ndarray, " some"]], Float[np.ndarray, "some channels"]]
Carries = Callable[[Int[np.ndarray, " some"]], Bool[np.ndarray, " some"]]


class IncidentArrays:
    """A graph as sampling reads it: arrays of its edges, and lists of those of each node."""

    graph: Graph

    @cached_property
    def _times(self) -> np.ndarray:
        """The time of each edge."""
        raise NotImplementedError

    @cached_property
    def _ends(self) -> Int[np.ndarray, "2 edges"]:
        return np.ascontiguousarray(self.graph.edge_index.long().numpy())

    @cached_property
    def _lists(self) -> IncidentLists:
        return IncidentLists.of(self._ends, self._times, self.graph.num_nodes)

    @cached_property
    def _channels(self) -> Float[np.ndarray, "edges channels"]:
        return np.ascontiguousarray(self.graph.channels.numpy())


def incident_hops(
    lists: IncidentLists,
    ends: Int[np.ndarray, "2 edges"],
    before: object,
    fan_outs: Sequence[int],
    key: int,
    numbering: Numbering,
    attr: Attr,
    carries: Carries | None = None,
) -> list[Hop]:
    """The hops from the nodes that are numbered already outwards.

    Args:
        lists: The edges of each node.
        ends: Source and target of each edge.
        before: The time before which edges are drawn.
        fan_outs: How many edges of a node are drawn in each hop, that of the last layer first.
        key: What is drawn.
        numbering: Of the nodes of the batch, which grows.
        attr: The channels of edges.
        carries: Whether edges carry messages; those that do not are left out once they are drawn,
            so that the others count for what they would.
    """
    hops = []
    for number, fan_out in enumerate(fan_outs):
        nodes = numbering.nodes
        start, edge, leaves, weight = sample_incident(lists, before, nodes, fan_out, key + number)
        near = np.repeat(np.arange(len(nodes)), np.diff(start))
        if carries is not None:
            kept = carries(edge)
            near, edge, leaves, weight = (a[kept] for a in (near, edge, leaves, weight))
        # The end that is not the node itself; of a self-loop both are.
        far = numbering.extend(np.where(leaves, ends[1, edge], ends[0, edge]))
        channels, away = torch.from_numpy(attr(edge)), torch.from_numpy(leaves).unsqueeze(1)
        hops.append(
            Hop(
                len(nodes),
                len(numbering.nodes),
                torch.from_numpy(near),
                torch.from_numpy(far),
                channels.masked_fill(away, 0),
                channels.masked_fill(~away, 0),
                torch.from_numpy(weight).to(channels.dtype),
            )
        )
    return hops
