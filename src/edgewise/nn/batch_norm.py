"""Batch normalisation, by the statistics of all rows of a batch also where processes share it."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from edgewise.core.team import ALONE, Team


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that takes a single row, too: by what it learnt so far.

    Of a team of processes, each with a part of the rows, all normalise by the mean and variance of
    all rows, and gradients go through both: the processes compute what one would.
    """

    team: Team = ALONE

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        if not self.team.alone:
            return self.together(x)
        return self._as_learnt(x) if len(x) < 2 else super().forward(x)

    def _as_learnt(self, x: Tensor) -> Tensor:
        return batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )

    def together(self, x: Tensor, times: Tensor | None = None) -> Tensor:
        """Normalise by the rows of all processes.

        Args:
            x: The rows of this one.
            times: How often each of them occurs; once, if nothing is said.
        """
        weight = None if times is None else times.to(x.dtype).unsqueeze(1)
        count, mean, variance = _statistics(x.detach(), weight, self.team)
        if count < 2:
            return self._as_learnt(x)
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * (count / (count - 1)), self.momentum)
        statistics = (mean, variance, count, weight)
        found: Tensor = _Normalized.apply(
            x, self.weight, self.bias, *statistics, self.eps, self.team
        )
        return found


def _statistics(x: Tensor, times: Tensor | None, team: Team) -> tuple[float, Tensor, Tensor]:
    """How many rows all processes have, their mean, and their variance, of each column."""
    width = x.size(1)
    own = x.new_zeros(2 * width + 1)
    if len(x) and times is None:
        variance, mean = torch.var_mean(x, dim=0, correction=0)
        own = torch.cat([mean, variance, x.new_tensor([len(x)])])
    elif len(x) and times is not None:
        rows = times.sum()
        mean = (times * x).sum(0) / rows
        variance = (times * (x - mean).square()).sum(0) / rows
        own = torch.cat([mean, variance, rows.view(1)])
    every = team.stacked(own)
    counts = every[:, -1:]
    total = counts.sum()
    means, variances = every[:, :width], every[:, width:-1]
    mean = (counts * means).sum(0) / total
    # Around the common mean, so that nothing large is subtracted.
    squares = counts * (variances + (means - mean).square())
    return float(total), mean, squares.sum(0) / total


class _Normalized(torch.autograd.Function):
    """Rows less a mean, over the root of a variance, both of the rows of all processes."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        mean: Tensor,
        variance: Tensor,
        count: float,
        times: Tensor | None,
        eps: float,
        team: Team,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, mean, variance)
        ctx.count, ctx.times, ctx.eps, ctx.team = count, times, eps, team
        return batch_norm(x, mean, variance, weight, bias, eps=eps)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        grad = grads[0].contiguous()
        x, weight, mean, variance = ctx.saved_tensors
        inverse = (variance + ctx.eps).rsqrt()
        # As if the statistics were given; what goes through them follows.
        grad_x, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
            grad, x, weight, mean, variance, None, None, False, ctx.eps, [True, True, True]
        )
        of_weight, of_bias = ctx.team.summed(torch.stack([grad_weight, grad_bias])) / ctx.count
        scale = weight * inverse
        slope = -scale * inverse * of_weight
        through = torch.addcmul(-scale * of_bias - slope * mean, x, slope)
        grad_x += through if ctx.times is None else through * ctx.times
        return grad_x, grad_weight, grad_bias, None, None, None, None, None, None
