"""Edge attributes to non-negative channels: direction, categories, signs, scales, self-loops.

A function here takes and gives ``edge_attr`` as ``[edges, channels]``; those that add edges
take and give ``edge_index`` too. Nothing is changed in place, and gradients pass through.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.graphs.graph import check_channels, check_edges


def directed_channels(edge_index: Tensor, edge_attr: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""Encode direction: ``P`` channels become ``3 P`` (section 3.5 of the paper).

    .. math::
        E_{ijp} \;\to\; \big[\, E_{ijp}, \; E_{jip}, \; E_{ijp} + E_{jip} \,\big]

    The forward channels come first, then the backward ones, then the sums. Every edge also
    gets its reverse, so the result is a symmetric pattern with asymmetric values.

    Example:
        >>> edge_index, edge_attr = directed_channels(torch.tensor([[0], [1]]))
        >>> edge_index.tolist(), edge_attr.tolist()
        ([[0, 1], [1, 0]], [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    """
    edge_index, forward, backward = _both_ways(edge_index, edge_attr)
    return edge_index, torch.cat([forward, backward, forward + backward], dim=1)


def parallel_channels(edge_index: Tensor, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
    """Encode direction where edges may be parallel: each edge is kept, and gets its own reverse.

    The edges come first, then their reverses in the same order; channels as those of
    :func:`directed_channels`: forward, backward, and their sum.

    Example:
        >>> edge_index, edge_attr = parallel_channels(torch.tensor([[0], [1]]), torch.ones(1, 1))
        >>> edge_index.tolist(), edge_attr.tolist()
        ([[0, 1], [1, 0]], [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    """
    empty = torch.zeros_like(edge_attr)
    forward = torch.cat([edge_attr, empty, edge_attr], dim=1)
    backward = torch.cat([empty, edge_attr, edge_attr], dim=1)
    return torch.cat([edge_index, edge_index.flip(0)], dim=1), torch.cat([forward, backward])


def merged_channels(edge_index: Tensor, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
    """Parallel edges as one, which has the sums of their channels.

    Example:
        >>> merged_channels(torch.tensor([[0, 0], [1, 1]]), torch.ones(2, 1))
        (tensor([[0],
                [1]]), tensor([[2.]]))
    """
    num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 1
    source, target = edge_index.long()
    pairs, place = torch.unique(source * num_nodes + target, return_inverse=True)
    summed = edge_attr.new_zeros(len(pairs), edge_attr.size(1)).index_add(0, place, edge_attr)
    return torch.stack([pairs // num_nodes, pairs % num_nodes]).to(edge_index.dtype), summed


def undirected_channels(
    edge_index: Tensor, edge_attr: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Forget direction: the sum over both ways alone, ``P`` channels stay ``P``.

    A pair that is joined both ways weighs the sum; cap it with ``edge_attr.clamp(max=1)``
    for a binary graph.
    """
    return joined_channels(edge_index, edge_attr, torch.add)


def joined_channels(
    edge_index: Tensor,
    edge_attr: Tensor | None,
    join: Callable[[Tensor, Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """Forget direction: the two directions between two nodes become one value, by ``join``."""
    edge_index, forward, backward = _both_ways(edge_index, edge_attr)
    return edge_index, join(forward, backward)


def is_symmetric(edge_index: Tensor, edge_attr: Tensor | None = None) -> bool:
    """Whether every edge has a reverse edge with the same values, so that none has a direction."""
    _, forward, backward = _both_ways(edge_index, edge_attr)
    return torch.equal(forward, backward)


def one_hot_channels(
    category: Sequence[Any] | Tensor, categories: Sequence[Any] | None = None
) -> tuple[Tensor, tuple[Any, ...]]:
    """One channel per category of a column of edge labels.

    Args:
        category: The label of each edge.
        categories: The order of the channels; without it, the sorted labels. A label outside
            ``categories`` is refused.

    Returns:
        ``edge_attr`` of ``[edges, categories]``, and the categories, to read new edges alike.

    Example:
        >>> one_hot_channels(["pays", "owns"])
        (tensor([[0., 1.],
                [1., 0.]]), ('owns', 'pays'))
    """
    labels = category.tolist() if isinstance(category, Tensor) else list(category)
    known = tuple(_sorted(labels) if categories is None else categories)
    number = {label: i for i, label in enumerate(known)}
    unknown = sorted({str(label) for label in labels if label not in number})
    if unknown:
        raise EdgewiseError(
            f"edge label(s) {preview(unknown)} are not among the categories {preview(known)}; "
            "add them, or leave those edges out"
        )
    edge_attr = torch.zeros(len(labels), len(known))
    edge_attr[torch.arange(len(labels)), [number[label] for label in labels]] = 1
    return edge_attr, known


def signed_channels(value: Tensor) -> Tensor:
    """Split signed values into two non-negative channels each: positive parts, negative parts.

    Example:
        >>> signed_channels(torch.tensor([[2.0], [-3.0]])).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    value = _columns(value)
    return torch.cat([value.clamp(min=0), (-value).clamp(min=0)], dim=1)


def min_max_channels(
    value: Tensor, low: Tensor | None = None, high: Tensor | None = None, *, floor: float = 0.0
) -> Tensor:
    """Scale each column to ``[floor, 1]``; values outside ``low`` and ``high`` are clamped.

    Zero means "no edge", so with ``floor=0`` the smallest value removes its edges from the
    channel; give a small ``floor`` to keep them. A column of one value becomes all ones.

    Args:
        value: Real values, ``[edges]`` or ``[edges, columns]``.
        low: Smallest value of each column; without it, that of ``value``.
        high: Largest value of each column; give both again to read new edges alike.
        floor: What the smallest value becomes.
    """
    value = _columns(value)
    if len(value) == 0:
        return value
    low = value.amin(0) if low is None else low
    high = value.amax(0) if high is None else high
    span = high - low
    scaled = ((value - low) / span.masked_fill(span == 0, 1)).clamp(0, 1)
    scaled = torch.where(span == 0, torch.ones_like(scaled), scaled)
    return floor + (1 - floor) * scaled


def quantile_channels(value: Tensor, *, floor: float = 0.0) -> Tensor:
    """Replace each value by its rank in its column, scaled to ``[floor, 1]``; ties share a rank.

    Use it where a few large values would squeeze all others together. The ranks carry no
    gradient.
    """
    value = _columns(value)
    ranks = torch.empty_like(value)
    for column in range(value.size(1)):
        _, place = torch.unique(value[:, column], sorted=True, return_inverse=True)
        ranks[:, column] = place.to(value.dtype)
    return min_max_channels(ranks, floor=floor)


def add_self_loops(
    edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int, *, fill: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Join every node to itself with weight ``fill`` in every channel that does not yet do so.

    A self-loop that is there keeps its weight, so adding twice changes nothing. Without
    loops a directed channel has empty rows, which no normalisation can divide by their sum.

    Example:
        >>> edge_index, edge_attr = add_self_loops(torch.tensor([[0], [1]]), None, 2)
        >>> edge_index.tolist(), edge_attr.tolist()
        ([[0, 0, 1], [1, 0, 1]], [[1.0], [1.0], [1.0]])
    """
    if not fill > 0:
        raise EdgewiseError(f"a self-loop of weight {fill} is none; give a positive fill")
    edge_attr = _checked(edge_index, edge_attr, num_nodes)
    is_loop = edge_index[0] == edge_index[1]
    loops = torch.arange(num_nodes, device=edge_index.device, dtype=edge_index.dtype)
    weight = edge_attr.new_zeros(num_nodes, edge_attr.size(1))
    weight = weight.index_copy(0, edge_index[0, is_loop].long(), edge_attr[is_loop])
    weight = torch.where(weight > 0, weight, torch.full_like(weight, fill))
    return (
        torch.cat([edge_index[:, ~is_loop], loops.expand(2, -1)], dim=1),
        torch.cat([edge_attr[~is_loop], weight]),
    )


def _both_ways(edge_index: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The union of edges and reversed edges, with each pair's value this way and the other."""
    num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
    edge_attr = _checked(edge_index, edge_attr, num_nodes)
    source, target = edge_index.long()
    key = torch.cat([source * num_nodes + target, target * num_nodes + source])
    union, place = torch.unique(key, return_inverse=True)
    here, there = place[: len(source)], place[len(source) :]
    empty = edge_attr.new_zeros(len(union), edge_attr.size(1))
    pairs = torch.stack([union // max(num_nodes, 1), union % max(num_nodes, 1)])
    return (
        pairs.to(edge_index.dtype),
        empty.index_copy(0, here, edge_attr),
        empty.index_copy(0, there, edge_attr),
    )


def _sorted(labels: list[Any]) -> list[Any]:
    """Labels of several types do not compare, so types come first."""
    return sorted(set(labels), key=lambda label: (type(label).__name__, label))


def _checked(edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int) -> Tensor:
    check_edges(edge_index, num_nodes)
    if edge_attr is None:
        edge_attr = torch.ones(edge_index.size(1), 1, device=edge_index.device)
    check_channels(edge_attr, edge_index)
    return edge_attr


def _columns(value: Tensor) -> Tensor:
    if value.dim() not in (1, 2) or not value.is_floating_point():
        raise EdgewiseError(
            f"edge values of shape {list(value.shape)} and type {value.dtype} cannot be scaled; "
            "give real numbers as [edges] or [edges, columns]"
        )
    return value.unsqueeze(1) if value.dim() == 1 else value
