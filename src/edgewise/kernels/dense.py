r"""Products of dense matrices, for linear layers.

torch multiplies by Intel's MKL, which leaves half of the width of AVX-512 unused on processors of
other makers. There these products, compiled for the processor, take half the time. Elsewhere they
are torch's, as they are of matrices that do not fill registers.

Every number is a sum in one order, whatever the number of threads or of rows.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from llvmlite import binding
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.kernels import backend
from edgewise.kernels.backend import FAST_MATH, jit
from edgewise.kernels.tiles import COLUMNS, multiply_tile

_TILE, _SHORT, _SINGLE = (0,) * 12, (0,) * 4, (0,)  # the heights of tiles
_DEPTH = 256  # steps after which a tile moves on: what it reads then stays in the cache
_FEW = 128  # rows up to which putting the weights in order takes longer than is gained
_BYTES = 4  # of a number


def linear(
    x: Float[Tensor, "... features"],
    weight: Float[Tensor, "width features"],
    bias: Float[Tensor, " width"] | None = None,
) -> Float[Tensor, "... width"]:
    """``x @ weight.T + bias``."""
    if not _suits(x, weight):
        return torch.nn.functional.linear(x, weight, bias)
    found: Tensor = Linear.apply(x, weight, bias)
    return found


@cache
def _better() -> bool:
    """Whether the processor has AVX-512, and MKL does not use it."""
    found = binding.get_host_cpu_features()
    return found.get("avx512f", False) and binding.get_host_cpu_name().startswith("znver")


def _suits(x: Tensor, weight: Tensor) -> bool:
    if x.dim() != 2 or len(x) < _FEW or weight.size(0) % COLUMNS or not _better():
        return False
    single = x.dtype == weight.dtype == torch.float32
    return single and backend.compiled(x, weight) and not torch.is_autocast_enabled("cpu")


class Linear(torch.autograd.Function):
    """A linear layer by these products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x, weight = x.detach().contiguous(), weight.detach().contiguous()
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return plain_linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), grad = ctx.saved_tensors, grads[0].contiguous()
        on_x, on_weight, _ = ctx.needs_input_grad
        return (
            of_input(grad, weight) if on_x else None,
            of_weight(grad, x) if on_weight else None,
            grad.sum(0) if ctx.has_bias else None,
        )


def plain_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A linear layer, by the faster way; no gradients are kept."""
    x, weight = x.detach(), weight.detach()
    if _suits(x, weight):
        return mapped(x, weight, bias)
    return torch.nn.functional.linear(x, weight, None if bias is None else bias.detach())


def of_input(grad: Tensor, weight: Tensor) -> Tensor:
    """The gradient on the input of a linear layer, by the faster way."""
    weight = weight.detach()
    return product(grad, weight) if _suits(grad, weight.t()) else grad @ weight


def of_weight(grad: Tensor, x: Tensor) -> Tensor:
    """The gradient on the weight of a linear layer, by the faster way."""
    return turned_product(grad, x) if _suits(grad, x.t()) else grad.t() @ x


def mapped(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``x @ weight.T + bias``, for a width that fills registers."""
    out, ordered = x.new_empty(len(x), len(weight)), torch.empty_like(weight)
    first = out.new_zeros(len(weight)) if bias is None else bias.detach().contiguous()
    with backend.running:
        _map(x.numpy(), weight.numpy(), ordered.numpy(), first.numpy(), out.numpy())
    return out


def product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right``, whose columns fill registers."""
    out = left.new_empty(len(left), right.size(1))
    with backend.running:
        _multiply(left.numpy(), right.numpy(), out.numpy())
    return out


def turned_product(left: Tensor, right: Tensor) -> Tensor:
    """``left.T @ right``, whose columns fill registers."""
    out = left.new_empty(left.size(1), right.size(1))
    with backend.running:
        _multiply_turned(left.numpy(), right.numpy(), out.numpy())
    return out


@jit(parallel=True, fastmath=FAST_MATH)
def _map(x, weight, ordered, first, out):  # type: ignore[no-untyped-def]
    """``ordered`` is room for the weights, COLUMNS of the result beside each other."""
    rows, (width, depth) = len(x), weight.shape
    panels, apart = ordered.reshape(width // COLUMNS, depth, COLUMNS), depth * COLUMNS
    for panel in range(len(panels)):
        for begin in range(0, depth, 16):
            for column in range(COLUMNS):
                for p in range(begin, min(begin + 16, depth)):
                    panels[panel, p, column] = weight[panel * COLUMNS + column, p]
    height = 10 * len(_TILE)
    for block in prange((rows + height - 1) // height):
        begin, end = block * height, min((block + 1) * height, rows)
        _multiply_rows(begin, end, x, depth, 1, panels, apart, COLUMNS, first, out, depth)


@jit(parallel=True, fastmath=FAST_MATH)
def _multiply(left, right, out):  # type: ignore[no-untyped-def]
    first = np.zeros(right.shape[1], out.dtype)
    rows, (depth, width), height = len(left), right.shape, 10 * len(_TILE)
    for block in prange((rows + height - 1) // height):
        begin, end = block * height, min((block + 1) * height, rows)
        _multiply_rows(begin, end, left, depth, 1, right, COLUMNS, width, first, out, depth)


@jit(parallel=True, fastmath=FAST_MATH)
def _multiply_turned(left, right, out):  # type: ignore[no-untyped-def]
    first = np.zeros(right.shape[1], out.dtype)
    (depth, rows), width, height = left.shape, right.shape[1], 4 * len(_TILE)
    for block in prange((rows + height - 1) // height):
        begin, end = block * height, min((block + 1) * height, rows)
        _multiply_rows(begin, end, left, 1, rows, right, COLUMNS, width, first, out, depth)


@jit(fastmath=FAST_MATH)
def _multiply_rows(  # type: ignore[no-untyped-def]
    begin, end, left, left_row, left_step, right, apart, right_step, first, out, depth
):
    """Some rows of the result. From one panel of columns of ``right`` to the next lie ``apart``."""
    width = out.shape[1]
    for p in range(0, depth, _DEPTH):
        steps = min(_DEPTH, depth - p)
        for panel in range(width // COLUMNS):
            column = panel * COLUMNS
            below = right.ctypes.data + _BYTES * (panel * apart + p * right_step)
            row = begin
            while row < end:
                beside = left.ctypes.data + _BYTES * (row * left_row + p * left_step)
                place = out.ctypes.data + _BYTES * (row * width + column)
                origin, origin_row = place, width
                if p == 0:
                    origin, origin_row = first.ctypes.data + _BYTES * column, 0
                # The last rows by lower tiles: every number is the same sum in each.
                if row + len(_TILE) <= end:
                    multiply_tile(_TILE, beside, left_row, left_step, below, right_step,
                                  origin, origin_row, place, width, steps)  # fmt: skip
                    row += len(_TILE)
                elif row + len(_SHORT) <= end:
                    multiply_tile(_SHORT, beside, left_row, left_step, below, right_step,
                                  origin, origin_row, place, width, steps)  # fmt: skip
                    row += len(_SHORT)
                else:
                    multiply_tile(_SINGLE, beside, left_row, left_step, below, right_step,
                                  origin, origin_row, place, width, steps)  # fmt: skip
                    row += 1
