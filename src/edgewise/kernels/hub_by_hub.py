"""Doubly stochastic attention hub by hub, with its gradients; hub_attention.py says where."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.hubs import scales_by_channel
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.sorted_hubs import Links, Pairs, Side, masked_links, sorted_hubs


class HubByHub(torch.autograd.Function):
    """``P diag(1/c) P^T h``, ``P = diag(1/r) M``.

    Sums over rows and columns, and the gains of nodes, are kept below the kink and above it apart:
    added up they are what divides, weighted by the slopes the gradients of the scores.
    """

    @staticmethod
    def forward(
        ctx: Any, factor: Pattern, value: Tensor, target: Tensor, source: Tensor, h: Tensor,
        slope: float, kept: Tensor | None, scale: float, link: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """``link``, where it is known, is ``value`` one hub after the other."""
        hubs = sorted_hubs(factor, target, source)
        link = backend.take(value, factor.hub_links[1]) if link is None else link.to(value.dtype)
        first, second = masked_links(factor, link, kept, scale)
        scales = scales_by_channel(factor, target, source, slope)
        target_factor, source_factor = (torch.from_numpy(array) for array in scales)
        targets, sources = Side(link, target_factor), Side(link, source_factor)

        row_share = hubs.sums(sources, targets, sources_are_inputs=True, grad_link=None)
        row_share *= target_factor
        row_sum = _divisor(row_share)
        row_share /= row_sum
        target_factor /= row_sum

        column_share = hubs.sums(targets, sources, sources_are_inputs=False, grad_link=None)
        column_share *= source_factor
        column_sum = _divisor(column_share)
        balanced = source_factor / column_sum

        pooled = hubs.product(h, Side(second, target_factor), sources, sources_are_inputs=False)
        gathering = Side(link, balanced), Side(first, target_factor)
        out = hubs.product(pooled, *gathering, sources_are_inputs=True)

        ctx.save_for_backward(value, h)  # torch refuses backward if they were changed in place
        ctx.hubs, ctx.links, ctx.factor, ctx.slope = hubs, (link, first, second), factor, slope
        ctx.factors = target_factor, source_factor, balanced
        ctx.sums = row_share, column_share, column_sum
        ctx.pooled, ctx.heads, ctx.kept, ctx.scale = pooled, target.size(1), kept, scale
        # A view may not be changed.
        return out.clone(memory_format=torch.contiguous_format) if out._is_view() else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hubs, pooled, grad = ctx.hubs, ctx.pooled, grads[0]
        _, h = ctx.saved_tensors
        link, first, second = ctx.links
        target_factor, source_factor, balanced = ctx.factors
        row_share, column_share, column_sum = ctx.sums
        found: tuple[Links | None, ...] = (None,) * 4
        if ctx.needs_input_grad[1]:
            found = tuple(link.new_zeros(4, len(link)))
        of_first, of_second, of_target, of_source = found

        # Of P diag(1/c) pooled, for the entries of P diag(1/c).
        grad_pooled, target_gain, source_gain = hubs.product_and_gains(
            grad, pooled, Side(first, target_factor), Side(link, balanced),
            sources_are_inputs=False, grad_links=_pair(of_first, of_source),
        )  # fmt: skip
        grad_column = _both_kinds(source_gain).neg_() / column_sum
        # Of P^T h, for the entries of P.
        grad_h, gain_of_sources, gain_of_targets = hubs.product_and_gains(
            grad_pooled, h, Side(link, source_factor), Side(second, target_factor),
            sources_are_inputs=True, grad_links=_pair(of_source, of_second),
        )  # fmt: skip
        source_gain += gain_of_sources
        target_gain += gain_of_targets
        # Of the column sums, for the entries of P.
        by_column = Side(link, source_factor * grad_column)
        targets, sources = Side(link, target_factor), Side(link, source_factor)
        target_gain += target_factor * hubs.sums(
            by_column, targets, sources_are_inputs=True, grad_link=of_target
        )
        source_gain += grad_column * column_share
        # Rows are divided by their sums: the gradient along a row itself is taken off.
        row_gain = _both_kinds(target_gain).neg_()
        by_row = Side(link, target_factor * row_gain)
        target_gain += row_gain * row_share
        source_gain += source_factor * hubs.sums(
            by_row, sources, sources_are_inputs=False, grad_link=of_source
        )

        of_links = None
        if of_target is not None:
            hubs.sums(sources, by_row, sources_are_inputs=True, grad_link=of_target)
            hubs.sums(targets, by_column, sources_are_inputs=False, grad_link=of_source)
            of_links = _in_order_of_b(ctx, found)
        kinds = grad.new_tensor([ctx.slope, 1])
        return (
            None,
            of_links,
            _by_head(target_gain @ kinds, ctx.heads),
            _by_head(source_gain @ kinds, ctx.heads),
            grad_h.unflatten(1, (h.size(1), grad_h.size(1) // h.size(1))).sum(2),
            None,
            None,
            None,
            None,
        )


def _divisor(shares: Pairs) -> Tensor:
    """The sum of both kinds; 1 where it is 0."""
    total = _both_kinds(shares)
    return total.masked_fill_(total == 0, 1)


def _both_kinds(shares: Pairs) -> Tensor:
    """Their sum, ``[channels, nodes, 1]``; torch sums rows of two numbers one after the other."""
    return shares[..., :1] + shares[..., 1:]


def _pair(one: Links | None, other: Links | None) -> tuple[Links, Links] | None:
    return None if one is None or other is None else (one, other)


def _in_order_of_b(ctx: Any, found: tuple[Links | None, ...]) -> Links:
    """The gradients of links under either mask and without, put where the links stand in ``B``."""
    place = ctx.factor.hub_links[1].long()
    first, second, target, source = (
        torch.empty_like(grad).index_copy_(0, place, grad) for grad in found if grad is not None
    )
    if ctx.kept is None:
        return target + source + first + second
    return target + source + ctx.scale * (first * (ctx.kept & 1) + second * (ctx.kept >> 1))


def _by_head(by_channel: Tensor, heads: int) -> Tensor:
    return by_channel.unflatten(0, (heads, len(by_channel) // heads)).sum(1).T.contiguous()
