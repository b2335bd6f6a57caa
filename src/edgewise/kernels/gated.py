"""Messages through gated edges: gather, gate, sum and normalise, with the gradients of all.

Every edge has ``channels`` gates between 0 and 1, the sigmoid of its state. Messages may be wider:
column ``f`` goes through gate ``f % channels``.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from edgewise.kernels import backend
from edgewise.kernels.gated_pieces import GatedSum, edge_sum, gates, given, weighted_sum
from edgewise.kernels.incidence import Incidence


def gated_sum(
    incidence: Incidence,
    nodes: Float[Tensor, "nodes parts"],
    term: Float[Tensor, "edges channels"] | None,
    channels: int,
    normalize: str,
    *,
    keep_state: bool,
) -> tuple[Float[Tensor, "nodes width"], Float[Tensor, "edges channels"] | None]:
    """The own term of every node plus its normalised sum of gated messages, and the edge states.

    Args:
        incidence: The ends of the edges.
        nodes: Four parts side by side: a node's share of the gates of edges that enter it, and of
            edges that leave it (``channels`` columns each), its message, and its own term.
        term: The edges' share of their gates.
        channels: The number of gates of an edge.
        normalize: One of :data:`NORMALIZATIONS`.
        keep_state: Whether to return the states, which are the arguments of the gates.
    """
    if normalize in ("none", "row") and backend.compiled(nodes, *given(term)):
        out, state = GatedSum.apply(
            incidence, nodes, term, channels, normalize == "row", keep_state
        )
        return out, state if keep_state else None
    width = nodes.size(1) // 2 - channels
    target, source, message, own = nodes.split([channels, channels, width, width], dim=1)
    gate, state = gates(incidence, target, source, term)
    out = own + _SUMS[normalize](incidence, gate, message)
    return out, state if keep_state else None


def sampled_sum(
    incidence: Incidence, gate: Float[Tensor, "edges channels"], message: Tensor, normalize: str
) -> Float[Tensor, "nodes width"]:
    """The normalised sum of messages through gates that are there already, of sampled edges."""
    return _SUMS[normalize](incidence, gate, message)


def _row(incidence: Incidence, gate: Tensor, message: Tensor) -> Tensor:
    """Divided by the sum of the gates of all edges that enter a node."""
    total = edge_sum(incidence, gate)
    return _by_gate(weighted_sum(incidence, gate, message), 1 / _positive(total))


def _symmetric(incidence: Incidence, gate: Tensor, message: Tensor) -> Tensor:
    """Divided by the roots of what enters the target and what leaves the source."""
    entering = _positive(edge_sum(incidence, gate)).rsqrt()
    leaving = _positive(edge_sum(incidence, gate, by="source")).rsqrt()
    return _by_gate(weighted_sum(incidence, gate, _by_gate(message, leaving)), entering)


def _doubly_stochastic(incidence: Incidence, gate: Tensor, message: Tensor) -> Tensor:
    """``B B^T`` times the messages, applied as two products; every node has a self-loop of 1."""
    scale = 1 / (1 + edge_sum(incidence, gate))
    column_sum = scale + weighted_sum(incidence, gate, scale, by="source")
    scaled = _by_gate(message, scale)
    pooled = scaled + weighted_sum(incidence, gate, scaled, by="source")
    pooled = _by_gate(pooled, 1 / column_sum)
    return _by_gate(pooled + weighted_sum(incidence, gate, pooled), scale)


_SUMS: dict[str, Callable[[Incidence, Tensor, Tensor], Tensor]] = {
    "none": weighted_sum,
    "row": _row,
    "symmetric": _symmetric,
    "doubly_stochastic": _doubly_stochastic,
}
NORMALIZATIONS = tuple(_SUMS)


def _by_gate(x: Tensor, factor: Tensor) -> Tensor:
    """Each group of columns times one factor a channel."""
    groups = x.size(1) // factor.size(1)
    return (x.unflatten(1, (groups, factor.size(1))) * factor.unsqueeze(1)).flatten(1)


def _positive(total: Tensor) -> Tensor:
    return torch.where(total > 0, total, torch.ones_like(total))  # a node without edges: 0 / 1
