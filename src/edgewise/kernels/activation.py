"""ELU and dropout in one pass over a dense array, and dropout alone."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numba import njit, prange
from torch import Tensor
from torch.nn.functional import elu

from edgewise.kernels import backend
from edgewise.kernels.dropout import kept_factors, kept_scale, key_words, mix, threshold


def drop(x: Float[Tensor, "..."], p: float, key: int) -> Float[Tensor, "..."]:
    """Zero each element with probability ``p`` and scale the others up."""
    if p == 0:
        return x
    return x * kept_factors(key, x.numel(), p, x).reshape(x.shape)


def elu_and_drop(x: Float[Tensor, "..."], p: float, key: int) -> Float[Tensor, "..."]:
    """``drop(elu(x), p, key)``, without storing what lies between."""
    if p > 0 and backend.compiled(x):
        return _EluAndDrop.apply(x, p, key)
    return drop(elu(x), p, key)


class _EluAndDrop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, key: int) -> Tensor:
        out = elu(x.detach().contiguous())
        ctx.mask = (*key_words(key), np.uint32(threshold(p)), kept_scale(p))
        with backend.running:
            _drop_in_place(*ctx.mask, out.numpy().reshape(-1))
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (out,) = ctx.saved_tensors
        grad = grads[0].contiguous()
        grad_x = torch.empty_like(grad)
        with backend.running:
            _elu_and_drop_backward(out.numpy().reshape(-1), *ctx.mask, grad.numpy().reshape(-1),
                                   grad_x.numpy().reshape(-1))  # fmt: skip
        return grad_x, None, None


@njit(parallel=True, cache=True)
def _drop_in_place(low_key, high_key, limit, scale, out):  # type: ignore[no-untyped-def]
    scale = out.dtype.type(scale)
    for k in prange(len(out)):
        word = mix(np.uint32(mix(np.uint32(np.uint32(k) ^ low_key)) + high_key))
        out[k] *= scale if word >= limit else out.dtype.type(0)


@njit(parallel=True, cache=True)
def _elu_and_drop_backward(out, low_key, high_key, limit, scale, grad, grad_x):  # type: ignore[no-untyped-def]
    scale = out.dtype.type(scale)
    for k in prange(len(out)):
        word = mix(np.uint32(mix(np.uint32(np.uint32(k) ^ low_key)) + high_key))
        if word < limit:
            grad_x[k] = 0
        elif out[k] > 0:
            grad_x[k] = scale * grad[k]
        else:
            grad_x[k] = (out[k] + scale) * grad[k]  # e^x = elu(x) + 1
