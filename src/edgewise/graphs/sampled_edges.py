"""Some edges of a large graph: those along which a few nodes are computed, layer by layer."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.graphs.edges import Edges, Preparer
from edgewise.graphs.whole_sums import WholeSums

# The channels of an edge, from its own values and those of its reverse; see edges.DIRECTIONS.
_ENCODED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "directed": lambda there, back: torch.cat([there, back, there + back], dim=1),
    "sum": torch.add,
    "max": torch.maximum,
    # Where each edge is a pair of its own, one of the two is zero.
    "parallel": lambda there, back: torch.cat([there, back, there + back], dim=1),
    "parallel_both_ways": torch.add,
}


@dataclass(frozen=True, eq=False)
class Hop:
    """Nodes and the neighbours that they gather from. Nodes are numbered within a batch.

    Args:
        rows: How many nodes gather: the first ones of the batch.
        columns: How many nodes they gather from: these, and the neighbours that follow them.
        near: The node that gathers, of each pair.
        far: Its neighbour; the node itself for a self-loop of the graph.
        there: Channels of the edge from the neighbour to the node, zero where there is none.
        back: Channels of the edge from the node to the neighbour.
        weight: What the pair counts for, so that sums over all neighbours are estimated without
            bias; 1 where all of them are there.
    """

    rows: int
    columns: int
    near: Int[Tensor, " pairs"]
    far: Int[Tensor, " pairs"]
    there: Float[Tensor, "pairs raw"]
    back: Float[Tensor, "pairs raw"]
    weight: Float[Tensor, " pairs"]

    def encoded(self, direction: str) -> Float[Tensor, "pairs width"]:
        """Channels of the edges to the nodes."""
        return _ENCODED[direction](self.there, self.back)

    def to(self, device: torch.device | str) -> "Hop":
        tensors = ("near", "far", "there", "back", "weight")
        return replace(self, **{name: getattr(self, name).to(device) for name in tensors})


class SampledEdges(Edges):
    """The hops of a batch, from the nodes that are predicted outwards.

    The nodes of a batch are numbered by the hop that they are first reached in, so that what a
    layer computes is wanted for the first nodes alone, fewer from layer to layer.

    Args:
        hops: The first belongs to the last layer.
        nodes: The number of each node of the batch in the whole graph.
        sums: Of the whole graph, for layers that divide by them.
        direction: How direction becomes channels; empty: not said yet.
    """

    def __init__(
        self,
        hops: Sequence[Hop],
        nodes: Int[np.ndarray, " nodes"],
        sums: WholeSums | None = None,
        direction: str = "",
    ) -> None:
        self.hops, self.nodes, self.sums, self.direction = tuple(hops), nodes, sums, direction
        self.num_nodes = len(nodes)
        self._layers: dict[tuple[int, int], SampledLayer] = {}

    @cached_property
    def edge_index(self) -> Int[Tensor, "2 edges"]:
        far, near = (torch.cat([getattr(hop, end) for hop in self.hops]) for end in ("far", "near"))
        return torch.stack([far, near])

    @cached_property
    def edge_attr(self) -> Float[Tensor, "edges width"]:
        return torch.cat([self._attr(hop) for hop in self.hops])

    def _attr(self, hop: Hop) -> Tensor:
        return hop.encoded(self.direction) if self.direction else hop.there

    def encoded(self, direction: str) -> "SampledEdges":
        return SampledEdges(self.hops, self.nodes, self.sums, direction)

    def entering_sums(self) -> Float[Tensor, "nodes width"]:
        assert self.sums is not None
        return self.sums.entering(self.direction, self.nodes).to(self.edge_attr)

    def of_layer(self, number: int, layers: int) -> "SampledLayer":
        key = number, layers
        if key not in self._layers:
            hops = len(self.hops) // layers  # of each
            first = (layers - 1 - number) * hops
            self._layers[key] = SampledLayer(self, first, hops)
        return self._layers[key]

    def to(self, device: torch.device | str) -> "SampledEdges":
        hops = [hop.to(device) for hop in self.hops]
        return SampledEdges(hops, self.nodes, self.sums, self.direction)


class SampledLayer(Edges):
    """The edges of one layer, and those of the layers that follow it.

    Args:
        batch: The edges of all layers.
        first: The first hop of this layer.
        count: How many hops it takes.
        only: Which of the layer's hops this one is, where it is there alone.
    """

    def __init__(
        self, batch: SampledEdges, first: int, count: int, only: int | None = None
    ) -> None:
        self.batch, self.first, self.only = batch, first, only
        self.hops = batch.hops[first : first + count]
        self.direction = batch.direction
        self.num_nodes = self.hops[-1].columns
        self._prepared: dict[Hashable, Any] = {}

    def prepared(self, layer: Preparer) -> Any:
        key = layer.edge_key
        if key not in self._prepared:
            self._prepared[key] = layer.prepare_sampled(self)
        return self._prepared[key]

    def later(self) -> list["SampledLayer"]:
        """The layers that follow, from the next one on."""
        size = len(self.hops)
        return [SampledLayer(self.batch, first, size) for first in
                range(self.first - size, -1, -size)]  # fmt: skip

    def sums_of(
        self, kind: str, count: int, like: Float[Tensor, "..."]
    ) -> Float[Tensor, "count width"]:
        """Sums of the whole graph at the first nodes, one of the methods of :class:`WholeSums`."""
        found: Tensor = getattr(self.batch.sums, kind)(self.direction, self.batch.nodes[:count])
        return found.to(like)
