r"""Batch normalisation of rows that count several times, with what stands around it in a block.

.. math::
    y_r = b_{p(r)} + \mathrm{relu}(a \odot x_r + s)

in one pass, where mean and variance of the columns give :math:`a` and :math:`s`, and the sum over
rows takes each as often as it counts.
"""

from typing import Any, NamedTuple

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
from edgewise.kernels.gated_walks import NONE, ONE, blocks_of, first_of
from edgewise.kernels.lanes import load, multiply, multiply_add, store, where_positive, zeros

# Rows that are summed before their sum is added, so that rounding stays low.
_CHUNK = np.uint64(256)
MEAN, INVERSE, SCALE, SHIFT = (np.uint64(row) for row in range(4))  # of the lines of coefficients


class _Rows(NamedTuple):
    """What stands around the rows of a norm, besides what gradients go to."""

    counts: Tensor  # [rows], how often each counts
    moments: Tensor  # [2, width], mean and variance
    total: float  # how many rows the moments were taken over, in all processes; 0: they are given
    parent: Any  # [rows], the row of what came before
    children: Groups | None  # the rows of each parent
    relu: bool
    team: Team
    eps: float


def _own_moments(x: Tensor, count: Tensor) -> tuple[float, Tensor]:
    """How much the rows count in all, and mean and (biased) variance of the columns."""
    if not len(x):
        return 0.0, x.new_zeros(2, x.size(1))
    x, found = x.detach().contiguous(), x.new_empty(2, x.size(1))
    with backend.running:
        total = moments_of(x.numpy(), count.numpy(), found.numpy(), lanes_of(x))
    return total, found


def pooled_moments(rows: float, moments: Tensor, team: Team) -> tuple[float, Tensor]:
    """The number of rows of all processes, and their mean and variance, ``[2, width]``."""
    if team.alone:
        return rows, moments
    every = team.stacked(torch.cat([moments.flatten(), moments.new_tensor([rows])]))
    if backend.compiled(every):
        pooled = torch.empty_like(moments)
        return _pooled(every.numpy(), pooled.numpy()), pooled
    counts, (means, variances) = every[:, -1:], every[:, :-1].chunk(2, dim=1)
    total = counts.sum()
    some = total.clamp(min=1)  # none of them need have a row
    mean = (counts * means).sum(0) / some
    # Around the common mean, so that nothing large is subtracted.
    squares = counts * (variances + (means - mean).square())
    return float(total), torch.stack([mean, squares.sum(0) / some])


class NormAndAdd(torch.autograd.Function):
    """Normalise by moments, activate and add what came before.

    Where the moments were taken over the rows, the gradient goes through them.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, before: Tensor | None, rows: _Rows
    ) -> Tensor:
        x = x.detach().contiguous()
        out, lines = torch.empty_like(x), x.new_empty(4, x.size(1))
        added = (x if before is None else before.detach().contiguous()).numpy()
        with backend.running:
            coefficients(rows.moments.numpy(), weight.detach().numpy(), bias.detach().numpy(),
                          rows.eps, lines.numpy())  # fmt: skip
            scale_and_add(x.numpy(), lines.numpy(), added, rows.parent, before is not None,
                           rows.relu, out.numpy(), lanes_of(x))  # fmt: skip
        ctx.save_for_backward(x, lines)
        ctx.rows = rows
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x, lines), rows, grad = ctx.saved_tensors, ctx.rows, grads[0].contiguous()
        sums, grad_x, lanes = x.new_empty(2, x.size(1)), torch.empty_like(x), lanes_of(x)
        arrays = grad.numpy(), x.numpy(), lines.numpy()
        with backend.running:
            gradient_sums(*arrays, rows.relu, sums.numpy(), lanes)
        # In the form of edgewise.nn.batch_norm, which another process may compute by.
        every = rows.team.summed(sums) if rows.total else sums
        with backend.running:
            gradient(*arrays, rows.counts.numpy(), every.numpy(), rows.total, rows.relu,
                      grad_x.numpy(), lanes)  # fmt: skip
        before = None
        if ctx.needs_input_grad[3]:
            before = grad if rows.children is None else summed_rows(rows.children, grad)
        return grad_x, sums[0], sums[1], before, None


def norm_and_add(
    x: Tensor, count: Tensor, norm: torch.nn.BatchNorm1d, *, relu: bool, before: Tensor | None,
    parent: Any, children: Groups | None, training: bool, team: Team,
) -> Tensor:  # fmt: skip
    """``before[parent] + relu(norm(x))``, or without one or the other."""
    total, moments = 0.0, None
    if training:
        total, moments = pooled_moments(*_own_moments(x, count), team)
    if moments is None or total < 2:
        total, moments = 0.0, running_moments(norm)
    else:
        learnt(norm, moments, total)
    rows = _Rows(count, moments, total, parent, children, relu, team, norm.eps)
    out: Tensor = NormAndAdd.apply(x, norm.weight, norm.bias, before, rows)
    return out


def running_moments(norm: torch.nn.BatchNorm1d) -> Tensor:
    """Mean and variance as learnt so far."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return torch.stack([norm.running_mean, norm.running_var])


def learnt(norm: torch.nn.BatchNorm1d, moments: Tensor, total: float) -> None:
    """Let what the norm remembers follow the moments of so many rows."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    _learn(moments.numpy(), total, norm.momentum or 0.0, norm.running_mean.numpy(),
           norm.running_var.numpy())  # fmt: skip


@jit(parallel=True, fastmath=FAST_MATH)
def moments_of(x, count, found, lanes):  # type: ignore[no-untyped-def]
    width, rows = np.uint64(x.shape[1]), np.uint64(x.shape[0])
    total = np.float64(0)
    for r in range(NONE, rows):
        total += count[r]
    for number in prange(np.int64(blocks_of(width, lanes))):
        f = first_of(np.uint64(number), width, lanes)
        zero = zeros(x, lanes)
        every = zero
        for begin in range(NONE, rows, _CHUNK):
            some = zero
            for r in range(begin, min(begin + _CHUNK, rows)):
                some = multiply_add(some, count[r], load(zero, x, r, f))
            every = multiply_add(every, 1 / total, some)
        store(every, found, NONE, f)
        squares = zero
        for begin in range(NONE, rows, _CHUNK):
            some = zero
            for r in range(begin, min(begin + _CHUNK, rows)):
                apart = multiply_add(load(zero, x, r, f), -1, every)
                some = multiply_add(some, multiply(count[r], apart), apart)
            squares = multiply_add(squares, 1 / total, some)
        store(squares, found, ONE, f)
    return total


@jit()
def _pooled(every, pooled):  # type: ignore[no-untyped-def]
    """As in :func:`pooled_moments`, in one call; ``every`` are mean, variance and rows of each."""
    width, total = pooled.shape[1], np.float64(0)
    for process in range(len(every)):
        total += every[process, -1]
    some = max(total, 1)  # none of them need have a row
    for f in range(width):
        mean = squares = np.float64(0)
        for process in range(len(every)):
            mean += every[process, -1] / some * every[process, f]
        for process in range(len(every)):
            apart = every[process, f] - mean
            squares += every[process, -1] / some * (every[process, width + f] + apart * apart)
        pooled[0, f], pooled[1, f] = mean, squares
    return total


@jit()
def _learn(moments, total, momentum, running_mean, running_variance):  # type: ignore[no-untyped-def]
    """Let the running statistics follow; torch takes seven calls for it."""
    for f in range(len(running_mean)):
        running_mean[f] += momentum * (moments[0, f] - running_mean[f])
        unbiased = moments[1, f] * (total / (total - 1))
        running_variance[f] += momentum * (unbiased - running_variance[f])


@jit()
def coefficients(moments, weight, bias, eps, lines):  # type: ignore[no-untyped-def]
    """Mean, one over the standard deviation, scale and shift of every column."""
    for f in range(len(weight)):
        inverse = 1 / np.sqrt(moments[1, f] + eps)
        lines[MEAN, f], lines[INVERSE, f] = moments[0, f], inverse
        lines[SCALE, f] = weight[f] * inverse
        lines[SHIFT, f] = bias[f] - moments[0, f] * lines[SCALE, f]


@jit(parallel=True, fastmath=FAST_MATH)
def scale_and_add(x, lines, before, parent, adds, relu, out, lanes):  # type: ignore[no-untyped-def]
    width = np.uint64(x.shape[1])
    for row in prange(len(x)):
        r = np.uint64(row)
        zero = zeros(x, lanes)
        for block in range(NONE, blocks_of(width, lanes)):
            f = first_of(block, width, lanes)
            y = multiply_add(
                load(zero, lines, SHIFT, f), load(zero, lines, SCALE, f), load(zero, x, r, f)
            )
            if relu:
                y = where_positive(y, y)
            if adds:
                y = multiply_add(y, 1, load(zero, before, np.uint64(parent[r]), f))
            store(y, out, r, f)


@jit(parallel=True, fastmath=FAST_MATH)
def gradient_sums(grad, x, lines, relu, sums, lanes):  # type: ignore[no-untyped-def]
    """The gradients on weight and bias: sums over rows, behind the activation."""
    width, rows = np.uint64(x.shape[1]), np.uint64(x.shape[0])
    for number in prange(np.int64(blocks_of(width, lanes))):
        f = first_of(np.uint64(number), width, lanes)
        zero = zeros(x, lanes)
        factor, offset, center = (
            load(zero, lines, SCALE, f),
            load(zero, lines, SHIFT, f),
            load(zero, lines, MEAN, f),
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
        store(multiply(load(zero, lines, INVERSE, f), products), sums, NONE, f)
        store(every, sums, ONE, f)


@jit(parallel=True, fastmath=FAST_MATH)
def gradient(grad, x, lines, count, sums, total, relu, out, lanes):  # type: ignore[no-untyped-def]
    """The gradient on the rows; through the moments too, which were taken over ``total`` rows."""
    width = np.uint64(x.shape[1])
    through = np.zeros((2, x.shape[1]), x.dtype)
    for f in range(x.shape[1] if total > 0 else 0):
        share = lines[SCALE, f] / total
        slope = share * lines[INVERSE, f] * sums[0, f]
        through[0, f], through[1, f] = lines[MEAN, f] * slope - share * sums[1, f], -slope
    for row in prange(len(x)):
        r = np.uint64(row)
        zero = zeros(x, lanes)
        for block in range(NONE, blocks_of(width, lanes)):
            f = first_of(block, width, lanes)
            value, factor, given = (
                load(zero, x, r, f),
                load(zero, lines, SCALE, f),
                load(zero, grad, r, f),
            )
            if relu:
                y = multiply_add(load(zero, lines, SHIFT, f), factor, value)
                given = where_positive(y, given)
            moved = multiply_add(load(zero, through, NONE, f), load(zero, through, ONE, f), value)
            store(multiply_add(multiply(factor, given), count[r], moved), out, r, f)
