"""One doubly stochastic attention step over edges ``E = B B^T``, without adapted edges.

With ``M = f . E`` entry by entry, ``r`` its row sums, ``P = diag(1/r) M`` and ``c`` the column
sums of ``P``, the result is ``P diag(1/c) P^T H`` for every channel.

Dropout falls on the links of the targets in ``B``, with its own mask in each of the two products:
``M`` is ``f . ((m B) B^T)`` there, with masks ``m`` that each keep with probability
``sqrt(1 - p)``, so that the expectation of the coefficients stays; ``r`` and ``c`` are those
without dropout. One key gives the same masks, and so the same result up to rounding, whether ``E``
is formed or not.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend, hubs
from edgewise.kernels.dropout import kept_by_two, kept_scale, two_masks
from edgewise.kernels.dropped_outer import dropped_outer_values
from edgewise.kernels.hub_by_hub import HubByHub
from edgewise.kernels.hub_sorting import FEW_MEMBERS
from edgewise.kernels.hubs import NodeColumns, column_masks
from edgewise.kernels.outer import plain_outer_values
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.products import plain_product, product
from edgewise.kernels.scores import entry_scores, factor_dtype, highest, sums
from edgewise.kernels.softmax import softmax_coefficients

# Hubs are walked through one by one where they have few members on the average, or where the
# running sums of all of them, over 16 columns, would take more bytes. Time of an epoch, measured by
# turns, on two threads: with 3.6 members a hub 0.7 of that node by node at 5,000 nodes and 0.5 at
# 50,000; with more than 20 (adapted edges of Cora and PubMed) 1.4 times.
CACHE_BYTES = 2**22


def hub_attention(
    factor: Pattern,
    value: Float[Tensor, " links"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    h: Float[Tensor, "nodes heads width"],
    *,
    slope: float,
    dropout: float = 0.0,
    key: int = 0,
    formed: tuple[Pattern, Float[Tensor, " entries"]] | None = None,
    by_hub: Callable[[], Float[Tensor, " links"] | None] = lambda: None,
    materialize: bool = False,
) -> Float[Tensor, "nodes channels width"]:
    """``P diag(1/c) P^T h`` by walks along the columns of ``B``.

    Scores and slopes whose ``f`` cannot be taken apart into factors are computed in plain torch.

    Args:
        factor: The pattern of ``B``.
        value: Its values.
        target: The scores ``s`` of the targets.
        source: The scores ``t`` of the sources.
        h: The features to be aggregated, one group per head.
        slope: Slope of LeakyReLU below zero.
        dropout: The probability ``p`` of dropping a coefficient.
        key: Key of the masks (:func:`~edgewise.kernels.dropout.draw_key`).
        formed: Pattern and values of ``E``, to compute along them in place of the walks.
        by_hub: Gives the values one hub after the other, if they are at hand.
        materialize: Form ``E`` in plain torch, as a reference.
    """
    step = 1 - sqrt(1 - dropout)
    kept = kept_by_two(key, factor.num_entries, step, value) if dropout > 0 else None
    given, scale = value.dtype, kept_scale(step)
    dtype = backend.accumulator(value, target, source, h)
    compiled = not materialize and backend.compiled(value.to(dtype))
    if compiled:
        factors_of = factor_dtype(value, target, source, slope)
        compiled, dtype = factors_of is not None, factors_of or torch.float64
    value, target, source, h = (tensor.to(dtype) for tensor in (value, target, source, h))
    if not compiled:
        masks = None if kept is None else two_masks(kept, scale, dtype)
        if formed is None:
            formed = factor.outer, plain_outer_values(factor, value, value, factor.outer)
        outer, edge = formed[0], formed[1].to(dtype)
        out = plain_hub_attention(factor, value, outer, edge, target, source, h, slope, masks)
    elif formed is None:
        given_to_all = factor, value, target, source, h, slope, kept, scale
        if hub_by_hub_is_quicker(factor, value):
            out = HubByHub.apply(*given_to_all, by_hub())
        else:
            out = _HubAttention.apply(*given_to_all)
    else:
        outer, edge = formed[0], formed[1].to(dtype)
        coefficient = softmax_coefficients(outer, edge, target, source, slope)
        first, second = edge, edge
        if kept is not None:
            first, second = dropped_outer_values(factor, value, kept, scale, outer)
        column_sum = product(outer, coefficient * edge, h.new_ones(len(h), 1, 1), transposed=True)
        pooled = product(outer, coefficient * second, h, transposed=True)
        pooled = pooled / column_sum.masked_fill(column_sum == 0, 1)
        out = product(outer, coefficient * first, pooled)
    return out.to(given)


def hub_by_hub_is_quicker(factor: Pattern, value: Float[Tensor, " links"]) -> bool:
    """Which of two walks to take; both have the same result, up to rounding."""
    few = factor.num_entries <= int(FEW_MEMBERS) * factor.num_nodes * factor.channels
    return few or 16 * factor.num_nodes * value.element_size() > CACHE_BYTES


def plain_hub_attention(
    factor: Pattern,
    value: Float[Tensor, " links"],
    outer: Pattern,
    edge: Float[Tensor, " entries"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    h: Float[Tensor, "nodes heads width"],
    slope: float,
    masks: Float[Tensor, "2 links"] | None,
) -> Float[Tensor, "nodes channels width"]:
    """The same with ``E`` formed, in torch: the reference, and the path off the CPU."""
    channels = outer.channels
    score = entry_scores(outer, target, source, slope)
    by_target, by_source = edge, edge
    if masks is not None:
        by_target, by_source = (
            plain_outer_values(factor, value * mask, value, outer) for mask in masks
        )
    # P and P diag(1/c), as softmax is computed: the highest exponent of each sum is taken out.
    row_top = highest(score, outer.row, outer.num_nodes * channels)
    f = torch.exp(score - row_top)
    row_sum = sums(f * edge, outer.row, outer.num_nodes * channels)
    score = score - row_top - row_sum.log()
    column_top = highest(score, outer.stacked_column, outer.num_nodes * channels)
    g = torch.exp(score - column_top)
    column_sum = sums(g * edge, outer.stacked_column, outer.num_nodes * channels)
    pooled = plain_product(outer, g * by_source / column_sum, h, transposed=True)
    return plain_product(outer, f * by_target / row_sum, pooled)


class _HubAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, factor: Pattern, value: Tensor, target: Tensor, source: Tensor, h: Tensor,
        slope: float, kept: Tensor | None, scale: float,
    ) -> Tensor:  # fmt: skip
        dropped = None if kept is None else kept.numpy()
        ready = hubs.prepare_hubs(factor, value, target, source, slope)
        masks = partial(column_masks, dropped, scale)

        one = value.new_ones(factor.channels, factor.num_nodes, 1)
        row_sum = ready.product(one)
        ready = replace(ready, row_scale=row_sum.masked_fill_(row_sum == 0, 1).reciprocal_())

        width = h.size(2)
        h_channels = _by_channel(h, factor.channels)
        sums_and_h = ready.transposed_product(h_channels, one, masks=masks(0, width, 1))
        pooled, column_sum = sums_and_h[..., :width], sums_and_h[..., width:]
        column_sum = column_sum.masked_fill(column_sum == 0, 1)
        pooled = pooled / column_sum
        out = ready.product(pooled, masks=masks(width, 0, 0))

        ctx.save_for_backward(value)  # torch refuses backward if it was changed in place
        ctx.hubs, ctx.masks, ctx.slope = ready, masks, slope
        ctx.forward_arrays = h_channels, pooled, column_sum, out
        ctx.heads, ctx.groups = target.size(1), h.size(1)
        # Always a copy: the result may be changed in place, and backward needs it.
        return out.transpose(0, 1).clone(memory_format=torch.contiguous_format)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors
        ready, masks, slope = ctx.hubs, ctx.masks, ctx.slope
        h, pooled, column_sum, out = ctx.forward_arrays
        width = h.size(2)
        grad = grads[0].transpose(0, 1).contiguous()

        grad_pooled = ready.transposed_product(grad, masks=masks(width, 0, 0))
        grad_pooled = grad_pooled / column_sum
        grad_column = -(grad_pooled * pooled).sum(2, keepdim=True)
        gathered = ready.product(grad_pooled, grad_column, masks=masks(0, width, 1))
        grad_h, gathered_column = gathered[..., :width], gathered[..., width:]
        # Rows are divided by their sums: the gradient along a row itself is taken off.
        row_gain = (grad * out).sum(2, keepdim=True) + (grad_h * h).sum(2, keepdim=True)
        row_gain += gathered_column

        one = torch.ones_like(row_gain)
        of_sources, of_targets = (pooled, grad_pooled, grad_column, one), (grad, h, one, -row_gain)
        link, target_score, source_score = ready.gradients(
            of_sources, of_targets, slope, masks(width, width, 2), of_links=ctx.needs_input_grad[1]
        )
        return (
            None,
            link,
            _by_group(target_score, ctx.heads)[..., 0],
            _by_group(source_score, ctx.heads)[..., 0],
            _by_group(grad_h, ctx.groups),
            None,
            None,
            None,
        )


def _by_channel(h: Tensor, channels: int) -> NodeColumns:
    return h.repeat_interleave(channels // h.size(1), dim=1).transpose(0, 1).contiguous()


def _by_group(by_channel: NodeColumns, groups: int) -> Tensor:
    channels, nodes, width = by_channel.shape
    summed = by_channel.reshape(groups, channels // groups, nodes, width).sum(1)
    return summed.transpose(0, 1).contiguous()
