"""A linear layer that takes the faster of two ways to multiply, with the parameters of torch's."""

from torch import Tensor, nn

from edgewise.kernels.dense import linear


class Linear(nn.Linear):
    """See :func:`edgewise.kernels.dense.linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)
