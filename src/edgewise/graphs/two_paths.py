"""What the paths of two edges between the ends of a pair say: how many there are, and their means.

A layer passes what a node knows on to its neighbours, so the states of two nodes do not tell which
neighbours they share, nor what the edges to these say. In signed networks that decides much: who is
trusted by those whom I trust.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.graphs.blocks import MOST_COMMON, stretches
from edgewise.graphs.incident import means
from edgewise.kernels.common_neighbors import (
    NeighborLists,
    common_neighbors,
    count_common_neighbors,
)

GroupSums = Callable[[Int[np.ndarray, " groups"]], Tensor]


def path_width(sums: int, *, directed: bool) -> int:
    """The width of what paths say, from that of sums: four kinds of paths in three parts each, or
    one in two.
    """
    return (4 * 3 if directed else 2) * sums


def path_means(
    lists: NeighborLists,
    pairs: Int[np.ndarray, "2 pairs"],
    group_sums: GroupSums,
    channels: int,
    *,
    directed: bool,
) -> Float[Tensor, "pairs width"]:
    """For pairs of nodes, ``log(1 + n)`` of the paths by a third node, and the means along them.

    A neighbour counts once, with the means of the edges to it. With direction there are four kinds
    of paths, for each of the two edges may go either way. Of each kind these are told: the products
    of the two edges, column by column, the first edges, and the second; without direction products
    and edges. No path goes along an edge between the two nodes themselves.

    Args:
        lists: The neighbours of each node.
        pairs: Pairs of nodes.
        group_sums: Gives the sums (:meth:`edgewise.graphs.incident.Messages.sums`) of groups of
            edges.
        channels: How many of the sums are those of channels.
        directed: Whether edges have a direction.
    """
    counts = count_common_neighbors(lists, pairs)
    parts = []
    for some in list(stretches(counts, len(counts), MOST_COMMON)) or [slice(0, 0)]:
        found = common_neighbors(lists, pairs[:, some], counts[some])
        size = len(counts[some])
        row = torch.from_numpy(np.repeat(np.arange(size), counts[some]))
        first = [lists.leaving[found.first], lists.entering[found.first]]
        second = [lists.entering[found.second], lists.leaving[found.second]]
        kinds = 1 + directed
        groups, place = np.unique(
            np.concatenate([*first[:kinds], *second[:kinds]]), return_inverse=True
        )
        edges = _mean_edges(group_sums(groups), channels)
        ends = torch.from_numpy(place).tensor_split(2 * kinds)
        told = [
            means(edges.new_zeros(size, value.size(1)).index_add(0, row, value), channels)
            for a in ends[:kinds]
            for b in ends[kinds:]
            for value in _along(edges[a], edges[b], directed)
        ]
        parts.append(torch.cat(told, dim=1))
    return torch.cat(parts)


def _mean_edges(sums: Tensor, channels: int) -> Tensor:
    """One edge in place of each group: whether there is one, and its means; labels alike."""
    parts = []
    for some in (sums[:, : 1 + channels], sums[:, 1 + channels :]):
        if some.size(1):
            count = some[:, :1]
            parts += [(count > 0).to(sums.dtype), some[:, 1:] / count.clamp(min=1)]
    return torch.cat(parts, dim=1)


def _along(first: Tensor, second: Tensor, directed: bool) -> tuple[Tensor, ...]:
    """What paths add to the sums of their pair."""
    whole = first[:, :1] * second[:, :1]  # whether both edges are there
    ends = first * whole, second * whole
    return first * second, *(ends if directed else (ends[0] + ends[1],))
