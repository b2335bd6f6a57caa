"""Which code runs: compiled kernels on the CPU, plain torch everywhere else."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock

import numba
import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray
from torch import Tensor

# EDGEWISE_KERNELS=plain turns the compiled kernels off for a whole process.
_plain: ContextVar[bool] = ContextVar(
    "plain", default=os.environ.get("EDGEWISE_KERNELS") == "plain"
)

# numba's workqueue layer, the only one on some machines, must not be entered by two threads.
running = RLock()

# A product may be fused with the sum it goes into. Sums are not reordered: LLVM would do so in one
# way when it compiles and in another when it reads a kernel from the cache.
FAST_MATH = {"contract", "nsz"}


def compiled(*tensors: Tensor) -> bool:
    """Whether these tensors can go through the compiled kernels."""
    return not _plain.get() and all(
        tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float64)
        for tensor in tensors
    )


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Within this block every product runs in plain torch: slow, simple, on any device."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def set_num_threads(count: int) -> None:
    """Use ``count`` threads in torch and in the compiled kernels alike."""
    torch.set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


def unsigned(tensor: Tensor) -> NDArray[np.unsignedinteger]:
    """Indices without a sign: compiled code need not ask whether they count from the end."""
    array = tensor.numpy()
    return array.view(np.dtype(f"u{array.itemsize}"))


def take(value: Tensor, places: Tensor) -> Tensor:
    """``value[places]`` for 32-bit places, which torch would first widen."""
    out = value.new_empty(len(places))
    with running:
        _take(value.detach().contiguous().numpy(), unsigned(places), out.numpy())
    return out


@njit(parallel=True, cache=True)
def _take(value, places, out):  # type: ignore[no-untyped-def]
    for k in prange(len(places)):
        out[k] = value[places[k]]
