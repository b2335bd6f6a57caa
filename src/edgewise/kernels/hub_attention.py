"""One doubly stochastic attention step over edges ``E = B B^T``, without adapted edges.

With ``M = f . E`` entry by entry, ``r`` its row sums, ``P = diag(1/r) M`` and ``c`` the column
sums of ``P``, the result is ``P diag(1/c) P^T H`` for every channel. Dropout falls on the
links of the targets in ``B``, with its own mask in each of the two products, each keeping
with probability ``sqrt(1 - p)``, so that the expectation of the coefficients stays.
"""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.attention import entry_scores
from edgewise.kernels.dropout import kept_factors
from edgewise.kernels.hubs import (
    Array,
    arrange,
    column_masks,
    padded,
    pull,
    push,
    source_gradients,
    target_gradients,
)
from edgewise.kernels.outer import plain_outer_values
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.products import plain_product

# How far scores may lie apart before the factors of f, down to e^-spread, need float64, and
# before they would leave it.
WIDEST_SINGLE, WIDEST_DOUBLE = 40.0, 600.0


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
    materialize: bool = False,
) -> Float[Tensor, "nodes channels width"]:
    """``P diag(1/c) P^T h`` by walks along the hubs, or over the formed ``E`` if asked to.

    Scores too far apart for the walks' factors are left to the formed ``E`` as well.
    """
    masks = None
    if dropout > 0:
        step = 1 - sqrt(1 - dropout)
        masks = kept_factors(key, 2 * factor.num_entries, step, value).reshape(2, -1)
    spread = _spread(target, source)
    if materialize or not backend.compiled(value, target, source, h) or spread > WIDEST_DOUBLE:
        if spread <= WIDEST_SINGLE:
            return plain_hub_attention(factor, value, target, source, h, slope, masks)
        masks = None if masks is None else masks.double()
        return plain_hub_attention(
            factor, value.double(), target.double(), source.double(), h.double(), slope, masks
        ).to(value.dtype)
    return _HubAttention.apply(factor, value, target, source, h, slope, masks)


def plain_hub_attention(
    factor: Pattern,
    value: Float[Tensor, " links"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    h: Float[Tensor, "nodes heads width"],
    slope: float,
    masks: Float[Tensor, "2 links"] | None,
) -> Float[Tensor, "nodes channels width"]:
    """The same with ``E`` formed, in torch: the reference, and the path off the CPU."""
    both = factor.outer
    rows = both.num_nodes * both.channels
    score = entry_scores(both, target, source, slope)
    highest = score.new_full((rows,), -torch.inf).scatter_reduce(
        0, both.row, score.detach(), "amax"
    )
    f = torch.exp(score - highest[both.row])
    weight = f * plain_outer_values(factor, value, value, both)
    row_sum = weight.new_zeros(rows).index_add(0, both.row, weight)[both.row]
    column_sum = weight.new_zeros(rows).index_add(0, both.stacked_column, weight / row_sum)
    first, second = weight, weight
    if masks is not None:
        # Masks stand in the order of the hub lists, as the walks use them.
        inverse = factor.transpose.inverse.long()
        first, second = (
            f * plain_outer_values(factor, value * mask[inverse], value, both) for mask in masks
        )
    pooled = plain_product(both, second / row_sum, h, transposed=True)
    column_sum = column_sum.masked_fill(column_sum == 0, 1)
    pooled = pooled / column_sum.reshape(both.num_nodes, both.channels, 1)
    return plain_product(both, first / row_sum, pooled)


def _spread(target: Tensor, source: Tensor) -> float:
    """The largest exponent, either way, among the factors of ``f``."""
    if not len(source):
        return 0.0
    low, high = source.detach().aminmax()
    return float(torch.maximum(high - low, target.detach().max() + high))


class _HubAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, factor: Pattern, value: Tensor, target: Tensor, source: Tensor, h: Tensor,
        slope: float, masks: Tensor | None,
    ) -> Tensor:  # fmt: skip
        # Near the end of float32's exponents the factors of f need those of float64.
        dtype = torch.float64 if _spread(target, source) > WIDEST_SINGLE else value.dtype
        s, t = (score.detach().to(dtype).contiguous().numpy() for score in (target, source))
        hubs = arrange(factor, value.detach().to(dtype).contiguous().numpy(), s, t, slope)
        mask = None if masks is None else masks.to(dtype).numpy()

        one = np.ones((factor.channels, factor.num_nodes, 1), hubs.link.dtype)
        row_sum = pull(hubs, padded(one))[..., 0]
        row_sum[row_sum == 0] = 1
        hubs = replace(hubs, target=hubs.target / row_sum[..., None])

        width = h.size(2)
        h_channels = _by_channel(h.detach().to(dtype), factor.channels)
        both = push(hubs, padded(h_channels, one), column_masks(mask, 0, width, 1))
        pooled, column_sum = both[..., :width], both[..., width : width + 1]
        column_sum[column_sum == 0] = 1
        pooled = pooled / column_sum
        out = pull(hubs, padded(pooled), column_masks(mask, width, 0, 0))[..., :width]

        ctx.factor, ctx.hubs, ctx.mask, ctx.slope = factor, hubs, mask, slope
        ctx.held = h_channels, pooled, column_sum, out
        ctx.heads, ctx.groups, ctx.dtype = target.size(1), h.size(1), value.dtype
        # Always a copy: whoever changes the result in place must not change what is held.
        return torch.from_numpy(np.array(out.swapaxes(0, 1), order="C")).to(value.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hubs, mask, slope = ctx.hubs, ctx.mask, ctx.slope
        h, pooled, column_sum, out = ctx.held
        width = h.shape[2]
        grad = grads[0].numpy().swapaxes(0, 1).astype(hubs.link.dtype)

        grad_pooled = push(hubs, padded(grad), column_masks(mask, width, 0, 0))[..., :width]
        grad_pooled /= column_sum
        grad_column = -(grad_pooled * pooled).sum(2, keepdims=True)
        gathered = pull(hubs, padded(grad_pooled, grad_column), column_masks(mask, 0, width, 1))
        grad_h, gathered_column = gathered[..., :width], gathered[..., width : width + 1]
        # Rows are divided by their sums, so what a row would gain in total is taken off.
        gain = (grad * out).sum(2, keepdims=True) + (grad_h * h).sum(2, keepdims=True)
        gain += gathered_column

        one = np.ones_like(gain)
        held = padded(pooled, grad_pooled, grad_column, one)
        asked = padded(grad, h, one, -gain)
        masks = column_masks(mask, width, width, 2)
        grad_link = np.zeros_like(hubs.link)
        target_score = target_gradients(hubs, held, asked, slope, grad_link, masks)
        source_score = source_gradients(hubs, held, asked, slope, grad_link, masks)
        return (
            None,
            backend.take(torch.from_numpy(grad_link), ctx.factor.transpose.inverse).to(ctx.dtype),
            _by_group(target_score[..., None], ctx.heads, ctx.dtype)[..., 0],
            _by_group(source_score[..., None], ctx.heads, ctx.dtype)[..., 0],
            _by_group(grad_h, ctx.groups, ctx.dtype),
            None,
            None,
        )


def _by_channel(h: Tensor, channels: int) -> Array:
    return h.repeat_interleave(channels // h.size(1), dim=1).transpose(0, 1).contiguous().numpy()


def _by_group(by_channel: Array, groups: int, dtype: torch.dtype) -> Tensor:
    channels, nodes, width = by_channel.shape
    summed = by_channel.reshape(groups, channels // groups, nodes, width).sum(1)
    return torch.from_numpy(np.ascontiguousarray(summed.swapaxes(0, 1))).to(dtype)
