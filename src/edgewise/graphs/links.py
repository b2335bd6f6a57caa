"""The links of a graph: pairs of nodes that an edge joins, of which types, and since when."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs that edges join, as rows to predict: without times a row for each pair.

    With times a pair is a row when its first edge happens, and once more whenever an edge of
    another type is its first: nothing that happens later changes a row, or its place.

    Args:
        pairs: In the order of time, then of their ends.
        truth: In the first column whether an edge joins the pair, in the others whether one of each
            type does: 1, or 0 where there is none up to that time, or NaN where there was one
            before, or where the type of one is unknown.
        time: When each row happens.
        of_edge: The number of the pair that each edge joins; without times, of its row.
    """

    pairs: Int[Tensor, "2 links"]
    truth: Float[Tensor, "links outputs"]
    time: Float[Tensor, " links"] | None
    of_edge: Int[Tensor, " edges"]

    def __len__(self) -> int:
        return self.pairs.size(1)


def find_links(
    edge_index: Int[Tensor, "2 edges"],
    *,
    directed: bool,
    time: Float[Tensor, " edges"] | None = None,
    types: Int[Tensor, " edges"] | None = None,
    num_types: int = 0,
) -> Links:
    """The links of edges; parallel edges are one, and without direction those both ways.

    Args:
        edge_index: Source and target of each edge.
        directed: Whether an edge the other way is another one.
        time: When each edge happens.
        types: The number of the type of each edge, -1 where it is unknown.
        num_types: How many types there are.

    Example:
        >>> find_links(torch.tensor([[0, 0, 1], [1, 1, 0]]), directed=True).pairs
        tensor([[0, 1],
                [1, 0]])
    """
    ends = edge_index if directed else edge_index.sort(dim=0).values
    pairs, pair = torch.unique(ends, dim=1, return_inverse=True)
    when = torch.zeros(len(pair), dtype=torch.float64) if time is None else time.double()
    # When the first edge of each pair happens, and the first of each type.
    first = _earliest(pair, when, pairs.size(1)).unsqueeze(1)
    unknown = torch.full_like(first, torch.inf)
    if types is not None:
        typed = types >= 0
        cell = pair[typed] * num_types + types[typed]
        of_type = _earliest(cell, when[typed], pairs.size(1) * num_types)
        first = torch.cat([first, of_type.view(-1, num_types)], dim=1)
        unknown = _earliest(pair[~typed], when[~typed], pairs.size(1)).unsqueeze(1)
    rows, row_time = _rows(first)
    since, now = first[rows], row_time.unsqueeze(1)
    truth = (since == now).float()
    truth[since < now] = torch.nan
    truth[:, 1:][(truth[:, 1:] == 0) & (unknown[rows] <= now)] = torch.nan
    return Links(pairs[:, rows], truth, None if time is None else row_time, pair)


def _earliest(group: Tensor, when: Tensor, groups: int) -> Tensor:
    empty = torch.full((groups,), torch.inf, dtype=torch.float64)
    return empty.scatter_reduce(0, group, when, "amin")


def _rows(first: Tensor) -> tuple[Tensor, Tensor]:
    """The different moments at which a pair gets its first edge, or its first one of a type."""
    pair, output = first.isfinite().nonzero(as_tuple=True)
    when = first[pair, output]
    order = torch.from_numpy(np.lexsort((pair.numpy(), when.numpy())))
    pair, when = pair[order], when[order]
    new = torch.ones(len(pair), dtype=torch.bool)
    new[1:] = (pair[1:] != pair[:-1]) | (when[1:] != when[:-1])
    return pair[new], when[new]
