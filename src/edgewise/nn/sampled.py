"""Operators of sampled neighbours: normalised by the sums of the whole graph, and unbiased.

Self-loops are always there; the entry of another neighbour is divided by the probability that it
was drawn with, so that the expectation of every entry is that of the whole graph's operator.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from edgewise.graphs.sampled_edges import Hop, SampledLayer
from edgewise.graphs.whole_sums import ENCODINGS
from edgewise.kernels import backend
from edgewise.kernels.pattern import stack
from edgewise.kernels.sampled_pattern import hop_pattern
from edgewise.nn.operators import SampledFactors, SparseOperator

Sums = Callable[[str, int], Float[Tensor, "count width"]]


class Scales(NamedTuple):
    """What the entries of a hop are divided by, at both ends."""

    rows: Float[Tensor, "rows width"]
    columns: Float[Tensor, "columns width"] | None = None
    reverse: bool = False  # whether entries are those of the edges to the neighbours


def _row(hop: Hop, sums: Sums) -> Scales:
    return Scales(_inverse(sums("rows", hop.rows)))


def _symmetric(hop: Hop, sums: Sums) -> Scales:
    rows, columns = sums("rows", hop.rows), sums("columns", hop.columns)
    return Scales(_inverse(rows).sqrt(), _inverse(columns).sqrt())


def _gcn(hop: Hop, sums: Sums) -> Scales:
    root = _inverse(sums("rows", hop.columns)).sqrt()
    return Scales(root[: hop.rows], root)


def _gathered(hop: Hop, sums: Sums) -> Scales:
    """Rows of the factor ``B``: nodes gather from hubs."""
    rows, columns = sums("rows", hop.rows), sums("balances", hop.columns)
    return Scales(_inverse(rows), _inverse(columns).sqrt())


def _pooled(hop: Hop, sums: Sums) -> Scales:
    """Columns of the factor ``B``: hubs gather from nodes."""
    rows, columns = sums("balances", hop.rows), sums("rows", hop.columns)
    return Scales(_inverse(rows).sqrt(), _inverse(columns), reverse=True)


# The hops that a layer takes, from the nodes that it computes outwards.
HOPS: dict[str, tuple[Callable[[Hop, Sums], Scales], ...]] = {
    "row": (_row,),
    "symmetric": (_symmetric,),
    "gcn": (_gcn,),
    "doubly_stochastic": (_gathered, _pooled),
}


def sampled_operator(
    edges: SampledLayer, normalize: str, dtype: torch.dtype
) -> SparseOperator | SampledFactors:
    """What a layer propagates along: the counterpart of :data:`normalization.NORMALIZATIONS`."""
    factors = [sampled_hop(edges, normalize, number, dtype) for number in range(len(edges.hops))]
    return factors[0] if len(factors) == 1 else SampledFactors(*factors)


def sampled_hop(
    edges: SampledLayer, normalize: str, number: int, dtype: torch.dtype, place: int | None = None
) -> SparseOperator:
    """One hop of a normalisation.

    Args:
        edges: Of a layer.
        normalize: The normalisation.
        number: Which of its hops, see :data:`HOPS`.
        dtype: Of the result.
        place: Which of the hops of the edges; without it the one of that number.
    """
    hop = edges.hops[number if place is None else place]

    def sums(kind: str, count: int) -> Tensor:
        return edges.sums_of(kind, count, hop.weight).to(dtype)

    scales = HOPS[normalize][number](hop, sums)
    there, back, weight = (t.to(dtype) for t in (hop.there, hop.back, hop.weight))
    if scales.reverse:
        there, back = back, there
    hop = replace(hop, there=there, back=back, weight=weight)
    if not backend.compiled(there):
        return plain_hop(hop, edges.direction, scales)
    pattern, value = hop_pattern(
        *(hop.near, hop.far, there, back, weight, ENCODINGS[edges.direction]),
        *(scales.rows, scales.columns, hop.columns),
    )
    return SparseOperator(pattern, value, hop.rows)


def plain_hop(hop: Hop, direction: str, scales: Scales) -> SparseOperator:
    """The same in torch: the reference, and the path off the CPU."""
    attr, rows, columns = hop.encoded(direction), scales.rows, scales.columns
    is_loop = hop.near == hop.far
    loop = attr.new_zeros(rows.shape).index_copy(0, hop.near[is_loop], attr[is_loop])
    loop = torch.where(loop > 0, loop, torch.ones_like(loop))
    own = torch.arange(hop.rows, device=attr.device)
    near, far = torch.cat([hop.near[~is_loop], own]), torch.cat([hop.far[~is_loop], own])
    weighted = attr[~is_loop] * hop.weight[~is_loop].unsqueeze(1)
    value = torch.cat([weighted, loop]) * rows[near]
    value = value if columns is None else value * columns[far]
    pair, channel = value.nonzero(as_tuple=True)
    pattern, order = stack(near[pair], far[pair], channel, hop.columns, attr.size(1))
    return SparseOperator(pattern, value[pair, channel][order], hop.rows)


def _inverse(total: Tensor) -> Tensor:
    return torch.where(total > 0, total, torch.inf).reciprocal()
