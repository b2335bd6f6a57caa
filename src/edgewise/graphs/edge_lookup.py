"""Where the edges of each node stand, and those between each two nodes: plain arrays, or mapped."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Shaped

from edgewise.graphs.incident import members
from edgewise.kernels.incident_sampling import IncidentLists


@dataclass(frozen=True, eq=False)
class EdgeLookup:
    """Lists of edges that may be parallel, in which those of a node or of a pair are found.

    A group of edges are those from one node to another, in their order; without direction, those
    between two nodes.

    Args:
        incident: The edges of each node, by time.
        pair_key: What the two nodes of each group are found by, ascending.
        pair_start: Where each group starts in ``pair_edge``; behind all stands one without edges.
        pair_edge: The edges, by groups.
        directed: Whether edges the other way are others.
    """

    incident: IncidentLists
    pair_key: Int[np.ndarray, " groups"]
    pair_start: Int[np.ndarray, " groups_and_two"]
    pair_edge: Int[np.ndarray, " edges"]
    directed: bool = True

    @classmethod
    def of(
        cls,
        edge_index: Int[np.ndarray, "2 edges"],
        time: Shaped[np.ndarray, " edges"],
        num_nodes: int,
        *,
        directed: bool,
    ) -> "EdgeLookup":
        """Lists of edges that are in memory."""
        source, target = edge_index
        keys = pair_keys(source, target, num_nodes, directed=directed)
        order = np.argsort(keys, kind="stable")
        key, start = np.unique(keys[order], return_index=True)
        lists = IncidentLists.of(edge_index, time, num_nodes)
        return cls(lists, key, np.append(start, [len(order)] * 2), order, directed)

    @property
    def num_nodes(self) -> int:
        return len(self.incident.out_start) - 1

    def groups(
        self, source: Int[np.ndarray, " pairs"], target: Int[np.ndarray, " pairs"]
    ) -> Int[np.ndarray, " pairs"]:
        """The group of the edges of each pair; the last one where there are none."""
        asked = pair_keys(source, target, self.num_nodes, directed=self.directed)
        group, last = np.searchsorted(self.pair_key, asked), len(self.pair_key)
        there = np.zeros(len(asked), dtype=np.bool_)
        inside = group < last
        there[inside] = self.pair_key[group[inside]] == asked[inside]
        return np.where(there, group, last)

    def sizes(self, groups: Int[np.ndarray, " groups"]) -> Int[np.ndarray, " groups"]:
        """How many edges each group has."""
        return self.pair_start[groups + 1] - self.pair_start[groups]

    def edges(
        self, groups: Int[np.ndarray, " groups"]
    ) -> tuple[Int[np.ndarray, " members"], Int[np.ndarray, " members"]]:
        """The edges of some groups, one after the other, and the place of each one's group."""
        return members(self.pair_start, self.pair_edge, groups)


def pair_keys(
    source: Int[np.ndarray, " pairs"],
    target: Int[np.ndarray, " pairs"],
    num_nodes: int,
    *,
    directed: bool,
) -> Int[np.ndarray, " pairs"]:
    """One number for two nodes, the same for both ways if they are not told apart."""
    if not directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    return source.astype(np.int64) * num_nodes + target
