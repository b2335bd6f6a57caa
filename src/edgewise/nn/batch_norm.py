"""Batch normalisation, by the statistics of all rows of a batch also where processes share it."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from edgewise.core.team import ALONE, Team
from edgewise.kernels.batch_norm import pooled_moments


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

    def together(self, x: Tensor) -> Tensor:
        """Normalise by the rows of all processes, of which these are those of this one."""
        count, (mean, variance) = _statistics(x.detach(), self.team)
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
        found: Tensor = _Normalized.apply(
            x, self.weight, self.bias, mean, variance, count, self.eps, self.team
        )
        return found


def _statistics(x: Tensor, team: Team) -> tuple[float, Tensor]:
    """How many rows all processes have, and mean and variance of each column."""
    moments = x.new_zeros(2, x.size(1))
    if len(x):
        variance, mean = torch.var_mean(x, dim=0, correction=0)
        moments = torch.stack([mean, variance])
    return pooled_moments(float(len(x)), moments, team)


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
        eps: float,
        team: Team,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, mean, variance)
        ctx.count, ctx.eps, ctx.team = count, eps, team
        if not len(x):
            return x.clone()
        return batch_norm(x, mean, variance, weight, bias, eps=eps)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        grad = grads[0].contiguous()
        x, weight, mean, variance = ctx.saved_tensors
        inverse = (variance + ctx.eps).rsqrt()
        # As if the statistics were given; what goes through them follows.
        grad_x, grad_weight, grad_bias = grad, torch.zeros_like(weight), torch.zeros_like(weight)
        if len(x):  # torch divides by their number
            grad_x, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
                grad, x, weight, mean, variance, None, None, False, ctx.eps, [True, True, True]
            )
        of_weight, of_bias = ctx.team.summed(torch.stack([grad_weight, grad_bias])) / ctx.count
        scale = weight * inverse
        slope = -scale * inverse * of_weight
        grad_x = grad_x + torch.addcmul(-scale * of_bias - slope * mean, x, slope)
        return grad_x, grad_weight, grad_bias, None, None, None, None, None
