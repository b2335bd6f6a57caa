"""What nodes gain by the products of the backward pass; hub_by_hub.py says where.

The gain of a node ``i`` is ``sum_j M_ij (x_i . z_j)``, the dot of its own row with its row of the
product ``M z``. It is kept below the kink and above it apart, and so the products are.
"""

import numpy as np
import torch
from jaxtyping import Float
from numba import prange
from torch import Tensor

from edgewise.kernels import backend
from edgewise.kernels.lanes import horizontal_sum, load, multiply_add, zeros
from edgewise.kernels.registers import padded_to_registers

ZERO = np.uint64(0)


def gains(
    own: Float[Tensor, "nodes groups width"],
    product: Float[Tensor, "nodes channels width"],
    above: Float[Tensor, "nodes channels width"],
) -> Float[Tensor, "channels nodes 2"]:
    """The gains below the kink and above it.

    Args:
        own: The rows of the nodes; channel ``q`` of ``Q`` reads group ``q * groups // Q``.
        product: What is gathered in all.
        above: The part of it that comes from pairs above the kink.
    """
    lanes, *filled = padded_to_registers(own, product, above)
    out = torch.empty(product.size(1), len(product), 2, dtype=product.dtype)
    rows = (tensor.contiguous().flatten(0, 1).numpy() for tensor in filled)
    with backend.running:
        _gains(*rows, np.uint64(own.size(1)), out.numpy(), lanes)
    return out


@backend.jit(parallel=True, fastmath=backend.FAST_MATH)
def _gains(own, product, above, groups, out, lanes):  # type: ignore[no-untyped-def]
    channels = np.uint64(len(out))
    for node in prange(out.shape[1]):
        i, zero = np.uint64(node), zeros(own, lanes)
        for q in range(channels):
            low, high = zero, zero
            row, own_row = i * channels + q, i * groups + q * groups // channels
            for f in range(ZERO, np.uint64(own.shape[1]), np.uint64(len(lanes))):
                mine, part = load(zero, own, own_row, f), load(zero, above, row, f)
                rest = multiply_add(load(zero, product, row, f), -1, part)
                low, high = multiply_add(low, mine, rest), multiply_add(high, mine, part)
            out[q, i, 0], out[q, i, 1] = horizontal_sum(low), horizontal_sum(high)
