"""Attention before normalisation: ``f_ij = exp LeakyReLU(s_i + t_j)``, as factors and by entry.

``f`` is the larger of ``e^(s + t)`` and ``e^(slope (s + t))``, for any slope up to 1. Both are
products of a target's factor and a source's, so exponentials are taken once per node instead of
once per entry.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import leaky_relu

from edgewise.kernels.pattern import Pattern

# The largest negative exponent of a factor in float32, and in float64.
LARGEST_SINGLE, LARGEST_DOUBLE = 40.0, 600.0


class Factors(NamedTuple):
    """The factors of ``f``, up to a factor of each row, which row normalisation cancels.

    With ``t_max`` the highest source, ``f_ij`` is ``e^(t_j - t_max)`` above the kink and
    ``w_i e^(slope (t_j - t_max))`` below: no exponent is positive.
    """

    target: Float[Tensor, "nodes heads"]  # w
    source: Float[Tensor, "nodes heads 2"]  # below the kink, and above it


def score_factors(
    target: Float[Tensor, "nodes heads"], source: Float[Tensor, "nodes heads"], slope: float
) -> Factors:
    """``f`` as a product of factors; :func:`factor_dtype` says in which precision."""
    # Along rows: torch is slow along columns that do not fill a register.
    top = source.T.contiguous().amax(1) if len(source) else source.new_zeros(source.size(1))
    below = torch.exp((slope - 1) * (target + top).clamp(min=0))
    distance = source - top
    return Factors(below, torch.exp(torch.stack([slope * distance, distance], dim=-1)))


def factor_dtype(value: Tensor, target: Tensor, source: Tensor, slope: float) -> torch.dtype | None:
    """The precision that factors of these scores, times a value, need; None if none is enough.

    None also for slopes outside 0 to 1: above, ``f`` is not the larger of its two kinds; below, an
    exponent would be positive.
    """
    exponent = _largest_exponent(target.detach(), source.detach())
    if not (0 <= slope <= 1 and exponent <= LARGEST_DOUBLE):
        return None
    if exponent > LARGEST_SINGLE:
        return torch.float64
    return torch.promote_types(value.dtype, target.dtype)


def _largest_exponent(target: Tensor, source: Tensor) -> float:
    """The largest exponent, either way, among the factors."""
    if not len(source):
        return 0.0
    low, high = source.aminmax()
    return float(torch.maximum(high - low, target.max() + high))


def entry_scores(
    pattern: Pattern,
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
) -> Float[Tensor, " entries"]:
    """``LeakyReLU(s_i + t_j)`` at every entry.

    Scores come in heads: channel ``q`` of ``Q`` uses head ``q * heads // Q``.
    """
    heads = target.size(1)
    head = pattern.row % pattern.channels * heads // pattern.channels
    score = target[pattern.row // pattern.channels, head] + source[pattern.column.long(), head]
    return leaky_relu(score, slope)


def highest(
    score: Float[Tensor, " entries"], place: Int[Tensor, " entries"], places: int
) -> Float[Tensor, " entries"]:
    """The highest score among the entries at the same place; a constant to autograd."""
    score = score.detach()
    return score.new_full((places,), -torch.inf).scatter_reduce(0, place, score, "amax")[place]


def sums(
    weight: Float[Tensor, " entries"], place: Int[Tensor, " entries"], places: int
) -> Float[Tensor, " entries"]:
    """The sum of the weights at the same place; 1 where it is 0, to be divided by."""
    total = weight.new_zeros(places).index_add(0, place, weight)
    return total.masked_fill(total == 0, 1)[place]
