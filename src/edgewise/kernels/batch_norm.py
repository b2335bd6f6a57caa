r"""Batch normalisation of rows that count several times, with what stands around it in a block.

.. math::
    y_r = b_{p(r)} + \mathrm{relu}(a \odot x_r + s)

in one pass, where mean and variance of the columns give :math:`a` and :math:`s`, and the sum over
rows takes each as often as it counts.
"""

from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.core.team import Team
from edgewise.kernels import backend
from edgewise.kernels.backend import FAST_MATH, jit
from edgewise.kernels.colours import Groups
from edgewise.kernels.gated_colours import summed_rows
from edgewise.kernels.gated_pieces import lanes_of
from edgewise.kernels.gated_walks import NONE, blocks_of, first_of
from edgewise.kernels.lanes import load, multiply, multiply_add, store, where_positive, zeros

_CHUNK = np.uint64(
    256
)  # rows that are summed before their sum is added, so that rounding stays low


def moments(x: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and (biased) variance of the columns; zeros where there are no rows."""
    x = x.detach().contiguous()
    if not len(x):
        return x.new_zeros(x.size(1)), x.new_zeros(x.size(1))
    mean, spread = x.new_empty(1, x.size(1)), x.new_empty(1, x.size(1))
    with backend.running:
        _moments(x.numpy(), count.numpy(), float(count.sum()), mean.numpy(), spread.numpy(),
                 lanes_of(x))  # fmt: skip
    return mean[0], spread[0]


def pooled_moments(
    rows: float, mean: Tensor, variance: Tensor, team: Team
) -> tuple[float, Tensor, Tensor]:
    """The number of rows of all processes, their mean, and their variance, of each column."""
    if team.alone:
        return rows, mean, variance
    every = team.stacked(torch.cat([mean, variance, mean.new_tensor([rows])]))
    counts, (means, variances) = every[:, -1:], every[:, :-1].chunk(2, dim=1)
    total = counts.sum()
    mean = (counts * means).sum(0) / total
    # Around the common mean, so that nothing large is subtracted.
    squares = counts * (variances + (means - mean).square())
    return float(total), mean, squares.sum(0) / total


class NormAndAdd(torch.autograd.Function):
    """Normalise by moments, activate and add what came before.

    ``rows`` says over how many rows the moments were taken, those of the other processes of a team
    included, so that the gradient goes through them; 0: they are given.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, count: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor,
        bias: Tensor, before: Tensor | None, parent: Any, children: Any, relu: bool, rows: float,
        team: Team,
    ) -> Tensor:  # fmt: skip
        x = x.detach().contiguous()
        scale = weight.detach() * inverse
        shift = bias.detach() - mean * scale
        out = torch.empty_like(x)
        added = (x if before is None else before.detach().contiguous()).numpy()
        with backend.running:
            _scale_and_add(x.numpy(), scale[None].numpy(), shift[None].numpy(), added, parent,
                           before is not None, relu, out.numpy(), lanes_of(x))  # fmt: skip
        ctx.save_for_backward(x, count, mean, inverse, scale, shift)
        ctx.children, ctx.relu, ctx.rows, ctx.team = children, relu, rows, team
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, count, mean, inverse, scale, shift = ctx.saved_tensors
        grad, children = grads[0].contiguous(), ctx.children
        total, product = torch.empty_like(mean), torch.empty_like(mean)
        grad_x, lanes = torch.empty_like(x), lanes_of(x)
        with backend.running:
            _gradient_sums(grad.numpy(), x.numpy(), scale[None].numpy(), shift[None].numpy(),
                           mean[None].numpy(), ctx.relu, total[None].numpy(),
                           product[None].numpy(), lanes)  # fmt: skip
        constant, slope = torch.zeros_like(scale), torch.zeros_like(scale)
        if ctx.rows:
            # In the form of edgewise.nn.batch_norm, which another process may compute by.
            of_weight, of_bias = ctx.team.summed(torch.stack([product * inverse, total]))
            share = scale / ctx.rows
            slope = share * inverse * of_weight
            constant = mean * slope - share * of_bias
        with backend.running:
            _gradient(grad.numpy(), x.numpy(), count.numpy(), scale[None].numpy(),
                      shift[None].numpy(), constant[None].numpy(), slope[None].numpy(), ctx.relu,
                      grad_x.numpy(), lanes)  # fmt: skip
        before = None
        if ctx.needs_input_grad[6]:
            before = grad if children is None else summed_rows(children, grad)
        return (grad_x, None, None, None, product * inverse, total, before, *(None,) * 5)


def norm_and_add(
    x: Tensor, count: Tensor, norm: torch.nn.BatchNorm1d, *, relu: bool, before: Tensor | None,
    parent: Any, children: Groups | None, training: bool, team: Team,
) -> Tensor:  # fmt: skip
    """``before[parent] + relu(norm(x))``, or without one or the other."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    rows, mean, variance = 0.0, norm.running_mean, norm.running_var
    if training:
        rows, *found = pooled_moments(float(count.sum()), *moments(x, count), team)
    if rows >= 2:
        mean, variance = found
        with torch.no_grad():
            norm.num_batches_tracked.add_(1)
            norm.running_mean.lerp_(mean, norm.momentum or 0.0)
            norm.running_var.lerp_(variance * (rows / (rows - 1)), norm.momentum or 0.0)
    else:
        rows, mean = 0.0, mean.clone()
    inverse = (variance + norm.eps).rsqrt()
    out: Tensor = NormAndAdd.apply(
        x, count, mean, inverse, norm.weight, norm.bias, before, parent, children, relu, rows, team
    )
    return out


@jit(parallel=True, fastmath=FAST_MATH)
def _moments(x, count, total, mean, spread, lanes):  # type: ignore[no-untyped-def]
    width, rows = np.uint64(x.shape[1]), np.uint64(x.shape[0])
    for number in prange(np.int64(blocks_of(width, lanes))):
        f = first_of(np.uint64(number), width, lanes)
        zero = zeros(x, lanes)
        every = zero
        for begin in range(NONE, rows, _CHUNK):
            some = zero
            for r in range(begin, min(begin + _CHUNK, rows)):
                some = multiply_add(some, count[r], load(zero, x, r, f))
            every = multiply_add(every, 1 / total, some)
        store(every, mean, NONE, f)
        squares = zero
        for begin in range(NONE, rows, _CHUNK):
            some = zero
            for r in range(begin, min(begin + _CHUNK, rows)):
                apart = multiply_add(load(zero, x, r, f), -1, every)
                some = multiply_add(some, multiply(count[r], apart), apart)
            squares = multiply_add(squares, 1 / total, some)
        store(squares, spread, NONE, f)


@jit(parallel=True, fastmath=FAST_MATH)
def _scale_and_add(x, scale, shift, before, parent, adds, relu, out, lanes):  # type: ignore[no-untyped-def]
    width = np.uint64(x.shape[1])
    for row in prange(len(x)):
        r = np.uint64(row)
        zero = zeros(x, lanes)
        for block in range(NONE, blocks_of(width, lanes)):
            f = first_of(block, width, lanes)
            y = multiply_add(
                load(zero, shift, NONE, f), load(zero, scale, NONE, f), load(zero, x, r, f)
            )
            if relu:
                y = where_positive(y, y)
            if adds:
                y = multiply_add(y, 1, load(zero, before, np.uint64(parent[r]), f))
            store(y, out, r, f)


@jit(parallel=True, fastmath=FAST_MATH)
def _gradient_sums(grad, x, scale, shift, mean, relu, total, product, lanes):  # type: ignore[no-untyped-def]
    """Sums over rows of the gradient behind the activation, and of it times ``x - mean``."""
    width, rows = np.uint64(x.shape[1]), np.uint64(x.shape[0])
    for number in prange(np.int64(blocks_of(width, lanes))):
        f = first_of(np.uint64(number), width, lanes)
        zero = zeros(x, lanes)
        factor, offset, center = (
            load(zero, scale, NONE, f),
            load(zero, shift, NONE, f),
            load(zero, mean, NONE, f),
        )
        every, products = zero, zero
        for begin in range(NONE, rows, _CHUNK):
            some, along = zero, zero
            for r in range(begin, min(begin + _CHUNK, rows)):
                value, slope = load(zero, x, r, f), load(zero, grad, r, f)
                if relu:
                    slope = where_positive(multiply_add(offset, factor, value), slope)
                some = multiply_add(some, 1, slope)
                along = multiply_add(along, slope, multiply_add(value, -1, center))
            every, products = multiply_add(every, 1, some), multiply_add(products, 1, along)
        store(every, total, NONE, f)
        store(products, product, NONE, f)


@jit(parallel=True, fastmath=FAST_MATH)
def _gradient(grad, x, count, scale, shift, constant, slope, relu, out, lanes):  # type: ignore[no-untyped-def]
    width = np.uint64(x.shape[1])
    for row in prange(len(x)):
        r = np.uint64(row)
        zero = zeros(x, lanes)
        for block in range(NONE, blocks_of(width, lanes)):
            f = first_of(block, width, lanes)
            value, factor, given = (
                load(zero, x, r, f),
                load(zero, scale, NONE, f),
                load(zero, grad, r, f),
            )
            if relu:
                y = multiply_add(load(zero, shift, NONE, f), factor, value)
                given = where_positive(y, given)
            through = multiply_add(
                load(zero, constant, NONE, f), multiply(-1, load(zero, slope, NONE, f)), value
            )
            y = multiply(factor, given)
            store(multiply_add(y, count[r], through), out, r, f)
