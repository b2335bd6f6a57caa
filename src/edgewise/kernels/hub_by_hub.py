"""Doubly stochastic attention hub by hub, with its gradients; hub_attention.py says where."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels.hub_gains import gains
from edgewise.kernels.hubs import scales_by_channel
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.sorted_hubs import (
    LinkPair,
    Links,
    Pairs,
    Rows,
    Side,
    links_by_hub,
    sorted_hubs,
)


class HubByHub(torch.autograd.Function):
    """``P diag(1/c) P^T h``, ``P = diag(1/r) M``.

    Sums over rows and columns, and the gains of nodes, are kept below the kink and above it apart:
    added up they are what divides, weighted by the slopes the gradients of the scores.
    """

    @staticmethod
    def forward(
        ctx: Any, factor: Pattern, value: Tensor, target: Tensor, source: Tensor, h: Tensor,
        slope: float, kept: Tensor | None, scale: float,
    ) -> Tensor:  # fmt: skip
        hubs = sorted_hubs(factor, target, source)
        dropped = None if kept is None else kept.numpy()
        link, first, second = links_by_hub(factor, value, dropped, scale)
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

        pooling = Side(second, target_factor), sources
        gathering = Side(link, balanced), Side(first, target_factor)
        learnt = any(ctx.needs_input_grad)
        gathered: tuple[Rows, ...] = ()
        if learnt and not ctx.needs_input_grad[1]:
            pooled, above_pooled = hubs.split_product(h, *pooling, sources_are_inputs=False)
            out, above_out = hubs.split_product(pooled, *gathering, sources_are_inputs=True)
            gathered = above_pooled, out, above_out
        else:
            pooled = hubs.product(h, *pooling, sources_are_inputs=False)
            out = hubs.product(pooled, *gathering, sources_are_inputs=True)
        if not learnt:
            return out.contiguous()

        # Torch refuses backward if value or h were changed in place, and frees all after it.
        ctx.save_for_backward(value, h, pooled, *gathered)
        ctx.hubs, ctx.links, ctx.factor, ctx.slope = hubs, (link, first, second), factor, slope
        ctx.factors = target_factor, source_factor, balanced
        ctx.sums = row_share, column_share, column_sum
        ctx.heads, ctx.kept, ctx.scale = target.size(1), kept, scale
        # A copy: a view may not be changed, and the backward pass needs what was gathered.
        return out.clone(memory_format=torch.contiguous_format)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hubs, grad = ctx.hubs, grads[0]
        _, h, pooled, *gathered = ctx.saved_tensors
        link, _, _ = ctx.links
        target_factor, source_factor, _ = ctx.factors
        row_share, column_share, _ = ctx.sums
        of_target, of_source = None, None
        if ctx.needs_input_grad[1]:
            found = link.new_zeros(4, len(link)).unbind()  # first mask, second, targets, sources
            of_first, of_second, of_target, of_source = found
            pairs = (of_first, of_source), (of_source, of_second)
            gained = _gained_by_links(ctx, grad, h, pooled, *pairs)
        else:
            gained = _gained_by_nodes(ctx, grad, h, pooled, *gathered)
        grad_h, grad_column, target_gain, source_gain = gained
        # Of the column sums, for the entries of P.
        by_column = Side(link, source_factor * grad_column)
        targets, sources = Side(link, target_factor), Side(link, source_factor)
        target_gain += target_factor * hubs.sums(
            by_column, targets, sources_are_inputs=True, grad_link=of_target
        )
        source_gain += grad_column * column_share
        # Rows are divided by their sums: the gradient along a row itself is taken off.
        row_gain = target_gain.sum(2, keepdim=True).neg_()
        by_row = Side(link, target_factor * row_gain)
        target_gain += row_gain * row_share
        source_gain += source_factor * hubs.sums(
            by_row, sources, sources_are_inputs=False, grad_link=of_source
        )

        of_links = None
        if ctx.needs_input_grad[1]:
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
        )


# The gradients of h and of column sums, and what targets and sources gain by the two products.
Gained = tuple[Rows, Tensor, Pairs, Pairs]


def _gained_by_nodes(
    ctx: Any, grad: Rows, h: Rows, pooled: Rows, above_pooled: Rows, out: Rows, above_out: Rows
) -> Gained:
    """A node gains by its own row and what it gathers in a product, whichever way that is walked.

    So what the forward pass has gathered serves for one end of every pair, and what the backward
    pass gathers for the other.
    """
    hubs, (link, first, second) = ctx.hubs, ctx.links
    target_factor, source_factor, balanced = ctx.factors
    # Of P diag(1/c) pooled, for the entries of P diag(1/c).
    target_gain = gains(grad, out, above_out)
    first_product = Side(first, target_factor), Side(link, balanced)
    grad_pooled, source_gain = _with_gains(
        pooled, *hubs.split_product(grad, *first_product, sources_are_inputs=False)
    )
    grad_column = _of_column_sums(ctx, source_gain)
    # Of P^T h, for the entries of P.
    source_gain += gains(grad_pooled, pooled, above_pooled)
    second_product = Side(link, source_factor), Side(second, target_factor)
    grad_h, gain = _with_gains(
        h, *hubs.split_product(grad_pooled, *second_product, sources_are_inputs=True)
    )
    target_gain += gain
    return grad_h, grad_column, target_gain, source_gain


def _with_gains(own: Rows, product: Rows, above: Rows) -> tuple[Rows, Pairs]:
    """A product and what its rows give; the part above the kink is freed."""
    return product, gains(own, product, above)


def _gained_by_links(
    ctx: Any, grad: Rows, h: Rows, pooled: Rows, of_first_pairs: LinkPair, of_second_pairs: LinkPair
) -> Gained:
    """The same, with the gradients of links, which take a dot for each of them."""
    hubs, (link, first, second) = ctx.hubs, ctx.links
    target_factor, source_factor, balanced = ctx.factors
    grad_pooled, target_gain, source_gain = hubs.product_and_gains(
        grad, pooled, Side(first, target_factor), Side(link, balanced),
        sources_are_inputs=False, grad_links=of_first_pairs,
    )  # fmt: skip
    grad_column = _of_column_sums(ctx, source_gain)
    grad_h, gain_of_sources, gain_of_targets = hubs.product_and_gains(
        grad_pooled, h, Side(link, source_factor), Side(second, target_factor),
        sources_are_inputs=True, grad_links=of_second_pairs,
    )  # fmt: skip
    source_gain += gain_of_sources
    target_gain += gain_of_targets
    return grad_h, grad_column, target_gain, source_gain


def _of_column_sums(ctx: Any, source_gain: Pairs) -> Tensor:
    """Their gradient, from what sources gain by the product that is divided by them."""
    _, _, column_sum = ctx.sums
    return source_gain.sum(2, keepdim=True).neg_() / column_sum


def _divisor(shares: Pairs) -> Tensor:
    """The sum of both kinds; 1 where it is 0."""
    total = shares.sum(2, keepdim=True)
    return total.masked_fill_(total == 0, 1)


def _in_order_of_b(ctx: Any, found: tuple[Links, ...]) -> Links:
    """The gradients of links under either mask and without, put where the links stand in ``B``."""
    place = ctx.factor.hub_links[1].long()
    first, second, target, source = (
        torch.empty_like(grad).index_copy_(0, place, grad) for grad in found
    )
    if ctx.kept is None:
        return target + source + first + second
    return target + source + ctx.scale * (first * (ctx.kept & 1) + second * (ctx.kept >> 1))


def _by_head(by_channel: Tensor, heads: int) -> Tensor:
    return by_channel.unflatten(0, (heads, len(by_channel) // heads)).sum(1).T.contiguous()
