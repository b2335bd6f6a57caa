"""Features padded with columns of zeros to the registers that products sum them in."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from edgewise.kernels import backend


def whole_registers(z: Float[Tensor, "... width"]) -> Float[Tensor, "... filled"]:
    """``z`` as a compiled product would pad it: once, if several products follow."""
    return padded_to_registers(z)[1] if backend.compiled(z) else z


def padded_to_registers(*tensors: Tensor) -> tuple[Any, ...]:
    """A tuple as long as a register for the width of the tensors, and the tensors padded to it."""
    width = tensors[0].size(-1)
    if tensors[0].dtype == torch.float64:
        # Fewer lengths, each of which is compiled: double precision is for comparisons.
        size = 4 if width <= 4 else 16
    elif width <= 16:
        size = next(size for size in (4, 8, 16) if width <= size)
    else:
        size = next((size for size in (64, 32) if width % size == 0), 16)
    # Without columns, the gradient of the values is still to be written.
    missing = -width % size if width else size
    return (0,) * size, *(pad(t, (0, missing)) if missing else t for t in tensors)
