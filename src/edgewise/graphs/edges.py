"""The edges of a graph as raw channels, with direction encoded, and as layers prepare them."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from edgewise.graphs.channels import (
    directed_channels,
    is_symmetric,
    joined_channels,
    merged_channels,
    parallel_channels,
)

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
