"""Softmax of many rows of few numbers, which torch takes one number at a time.

Where a row fills no register it is slower than all of these steps over the whole matrix. Few rows
are left to torch, so that what is trained on them rounds as it always did.
"""

from jaxtyping import Float
from torch import Tensor

MANY_ROWS, REGISTER = 2**14, 16


def log_softmax(x: Float[Tensor, "rows classes"]) -> Float[Tensor, "rows classes"]:
    """The logarithm of the softmax of each row."""
    if not _stepwise(x):
        return x.log_softmax(1)
    below = x - x.detach().amax(1, keepdim=True)  # first, for large numbers would cancel below
    return below - below.exp().sum(1, keepdim=True).log()


def softmax(x: Float[Tensor, "rows classes"]) -> Float[Tensor, "rows classes"]:
    """The softmax of each row."""
    return log_softmax(x).exp() if _stepwise(x) else x.softmax(1)


def _stepwise(x: Tensor) -> bool:
    return len(x) > MANY_ROWS and x.size(1) < REGISTER
