"""Sort more records than memory holds: sorted runs on the disk, merged by ranges of keys."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

RUN = 2**22  # records that are sorted at once
SAMPLE = 2**12  # records between two keys that are remembered


class ExternalSort:
    """Records with a key and further fields, in the order of their keys.

    Records with the same key stay in the order in which they came.

    Args:
        folder: For its files, which are deleted at the end.
        name: What their names begin with.
        fields: The type and width of each field beside the key; width 0 is one number.
    """

    def __init__(self, folder: Path, name: str, fields: Mapping[str, tuple[Any, int]]) -> None:
        self._fields = {"key": (np.int64, 0), **fields}
        self._paths = {field: folder / f"{name}-{field}" for field in self._fields}
        self._ends = [0]
        self._samples: list[np.ndarray] = []
        self._waiting: list[dict[str, np.ndarray]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._ends[-1] + self._count

    def add(self, **records: np.ndarray) -> None:
        """Take more records: an array of keys, ``key``, and one for each field."""
        self._waiting.append(records)
        self._count += len(records["key"])
        if self._count >= RUN:
            self._write_run()

    def merged(self) -> Iterator[dict[str, np.ndarray]]:
        """All records in order, some at a time; those with the same key come together."""
        self._write_run()
        mapped = {name: self._mapped(name) for name in self._fields}
        runs = list(zip(self._ends, self._ends[1:], strict=False))
        keys = [mapped["key"][begin:end] for begin, end in runs]
        at = [0] * len(runs)
        for bound in (*self._bounds(), None):
            until = [
                len(key) if bound is None else int(np.searchsorted(key, bound)) for key in keys
            ]
            pieces = [
                slice(begin + low, begin + high)
                for (begin, _), low, high in zip(runs, at, until, strict=True)
                if high > low
            ]
            at = until
            if pieces:
                key = np.concatenate([mapped["key"][piece] for piece in pieces])
                order = np.argsort(key, kind="stable")
                yield {
                    name: np.concatenate([array[piece] for piece in pieces])[order]
                    for name, array in mapped.items()
                }
        del mapped, keys
        for path in self._paths.values():
            path.unlink(missing_ok=True)

    def _write_run(self) -> None:
        if not self._count:
            return
        waiting, self._waiting = self._waiting, []
        key = np.concatenate([records["key"] for records in waiting])
        order = np.argsort(key, kind="stable")
        for name, (dtype, _) in self._fields.items():
            field = np.concatenate([records[name] for records in waiting])[order]
            with self._paths[name].open("ab") as stream:
                stream.write(np.ascontiguousarray(field, dtype).data)
        self._samples.append(key[order[::SAMPLE]])
        self._ends.append(self._ends[-1] + self._count)
        self._count = 0

    def _bounds(self) -> np.ndarray:
        """Keys between which lie about as many records as a run has."""
        if not self._samples:
            return np.zeros(0, dtype=np.int64)
        samples = np.sort(np.concatenate(self._samples))
        return np.unique(samples[:: max(1, RUN // SAMPLE)][1:])

    def _mapped(self, name: str) -> np.ndarray:
        dtype, width = self._fields[name]
        shape = (len(self), width) if width else (len(self),)
        if not len(self):
            return np.zeros(shape, dtype)
        return np.memmap(self._paths[name], dtype, "r", shape=shape).view(np.ndarray)
