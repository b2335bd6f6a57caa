"""The coefficients of attention without the edges they weigh: a softmax weighted by the edges."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.attention import PARTS, index_arrays
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.scores import score_factors


def softmax_coefficients(
    pattern: Pattern,
    edge: Float[Tensor, " entries"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
) -> Float[Tensor, " entries"]:
    """``f_ij / r_i`` with ``r`` the row sums of ``f . E``.

    :func:`attention_rows` is ``E`` times this.

    Compiled only, for scores that :func:`factor_dtype` takes.
    """
    return _SoftmaxCoefficients.apply(pattern, edge, target, source, slope)


class _SoftmaxCoefficients(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, pattern: Pattern, edge: Tensor, target: Tensor, source: Tensor, slope: float
    ) -> Tensor:
        below, factor = score_factors(target, source, slope)
        coefficient = torch.empty_like(edge, memory_format=torch.contiguous_format)
        with backend.running:
            _softmax_coefficients(*index_arrays(pattern), edge.contiguous().numpy(),
                                  below.contiguous().numpy(), factor.contiguous().numpy(),
                                  coefficient.numpy(), np.uint64(pattern.channels))  # fmt: skip
        ctx.pattern, ctx.slope = pattern, slope
        ctx.save_for_backward(target, source, edge, coefficient)
        return coefficient

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        pattern, grad = ctx.pattern, grads[0].contiguous()
        target, *saved = (tensor.contiguous().numpy() for tensor in ctx.saved_tensors)
        grad_target = torch.zeros(target.shape, dtype=grad.dtype)
        grad_source = grad.new_zeros(PARTS, *target.shape)
        grad_edge = torch.empty_like(grad) if ctx.needs_input_grad[1] else None
        with backend.running:
            _softmax_coefficients_backward(*index_arrays(pattern), target, *saved, ctx.slope,
                                           grad.numpy(), grad_target.numpy(),
                                           grad_source.numpy(),
                                           None if grad_edge is None else grad_edge.numpy(),
                                           np.uint64(pattern.channels))  # fmt: skip
        return None, grad_edge, grad_target, grad_source.sum(0), None


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _softmax_coefficients(start, column, edge, below, factor, coefficient, channels):  # type: ignore[no-untyped-def]
    heads = np.uint64(below.shape[1])
    for row in prange(len(start) - 1):
        r = np.uint64(row)
        i, head = r // channels, r % channels * heads // channels
        first, last, target_factor = start[r], start[r + np.uint64(1)], below[i, head]
        total = coefficient.dtype.type(0)
        for e in range(first, last):
            j = np.uint64(column[e])
            coefficient[e] = max(target_factor * factor[j, head, 0], factor[j, head, 1])
            total += edge[e] * coefficient[e]
        scale = 1 / total if total > 0 else coefficient.dtype.type(1)
        for e in range(first, last):
            coefficient[e] *= scale


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _softmax_coefficients_backward(  # type: ignore[no-untyped-def]
    start, column, target, source, edge, coefficient, slope, grad, grad_target, grad_source,
    grad_edge, channels,
):  # fmt: skip
    nodes, heads = target.shape
    parts = len(grad_source)
    for part in prange(parts):
        partial = grad_source[part]
        for i in range(np.uint64(part * nodes // parts), np.uint64((part + 1) * nodes // parts)):
            for q in range(channels):
                head, r = q * np.uint64(heads) // channels, i * channels + q
                first, last = start[r], start[r + np.uint64(1)]
                dot = coefficient.dtype.type(0)
                for e in range(first, last):
                    dot += coefficient[e] * grad[e]
                for e in range(first, last):
                    j, grad_score = np.uint64(column[e]), coefficient[e] * (grad[e] - dot * edge[e])
                    if target[i, head] + source[j, head] <= 0:
                        grad_score *= slope
                    partial[j, head] += grad_score
                    grad_target[i, head] += grad_score
                    if grad_edge is not None:
                        grad_edge[e] = -coefficient[e] * dot
