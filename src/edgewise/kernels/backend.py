"""Which code runs, compiled on the CPU or plain torch everywhere else, and how it compiles."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import Any

import numba
import numpy as np
import torch
from numba import prange
from numpy.typing import NDArray
from torch import Tensor

# EDGEWISE_KERNELS=plain turns the compiled kernels off for a whole process.
_plain: ContextVar[bool] = ContextVar(
    "plain", default=os.environ.get("EDGEWISE_KERNELS") == "plain"
)


class _Turns:
    """One kernel at a time: numba's workqueue layer, the only one on some machines, must not be
    entered by two threads.

    With the first kernel numba starts its threads: as many as torch uses, which are those of
    ``OMP_NUM_THREADS``, where numba by itself would take every processor, for torch as well.
    """

    def __init__(self) -> None:
        self._lock, self._started = RLock(), False

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._started:
            self._started = True
            _start_threads()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


def _start_threads() -> None:
    try:
        numba.threading_layer()
    except ValueError:  # not started yet, by anybody
        set_num_threads(torch.get_num_threads())


running = _Turns()

_told = False  # whether this process has said that it cannot cache

# A product may be fused with the sum it goes into. Sums are not reordered: LLVM would do so in one
# way when it compiles and in another when it reads a kernel from the cache.
FAST_MATH = {"contract", "nsz"}


def jit(**options: Any) -> Callable[[Any], Any]:
    """``numba.njit`` that keeps what it compiled on disk, where there is a place for it.

    Without one (a read-only installation and no home, a full disk, files of another user) kernels
    are compiled anew in every process.
    """

    def decorate(function: Any) -> Any:
        try:
            kernel = numba.njit(cache=True, **options)(function)
        except RuntimeError as error:  # numba: "cannot cache function: no locator available"
            if "locator" not in str(error):
                raise
            _tell_once(str(error))
            return numba.njit(**options)(function)
        kernel._cache = _CacheOrNone(kernel._cache)
        return kernel

    return decorate


class _CacheOrNone:
    """The files of a kernel; one that cannot be read or written is as good as none."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def load_overload(self, *place: Any) -> Any:
        return self._attempt(self._files.load_overload, *place)

    def save_overload(self, *place: Any) -> Any:
        return self._attempt(self._files.save_overload, *place)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    @staticmethod
    def _attempt(action: Callable[..., Any], *place: Any) -> Any:
        try:
            return action(*place)
        except OSError as error:
            _tell_once(str(error))
            return None


def _tell_once(reason: str) -> None:
    global _told
    if not _told:
        logging.getLogger("edgewise").warning(
            "compiled kernels cannot be cached (%s), so every process compiles them anew; set "
            "NUMBA_CACHE_DIR to a folder that can be written",
            reason,
        )
    _told = True


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


def accumulator(*tensors: Tensor) -> torch.dtype:
    """The type to add up products of these tensors in: half precision needs single for sums."""
    dtype = torch.float32
    for tensor in tensors:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def set_num_threads(count: int) -> None:
    """Use ``count`` threads in torch and in the compiled kernels alike."""
    # numba first: when it starts its threads, it also sets the number of OpenMP's, torch's.
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(count)


def num_threads() -> int:
    """How many threads the compiled kernels use."""
    _start_threads()
    count: int = numba.get_num_threads()
    return count


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


@jit(parallel=True)
def _take(value, places, out):  # type: ignore[no-untyped-def]
    for k in prange(len(places)):
        out[k] = value[places[k]]
