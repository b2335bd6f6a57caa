"""What the edges around a node, or between two nodes, say: how many there are, and their means."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Messages:
    """Edges that carry messages, as rows of all edges, and what is seen of their labels."""

    carries: Bool[Tensor, " edges"]
    channels: Float[Tensor, "edges channels"]
    labels: Float[Tensor, "edges labels"] | None  # zeros where a label is hidden
    visible: Bool[Tensor, " edges"] | None  # where it is not

    def sums(self, group: Int[Tensor, " edges"], groups: int) -> Float[Tensor, "groups sums"]:
        """For each group of edges their number and the sums of their channels; labels alike."""
        return _summed(self._parts(), group, groups)

    def own_sums(self, rows: Int[Tensor, " rows"]) -> Float[Tensor, "rows sums"]:
        """What single edges contribute to the sums of their group."""
        return self._parts()[rows]

    def _parts(self) -> Tensor:
        carries = self.carries.to(self.channels.dtype).unsqueeze(1)
        parts = [carries, self.channels * carries]
        if self.labels is not None and self.visible is not None:
            parts += [self.visible.to(carries.dtype).unsqueeze(1), self.labels]
        return torch.cat(parts, dim=1)


def sums_width(channels: int, labels: int) -> int:
    """The width of the sums, and of the means of them."""
    return 1 + channels + (1 + labels if labels else 0)


def means(sums: Tensor, channels: int) -> Tensor:
    """``log(1 + n)`` in place of each number of edges, and means in place of sums."""
    parts = []
    for some in (sums[:, : 1 + channels], sums[:, 1 + channels :]):
        if some.size(1):
            count = some[:, :1]
            parts += [count.log1p(), some[:, 1:] / count.clamp(min=1)]
    return torch.cat(parts, dim=1)


def pair_groups(
    edge_index: Int[Tensor, "2 edges"], num_nodes: int, *, directed: bool
) -> tuple[Tensor, Tensor, int]:
    """The group of edges that join the same two nodes, and that of the edges the other way.

    Returns:
        The group of each edge, that of its reverse edges, and the number of groups. Without
        direction both ways are one group.
    """
    source, target = edge_index.long()
    if not directed:
        source, target = torch.minimum(source, target), torch.maximum(source, target)
    there, back = source * num_nodes + target, target * num_nodes + source
    keys, place = torch.unique(torch.cat([there, back]), return_inverse=True)
    return place[: len(source)], place[len(source) :], len(keys)


def grouped(
    group: Int[np.ndarray, " edges"], groups: int
) -> tuple[Int[np.ndarray, " groups_and_one"], Int[np.ndarray, " edges"]]:
    """The edges of each group in CSR form: where each group starts, and the edges."""
    order = np.argsort(group, kind="stable")
    return np.searchsorted(group[order], np.arange(groups + 1)), order


def members(
    start: Int[np.ndarray, " groups_and_one"],
    edges: Int[np.ndarray, " edges"],
    asked: Int[np.ndarray, " asked"],
) -> tuple[Int[np.ndarray, " members"], Int[np.ndarray, " members"]]:
    """The edges of some groups, one group after the other, and the place of each one's group."""
    counts = start[asked + 1] - start[asked]
    place = np.repeat(np.arange(len(asked)), counts)
    first = np.repeat(start[asked] - np.cumsum(counts) + counts, counts)
    return place, edges[first + np.arange(len(place))]


def port_numbers(
    edge_index: Int[Tensor, "2 edges"],
    num_nodes: int,
    *,
    directed: bool = True,
    time: Tensor | None = None,
) -> Int[Tensor, " edges"]:
    """How many earlier edges join the same two nodes: 0 for the first of parallel edges.

    Args:
        edge_index: Source and target of each edge.
        num_nodes: Number of nodes.
        directed: Whether edges the other way are others.
        time: When each edge happens; without it, and where it is equal, edges follow one another.

    Example:
        >>> port_numbers(torch.tensor([[0, 1, 0, 0], [1, 0, 1, 1]]), 2)
        tensor([0, 0, 1, 2])
    """
    group, _, groups = pair_groups(edge_index, num_nodes, directed=directed)
    order = torch.arange(len(group)) if time is None else torch.argsort(time, stable=True)
    order = order.to(group.device)
    by_group = order[torch.argsort(group[order], stable=True)]
    count = torch.bincount(group, minlength=groups)
    start = count.cumsum(0) - count
    number = torch.empty_like(group)
    number[by_group] = torch.arange(len(group), device=group.device) - start[group[by_group]]
    return number


def _summed(parts: Tensor, group: Tensor, groups: int) -> Tensor:
    return parts.new_zeros(groups, parts.size(1)).index_add(0, group, parts)
