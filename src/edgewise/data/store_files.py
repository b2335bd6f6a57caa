"""The files of a store: arrays that are mapped, tables as Parquet, and the manifest of them all."""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from edgewise import __version__
from edgewise.core.errors import EdgewiseError
from edgewise.core.files import inside
from edgewise.core.manifest import MANIFEST, sha256_of
from edgewise.core.schema import read_json
from edgewise.data.array_files import ArrayFile, ArrayWriter
from edgewise.data.arrow_columns import read_parquet
from edgewise.data.tables import Table, make_table, open_binary

ROWS = 2**16  # of an array that are written at a time
CURE = "copy the folder again, or import the tables again"


class TableWriter:
    """Writes a table, some rows at a time; there must be some."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / name
        self._writer: Any = None

    def append(self, rows: pa.Table) -> None:
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._path, rows.schema)
        self._writer.write_table(rows)

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()


def read_rows(
    path: Path, rows: int, *, decimal: str, missing_values: tuple[str, ...], of: str
) -> Table:
    """A table of a store, which must have so many rows."""
    with open_binary(path) as stream:
        columns = read_parquet(stream, str(path))
    table = make_table(str(path), columns, None, decimal=decimal, missing_values=missing_values)
    if len(table) != rows:
        raise EdgewiseError(f"{path} has {len(table):,} rows for {rows:,} {of}; {CURE}")
    return table


def array_path(folder: Path, name: str) -> Path:
    return inside(folder, f"{name}.npy")


def array_writer(folder: Path, name: str, dtype: Any, *, width: int | None = None) -> ArrayWriter:
    """A writer of one of the arrays of a store."""
    return ArrayWriter(array_path(folder, name), dtype, width=width)


def written(folder: Path, name: str, array: np.ndarray) -> ArrayFile:
    """Write an array that is there already."""
    width = None if array.ndim == 1 else array.shape[1]
    with array_writer(folder, name, array.dtype, width=width) as writer:
        for start in range(0, len(array), ROWS):
            writer.append(array[start : start + ROWS])
    return writer.file


def opened_arrays(folder: Path, files: Mapping[str, ArrayFile]) -> dict[str, np.ndarray]:
    """The arrays of a store as maps of their files."""
    arrays = {}
    for name, file in files.items():
        try:
            arrays[name] = file.open(array_path(folder, name))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise damaged(array_path(folder, name), str(reason)) from error
    return arrays


def write_manifest(
    folder: Path,
    format: str,
    files: Mapping[str, ArrayFile],
    tables: Mapping[str, str],
    info: dict[str, Any],
) -> None:
    """Write the manifest, which makes a store of a folder of arrays.

    Args:
        folder: Of the store.
        format: Its kind and version.
        files: Its arrays.
        tables: The names of its tables, and those of their files.
        info: What it says about its graph.
    """
    content: dict[str, Any] = {
        "format": format,
        "edgewise": __version__,
        "arrays": {name: file.to_json() for name, file in files.items()},
        **{name: _described(folder / file) for name, file in tables.items()},
        "graph": info,
    }
    content["checksum"] = _checksum(content)
    (folder / MANIFEST).write_text(json.dumps(content, indent=1), encoding="utf-8")


def read_manifest(folder: Path, shapes: Mapping[str, Any]) -> dict[str, Any]:
    """What the manifest of a store says; a damaged one is refused.

    Args:
        folder: Of the store.
        shapes: For each format that is read, what its manifest holds.
    """
    path = inside(folder, MANIFEST)
    try:
        content: dict[str, Any] = read_json(path, {"format": str})
        if content["format"] not in shapes:
            known = ", ".join(map(repr, shapes))
            raise EdgewiseError(
                f"its format is {content['format']!r}, and this version reads {known}"
            )
        if content.get("checksum") != _checksum(content):
            raise EdgewiseError("its checksum differs")
        content = read_json(path, shapes[content["format"]])
    except (OSError, ValueError) as error:
        raise damaged(path, getattr(error, "strerror", None) or str(error)) from error
    return content


def check_sizes(folder: Path, content: Mapping[str, Any], tables: Mapping[str, str]) -> None:
    """Refuse tables that are missing, or of another size."""
    for name, file in tables.items():
        path = inside(folder, file)
        if not path.is_file() or path.stat().st_size != content[name]["bytes"]:
            raise damaged(path, "it is missing, or of another size")


def verify_files(
    folder: Path, files: Mapping[str, ArrayFile], tables: Iterable[tuple[str, str]]
) -> None:
    """Read every file once, and refuse one that is not as it was written.

    Args:
        folder: Of the store.
        files: Its arrays.
        tables: The file of each table, and its checksum.
    """
    for name, file in files.items():
        if not file.is_in(array_path(folder, name)):
            raise damaged(array_path(folder, name), "its checksum differs")
    for name, checksum in tables:
        if sha256_of(folder / name) != checksum:
            raise damaged(folder / name, "its checksum differs")


def checksum_of_rows(rows: np.ndarray) -> str:
    """What tells one choice of rows from another: SHA-256 of their numbers in rising order."""
    return hashlib.sha256(np.sort(rows).astype("<i8").tobytes()).hexdigest()


def as_tensor(array: np.ndarray) -> Tensor:
    """A tensor of numbers that stay in their file, and must not be changed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def counts_up_to(start: np.ndarray, last: int) -> bool:
    """Whether places rise from 0 to the last one."""
    return bool(start[0] == 0 and start[-1] == last and not (np.diff(start) < 0).any())


def is_below(numbers: np.ndarray, limit: int) -> bool:
    """Whether all numbers are from 0 to below a limit."""
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < limit)


def damaged(path: Path, reason: str) -> EdgewiseError:
    """The sentence for a store that cannot be used."""
    return EdgewiseError(f"{path} is damaged ({reason.rstrip('.')}); {CURE}")


def _described(path: Path) -> dict[str, Any]:
    return {"sha256": sha256_of(path), "bytes": path.stat().st_size}


def _checksum(content: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
