"""What processes of one machine tell one another, by memory that they share.

A message through a socket wakes several threads on its way, which takes longer than normalising the
rows of a batch. Here each process writes into a stretch of its own and counts its messages, and
reads those of the others when their counts say so.
"""

import mmap
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.kernels import backend

_Array = np.ndarray[Any, np.dtype[Any]]
CAPACITY = 2**20  # bytes that a process tells at once; more goes in pieces
_LINE = 128  # bytes from one count to the next, so that they are in cache lines of their own
_SPINS = 20_000  # readings of the counts before the processor is given to somebody else
_YIELDS = 1000  # times that it is, before this process sleeps in between
_NAP, _LOOK = 1e-4, 0.05  # seconds of such a sleep, and after which the others are looked after


def make_shared_file(workers: int) -> Path | None:
    """The file that the processes map; None where there is no room for it.

    In a file system in memory, if there is one: what is shared should not be written to a disk.
    """
    for folder in ("/dev/shm", None):
        with suppress(OSError):
            number, name = tempfile.mkstemp(prefix="edgewise-", suffix=".shared", dir=folder)
            os.close(number)
            path = Path(name)
            try:
                # All of its room is taken now, not when it is written to.
                path.write_bytes(bytes(_size(workers)))
            except OSError:
                path.unlink()
                raise
            return path
    return None


def _size(workers: int) -> int:
    # Two messages of each: one is written while another process may still read the one before.
    return workers * (_LINE + 2 * CAPACITY)


class SharedMemory:
    """Sums and stacks of the tensors of all processes, which make the same calls in one order.

    Args:
        path: From :func:`make_shared_file`; it may be deleted when all processes are here.
        rank: The number of this process.
        workers: How many there are.
        check: Called now and then while others are waited for; raises if one of them is gone.
        patience: Seconds after which a process that says nothing is given up.
    """

    def __init__(
        self,
        path: Path,
        rank: int,
        workers: int,
        check: Callable[[], None] = lambda: None,
        patience: float = 1800.0,
    ) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _size(workers))
        self.rank, self.workers, self._check, self._patience = rank, workers, check, patience
        whole = np.frombuffer(self._map, dtype=np.uint8)
        self._counts = whole[: workers * _LINE]
        self._messages = whole[workers * _LINE :].reshape(2, workers, CAPACITY)
        self._told = 0

    def summed(self, value: Tensor) -> Tensor:
        """The sum over all processes, in the order of their numbers: the same bits in each."""
        own = value.detach().contiguous().numpy()
        total = np.empty_like(own)
        for piece, out in zip(_pieces(own), _pieces(total), strict=True):
            every = self._exchanged(piece)
            np.add(every[0], every[1], out=out)
            for other in every[2:]:
                out += other
        return torch.from_numpy(total)

    def stacked(self, value: Tensor) -> Tensor:
        """The tensors of all processes, ``[workers, ...]``."""
        own = value.detach().contiguous().numpy()
        every = [self._exchanged(piece).copy() for piece in _pieces(own)]
        whole = every[0] if len(every) == 1 else np.concatenate(every, axis=1)
        return torch.from_numpy(whole).view(self.workers, *value.shape)

    def _exchanged(self, own: _Array) -> _Array:
        """What each process says, ``[workers, numbers]``, until it says something else."""
        self._told += 1
        every = self._messages[self._told % 2, :, : own.nbytes].view(own.dtype)
        every[self.rank] = own
        _publish(self._counts, self.rank, self._told)
        self._wait()
        return every

    def _wait(self) -> None:
        for _ in range(_YIELDS):
            if _all_told(self._counts, self.workers, self._told, _SPINS):
                return
            time.sleep(0)
        start = looked = time.monotonic()
        while not _all_told(self._counts, self.workers, self._told, 1):
            time.sleep(_NAP)
            now = time.monotonic()
            if now - looked >= _LOOK:
                self._check()
                looked = now
            if now - start > self._patience:
                raise EdgewiseError(
                    f"a worker says nothing for {self._patience:.0f} seconds; look whether it is "
                    "stopped, and continue with --resume"
                )


def _pieces(array: _Array) -> list[_Array]:
    """What is told at once, of an array or one that has no numbers; torch is slower at cutting."""
    flat, most = array.reshape(-1), CAPACITY // array.itemsize
    return [flat[first : first + most] for first in range(0, max(len(flat), 1), most)]


@intrinsic
def _load(typing, address):  # type: ignore[no-untyped-def]
    """The count at an address, before anything that is read after it."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.intp), generate


@intrinsic
def _store(typing, address, count):  # type: ignore[no-untyped-def]
    """Write a count to an address, after everything that was written before it."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store_atomic(arguments[1], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(types.intp, types.int64), generate


@backend.jit(nogil=True)
def _publish(counts, rank, told):  # type: ignore[no-untyped-def]
    _store(counts.ctypes.data + rank * _LINE, told)


@backend.jit(nogil=True)
def _all_told(counts, workers, told, spins):  # type: ignore[no-untyped-def]
    """Whether all processes have counted so far, after so many looks at most."""
    rank = 0
    for _ in range(spins):
        while rank < workers and _load(counts.ctypes.data + rank * _LINE) >= told:
            rank += 1
        if rank == workers:
            return True
    return False
