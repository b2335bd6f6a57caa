"""Dropout whose random numbers are hashes of a key and a position.

Nothing is drawn one by one: the mask of element ``k`` depends on ``(key, k)`` alone, so any
number of threads makes the same bits. Two masks on the same elements are kept as one byte each;
other passes that need a mask again compute it again.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numba import njit, prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend

_WORD = 2**32


def draw_key() -> int:
    """A new key from torch's generator, so that ``torch.manual_seed`` governs all dropout."""
    return int(torch.randint(2**62, (), device="cpu"))  # on the CPU, whatever the model is on


def threshold(p: float) -> int:
    """A hash below this is dropped; the probability is a whole multiple of 2**-32."""
    return min(round(p * _WORD), _WORD - 1)


def kept_scale(p: float) -> float:
    """The factor of what is kept, so that the expectation stays."""
    return 1 / (1 - threshold(p) / _WORD)


def plain_kept(
    key: int, count: int, p: float, device: torch.device | str = "cpu"
) -> Bool[Tensor, " count"]:
    """Which of ``count`` elements survive: the hash in torch, where int64 must play uint32."""
    low, high = (int(word) for word in key_words(key))
    word = torch.arange(count, device=device)
    word = _plain_mix((word ^ low) % _WORD)
    word = _plain_mix((word + high) % _WORD)
    return word >= threshold(p)


def _plain_mix(word: Tensor) -> Tensor:
    word = word ^ (word >> 16)
    word = _plain_multiply(word, 0x21F0AAAD)
    word = word ^ (word >> 15)
    word = _plain_multiply(word, 0x735A2D97)
    return word ^ (word >> 15)


def _plain_multiply(word: Tensor, factor: int) -> Tensor:
    # Two halves: a 32-bit number times 16 bits stays within int64.
    high = (word * (factor >> 16)) % _WORD
    return ((high << 16) + word * (factor & 0xFFFF)) % _WORD


@njit(inline="always")
def mix(word):  # type: ignore[no-untyped-def]
    """A bijection of 32 bits in which every input bit moves every output bit."""
    word = np.uint32(word ^ (word >> np.uint32(16)))
    word = np.uint32(word * np.uint32(0x21F0AAAD))
    word = np.uint32(word ^ (word >> np.uint32(15)))
    word = np.uint32(word * np.uint32(0x735A2D97))
    return np.uint32(word ^ (word >> np.uint32(15)))


@njit(inline="always")
def _kept(low_key, high_key, limit, k):  # type: ignore[no-untyped-def]
    word = mix(np.uint32(np.uint32(k) ^ low_key))
    return mix(np.uint32(word + high_key)) >= limit


@backend.jit(parallel=True)
def _kept_factors(low_key, high_key, limit, scale, out):  # type: ignore[no-untyped-def]
    for k in prange(len(out)):
        out[k] = scale if _kept(low_key, high_key, limit, k) else 0


@backend.jit(parallel=True)
def _drop_twice(value, kept, scale, first, second):  # type: ignore[no-untyped-def]
    scale = value.dtype.type(scale)
    for k in prange(len(value)):
        scaled = scale * value[k]
        first[k] = scaled if kept[k] & 1 else 0
        second[k] = scaled if kept[k] & 2 else 0


@backend.jit(parallel=True)
def _add_kept(first, second, kept, scale, out):  # type: ignore[no-untyped-def]
    scale = out.dtype.type(scale)
    for k in prange(len(out)):
        total = first[k] if kept[k] & 1 else out.dtype.type(0)
        out[k] = scale * (total + second[k] if kept[k] & 2 else total)


@backend.jit(parallel=True)
def _kept_by_two(low_key, high_key, limit, out):  # type: ignore[no-untyped-def]
    count = len(out)
    for k in prange(count):
        second = _kept(low_key, high_key, limit, count + k)
        out[k] = np.uint8(_kept(low_key, high_key, limit, k)) | np.uint8(second) << np.uint8(1)


def kept_factors(
    key: int, count: int, p: float, like: Float[Tensor, "..."]
) -> Float[Tensor, " count"]:
    """One factor an element: 0 with probability ``p``, else what keeps the expectation."""
    if not backend.compiled(like):
        return kept_scale(p) * plain_kept(key, count, p, like.device).to(like.dtype)
    out = like.new_empty(count)
    with backend.running:
        _kept_factors(*key_words(key), np.uint32(threshold(p)), kept_scale(p), out.numpy())
    return out


def kept_by_two(key: int, count: int, p: float, like: Tensor) -> UInt8[Tensor, " count"]:
    """Which of two masks keep each element: 0 for none, 1 the first, 2 the second, 3 both."""
    if not backend.compiled(like):
        first, second = plain_kept(key, 2 * count, p, like.device).reshape(2, count).byte()
        return first + 2 * second
    out = torch.empty(count, dtype=torch.uint8)
    with backend.running:
        _kept_by_two(*key_words(key), np.uint32(threshold(p)), out.numpy())
    return out


def two_masks(
    kept: UInt8[Tensor, " count"], scale: float, dtype: torch.dtype
) -> Float[Tensor, "2 count"]:
    """The masks of :func:`kept_by_two` as factors."""
    return scale * torch.stack([kept & 1, kept >> 1]).to(dtype)


def drop_twice(
    value: Float[Tensor, " count"], p: float, key: int
) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """``value`` under two masks, which drop with probability ``p`` each."""
    kept = kept_by_two(key, len(value), p, value)
    if not backend.compiled(value):
        first, second = two_masks(kept, kept_scale(p), value.dtype)
        return value * first, value * second
    return _DropTwice.apply(value, kept, kept_scale(p))


class _DropTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, kept: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        ctx.kept, ctx.scale = kept.numpy(), scale
        first, second = torch.empty(2, len(value), dtype=value.dtype)
        with backend.running:
            _drop_twice(value.contiguous().numpy(), ctx.kept, scale, first.numpy(), second.numpy())
        return first, second

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        first, second = (grad.contiguous().numpy() for grad in grads)
        out = torch.empty(len(first), dtype=grads[0].dtype)
        with backend.running:
            _add_kept(first, second, ctx.kept, ctx.scale, out.numpy())
        return out, None, None


def key_words(key: int) -> tuple[np.uint32, np.uint32]:
    """The key as two 32-bit words, hashed so that neighbouring keys are unrelated."""
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        key = (key ^ (key >> 31)) * factor % _WORD**2
    key ^= key >> 31
    return np.uint32(key % _WORD), np.uint32(key // _WORD)
