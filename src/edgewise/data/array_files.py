"""Arrays in files: written piece by piece with a checksum, opened as memory maps, never unpickled.

The files are NumPy's own (``numpy.load(path, mmap_mode="r")`` reads them, too).
"""

import hashlib
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

SHAPE: dict[str, Any] = {"dtype": str, "shape": [int], "sha256": str}
_BLOCK = 2**22  # bytes that are hashed at a time
_VERSION = (1, 0)  # of NumPy's format


@dataclass(frozen=True)
class ArrayFile:
    """What the file of an array must hold."""

    dtype: np.dtype
    shape: tuple[int, ...]
    sha256: str  # of the numbers, without the header

    def to_json(self) -> dict[str, Any]:
        return {"dtype": self.dtype.str, "shape": list(self.shape), "sha256": self.sha256}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ArrayFile":
        dtype = np.dtype(content["dtype"])
        if dtype.kind not in "fiu" or dtype.str != content["dtype"] or dtype.str[0] == ">":
            raise ValueError(f"{content['dtype']!r} is no type of numbers")
        shape = tuple(content["shape"])
        if not 1 <= len(shape) <= 2 or min(shape) < 0:
            raise ValueError(f"{list(shape)} is no shape of an array")
        return cls(dtype, shape, content["sha256"])

    def open(self, path: Path) -> np.ndarray:
        """The array as a map of the file; ValueError or OSError if it is none of this size."""
        with path.open("rb") as stream:
            if np.lib.format.read_magic(stream) != _VERSION:
                raise ValueError("another version of NumPy's format")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # what NumPy would mend
                    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
            except Exception as error:  # its parser stumbles over damage in many ways
                raise ValueError("its header is none of NumPy's") from error
            start = stream.tell()
        if (shape, by_columns, dtype) != (self.shape, False, self.dtype):
            raise ValueError(f"{dtype}{list(shape)} in place of {self.dtype}{list(self.shape)}")
        size, there = start + math.prod(shape) * dtype.itemsize, path.stat().st_size
        if there != size:
            raise ValueError(f"{there:,} bytes in place of {size:,}")
        if size == start:
            return np.empty(shape, dtype)
        return np.memmap(path, dtype, "r", start, shape).view(np.ndarray)

    def is_in(self, path: Path) -> bool:
        """Whether a file holds the numbers that were written."""
        return checksum(self.open(path)) == self.sha256


class ArrayWriter:
    """Writes the rows of an array one piece after the other."""

    def __init__(self, path: Path, dtype: Any, *, width: int | None = None) -> None:
        self._dtype, self._width, self._rows = np.dtype(dtype).newbyteorder("<"), width, 0
        self._digest = hashlib.sha256()
        self._stream: BinaryIO = path.open("wb")
        self._write_header()

    def append(self, rows: np.ndarray) -> None:
        """Write more rows."""
        data = np.ascontiguousarray(rows, self._dtype).data.cast("B") if rows.size else b""
        self._digest.update(data)
        self._stream.write(data)
        self._rows += len(rows)

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with self._stream:
            if error is None:
                # NumPy leaves room for the number of rows to grow.
                self._stream.seek(0)
                self._write_header()

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self._rows,) if self._width is None else (self._rows, self._width)

    @property
    def file(self) -> ArrayFile:
        """What was written."""
        return ArrayFile(self._dtype, self._shape, self._digest.hexdigest())

    def _write_header(self) -> None:
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": self._shape}
        np.lib.format.write_array_header_1_0(self._stream, header)


def checksum(array: np.ndarray) -> str:
    """SHA-256 of the numbers of an array, row by row."""
    digest = hashlib.sha256()
    flat = array.reshape(-1)
    step = _BLOCK // max(array.itemsize, 1)
    for start in range(0, len(flat), step):
        digest.update(np.ascontiguousarray(flat[start : start + step]).data.cast("B"))
    return digest.hexdigest()
