"""Bias, ELU and dropout in one pass over a dense array, and dropout alone."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import njit, prange
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import elu

from edgewise.kernels import backend
from edgewise.kernels.dropout import kept_factors, kept_scale, key_words, mix, threshold

# Rows are worked through in this many blocks, each with its own sums for the bias, so that these
# are the same on any number of threads.
BLOCKS = 16


def drop(x: Float[Tensor, "..."], p: float, key: int) -> Float[Tensor, "..."]:
    """Zero each element with probability ``p`` and scale the others up."""
    if p == 0:
        return x
    return x * kept_factors(key, x.numel(), p, x).reshape(x.shape)


def elu_and_drop(
    x: Float[Tensor, "rows width"], bias: Float[Tensor, " width"] | None, p: float, key: int
) -> Float[Tensor, "rows width"]:
    """``drop(elu(x + bias), p, key)``, in one pass."""
    if backend.compiled(x) and x.dtype == torch.float32:
        return _EluAndDrop.apply(x, x.new_zeros(x.size(1)) if bias is None else bias, p, key)
    return drop(elu(x if bias is None else x + bias), p, key)


class _EluAndDrop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, p: float, key: int) -> Tensor:
        x, bias = x.detach().contiguous(), bias.detach().contiguous()
        out = torch.empty_like(x)
        ctx.mask = (*key_words(key), np.uint32(threshold(p)), kept_scale(p))
        with backend.running:
            _elu_and_drop(*ctx.mask, x.numpy(), bias.numpy(), out.numpy())
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (out,) = ctx.saved_tensors
        grad = grads[0].contiguous()
        grad_x, grad_bias = torch.empty_like(grad), grad.new_zeros(BLOCKS, grad.size(1))
        with backend.running:
            _elu_and_drop_backward(*ctx.mask, out.numpy(), grad.numpy(), grad_x.numpy(),
                                   grad_bias.numpy())  # fmt: skip
        return grad_x, grad_bias.sum(0), None, None


@njit(inline="always")
def _exp(x):  # type: ignore[no-untyped-def]
    """e^x for 32-bit ``x <= 0``, by arithmetic that LLVM vectorises, unlike a call.

    ``x = n ln 2 + r`` with ``|r| <= ln(2) / 2``; the polynomial in ``r`` is that of the Cephes
    library, good to the last bit or so, and ``2^n`` is written into the exponent.
    """
    x = max(x, np.float32(-87))
    n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    r = x - n * np.float32(0.693359375) - n * np.float32(-2.12194440e-4)
    y = np.float32(1.9875691500e-4)
    y = y * r + np.float32(1.3981999507e-3)
    y = y * r + np.float32(8.3334519073e-3)
    y = y * r + np.float32(4.1665795894e-2)
    y = y * r + np.float32(1.6666665459e-1)
    y = y * r + np.float32(5.0000001201e-1)
    y = y * r * r + r + np.float32(1)
    return y * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(inline="always")
def _elu(x):  # type: ignore[no-untyped-def]
    below = _exp(min(x, np.float32(0))) - np.float32(1)
    return below if x <= 0 else x  # NaN stays NaN


@backend.jit(parallel=True)
def _elu_and_drop(low_key, high_key, limit, scale, x, bias, out):  # type: ignore[no-untyped-def]
    rows, width = x.shape
    scale = np.float32(scale)
    for i in prange(rows):
        first = np.uint32(i * width)
        if limit == 0:
            for f in range(width):
                out[i, f] = _elu(x[i, f] + bias[f])
        else:
            for f in range(width):
                k = np.uint32(first + np.uint32(f))
                hashed = mix(np.uint32(mix(np.uint32(k ^ low_key)) + high_key))
                value = scale * _elu(x[i, f] + bias[f])
                out[i, f] = value if hashed >= limit else np.float32(0)


@backend.jit(parallel=True)
def _elu_and_drop_backward(  # type: ignore[no-untyped-def]
    low_key, high_key, limit, scale, out, grad, grad_x, grad_bias
):
    rows, width = out.shape
    scale = np.float32(scale)
    for block in prange(BLOCKS):
        for i in range(block * rows // BLOCKS, (block + 1) * rows // BLOCKS):
            first = np.uint32(i * width)
            for f in range(width):
                k = np.uint32(first + np.uint32(f))
                hashed = mix(np.uint32(mix(np.uint32(k ^ low_key)) + high_key))
                slope = scale if out[i, f] > 0 else out[i, f] + scale  # e^x = elu(x) + 1
                grad_x[i, f] = slope * grad[i, f] if hashed >= limit else np.float32(0)
                grad_bias[block, f] += grad_x[i, f]
