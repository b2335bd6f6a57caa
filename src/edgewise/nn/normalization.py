"""Raw edge channels to operators: rows, both ends, or rows and columns normalised.

An operator is built from (row, column) = (``edge_index[0]``, ``edge_index[1]``).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.graphs.graph import check_channels, check_edges
from edgewise.kernels.attention import balance_columns
from edgewise.kernels.pattern import Pattern, stack
from edgewise.nn.operators import DoublyStochastic, Operator, SparseOperator


def doubly_stochastic(
    edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int
) -> DoublyStochastic:
    r"""Normalise non-negative edge channels so that rows and columns sum to one.

    .. math::
        \tilde E_{ijp} = \hat E_{ijp} \Big/ \sum_k \hat E_{ikp}, \qquad
        E_{ijp} = \sum_k \tilde E_{ikp} \tilde E_{jkp} \Big/ \sum_v \tilde E_{vkp}

    Section 3.2 of the paper. The result joins nodes that point to the same node.

    Args:
        edge_index: ``[2, edges]``, each edge once.
        edge_attr: ``[edges, channels]``, not negative; None for one channel of ones.
        num_nodes: Number of nodes.

    Raises:
        EdgewiseError: If a node has no outgoing weight in some channel; add self-loops.
    """
    pattern, value = _stacked(edge_index, edge_attr, num_nodes)
    row_sum = _row_sums(pattern, value)
    empty = (row_sum <= 0).reshape(num_nodes, pattern.channels).nonzero()
    if len(empty):
        channel = int(empty[:, 1].min())
        nodes = empty[empty[:, 1] == channel, 0]
        raise EdgewiseError(
            f"channel {channel} gives no outgoing weight to node(s) {preview(nodes.tolist())}, so "
            "their rows cannot sum to 1; add self-loops first (edgewise.add_self_loops)"
        )
    weight = value / row_sum[pattern.row]
    return DoublyStochastic(SparseOperator(pattern, balance_columns(pattern, weight)))


def row(edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int) -> SparseOperator:
    r"""Divide each channel by its row sums, :math:`E_{ij} = \hat E_{ij} / \sum_j \hat E_{ij}`.

    As in GAT (section 3.2 of the paper). A row without edges stays empty: it gathers nothing.
    """
    pattern, value = _stacked(edge_index, edge_attr, num_nodes)
    return SparseOperator(pattern, value * _reciprocal(_row_sums(pattern, value))[pattern.row])


def symmetric(edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int) -> SparseOperator:
    r"""Divide by the roots of row and column sums, as section 3.2 of the paper prints it.

    .. math::
        E_{ij} = \hat E_{ij} \Big/ \sqrt{\textstyle\sum_i \hat E_{ij}}
                                   \sqrt{\textstyle\sum_j \hat E_{ij}}

    On an undirected graph this is the normalisation of GCN; for its form on directed graphs
    see :func:`gcn`. Empty rows and columns stay empty.
    """
    pattern, value = _stacked(edge_index, edge_attr, num_nodes)
    return SparseOperator(pattern, symmetric_values(pattern, value))


def gcn(edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int) -> SparseOperator:
    r"""Divide by the roots of the row sums of both ends, as PyG's ``GCNConv`` does.

    .. math::
        E_{ij} = \hat E_{ij} \big/ \sqrt{d_i d_j}, \qquad d_i = \textstyle\sum_k \hat E_{ik}

    Equal to :func:`symmetric` where rows and columns have the same sums.
    """
    pattern, value = _stacked(edge_index, edge_attr, num_nodes)
    root = _reciprocal(_row_sums(pattern, value)).sqrt()
    return SparseOperator(pattern, value * root[pattern.row] * root[pattern.stacked_column])


NORMALIZATIONS: dict[str, Callable[[Tensor, Tensor | None, int], Operator]] = {
    "doubly_stochastic": doubly_stochastic,
    "symmetric": symmetric,
    "row": row,
    "gcn": gcn,
}


_LARGEST = 80.0  # exponent whose exponential is in range in single precision


def symmetric_values(
    pattern: Pattern,
    value: Float[Tensor, " entries"],
    score: Float[Tensor, " entries"] | None = None,
) -> Float[Tensor, " entries"]:
    """The values of :func:`symmetric` on a pattern, of ``value * exp(score)`` if there are scores.

    The highest ``log(value) + score`` of each row and column is taken out of its sum, and put back
    as a difference that is never positive, so that nothing overflows, and no sum is below 1.
    """
    rows, columns = pattern.row, pattern.stacked_column
    by_row, by_column, both = value, value, value
    if score is not None:
        size = value.detach().log() + score.detach()  # of a zero: minus infinity
        row_top, column_top = _highest(pattern, rows, size), _highest(pattern, columns, size)
        by_row = _times_exp(value, score - row_top)
        by_column = _times_exp(value, score - column_top)
        both = _times_exp(value, score - (row_top + column_top) / 2)
    empty = value.new_zeros(pattern.num_nodes * pattern.channels)
    left = _reciprocal(empty.index_add(0, rows, by_row)).sqrt()
    right = _reciprocal(empty.index_add(0, columns, by_column)).sqrt()
    return both * left[rows] * right[columns]


def _highest(
    pattern: Pattern, place: Int[Tensor, " entries"], score: Float[Tensor, " entries"]
) -> Float[Tensor, " entries"]:
    """The highest score among the entries at the same place; 0 where none is finite."""
    lowest = score.new_full((pattern.num_nodes * pattern.channels,), -torch.inf)
    top = lowest.scatter_reduce(0, place, score.detach(), "amax")[place]
    return top.masked_fill(top == -torch.inf, 0)


def _times_exp(
    value: Float[Tensor, " entries"], exponent: Float[Tensor, " entries"]
) -> Float[Tensor, " entries"]:
    """``value * exp(exponent)``, also where the exponential alone is out of range."""
    stored = value > 0
    product = (torch.where(stored, value, 1.0).log() + exponent).exp()
    # Zeros stay zeros, but their gradient tells how the result would change with them.
    return torch.where(stored, product, value * exponent.clamp(max=_LARGEST).exp())


def _stacked(
    edge_index: Tensor, edge_attr: Tensor | None, num_nodes: int
) -> tuple[Pattern, Float[Tensor, " entries"]]:
    check_edges(edge_index, num_nodes)
    if edge_attr is None:
        edge_attr = torch.ones(edge_index.size(1), 1, device=edge_index.device)
    check_channels(edge_attr, edge_index)
    # A zero is no edge, unless somebody asks how the result would change with it.
    stored = edge_attr != 0
    if edge_attr.requires_grad:
        stored = torch.ones_like(stored)
    edge, channel = stored.nonzero(as_tuple=True)
    source, target = edge_index[:, edge]
    pattern, order = stack(source, target, channel, num_nodes, edge_attr.size(1))
    return pattern, edge_attr[edge, channel][order]


def _row_sums(pattern: Pattern, value: Float[Tensor, " entries"]) -> Float[Tensor, " rows"]:
    empty = value.new_zeros(pattern.num_nodes * pattern.channels)
    return empty.index_add(0, pattern.row, value)


def _reciprocal(total: Float[Tensor, " rows"]) -> Float[Tensor, " rows"]:
    return torch.where(total > 0, total, torch.inf).reciprocal()
