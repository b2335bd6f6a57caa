"""A table: columns of cells as strings, numbers or categories, every row with its line."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.missing import is_missing
from edgewise.data.cells import MISSING, TOO_LARGE, as_number

Cells: TypeAlias = pa.ChunkedArray | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of cells. A missing cell is an empty string, or a word that stands for missing."""

    path: str  # for messages
    stored: Mapping[str, Cells]
    rows: int
    find_lines: Callable[[], np.ndarray] | None = None  # of each row; None: there are no lines
    decimal: str = "."
    missing: frozenset[str] = MISSING
    _parsed: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return self.rows

    @cached_property
    def lines(self) -> np.ndarray:
        """The line each row ends on, or its number; found when first asked for."""
        rows = np.arange(len(self))
        if self.find_lines is None:
            return rows
        with suppress(EdgewiseError):  # the file may be another one by now
            lines = self.find_lines()
            return lines if len(lines) == len(self) else rows
        return rows

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The cells of every column, as strings."""
        return _Columns(self)

    def where(self, row: int) -> str:
        """``edges.csv:12``, or ``edges.parquet, row 10`` (from 0)."""
        between = ", row " if self.find_lines is None else ":"
        return f"{self.path}{between}{self.lines[row]}"

    def column(self, name: str) -> tuple[str, ...]:
        """The cells of one column, as strings."""
        cells = self._stored(name)
        if isinstance(cells, tuple):
            return cells
        if pa.types.is_string(cells.type):
            return tuple(cells.to_pylist())
        codes, words = self.words(name, strip=False)
        cell = (*words, "")  # -1, nothing, finds the last
        return tuple(cell[code] for code in codes.tolist())

    def require(self, *names: str) -> None:
        """Refuse names that are no column."""
        for name in names:
            self._stored(name)

    def trimmed(self, name: str) -> pa.ChunkedArray:
        """The cells as an Arrow array of strings without spaces around them."""
        cells = self._stored(name)
        if isinstance(cells, tuple):
            cells = pa.chunked_array([_as_text(cells)], pa.string())
        elif pa.types.is_integer(cells.type) or _is_text(cells.type):
            cells = pc.cast(cells, pa.string())
        else:
            cells = pa.chunked_array([pa.array(self.column(name), pa.string())])
        return pc.utf8_trim_whitespace(cells.fill_null(""))

    def numbers(self, name: str) -> np.ndarray:
        """The column as finite numbers in double precision, NaN where a cell is missing."""
        values, bad = self.parsed_numbers(name)
        if bad is not None:
            raise EdgewiseError(
                f"{self.where(bad)}: column {name!r} holds {self.column(name)[bad]!r}, expected a "
                f"number of ordinary size; correct or empty the cell{self._comma(name, bad)}"
            )
        return values

    def parsed_numbers(self, name: str) -> tuple[np.ndarray, int | None]:
        """The numbers of a column, and the first row that holds something else, if one does."""
        key = ("numbers", name)
        if key not in self._parsed:
            self._parsed[key] = self._parse_numbers(self._stored(name), name)
        return self._parsed[key]

    def categories(self, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """The number of each cell's word, -1 where it is missing, and the different words."""
        codes, words = self.words(name)
        kept = [word for word in words if word not in self.missing]
        number = {word: i for i, word in enumerate(kept)}
        return np.array([*(number.get(w, -1) for w in words), -1])[codes], tuple(kept)

    def words(self, name: str, *, strip: bool = True) -> tuple[np.ndarray, tuple[str, ...]]:
        """As :meth:`categories`, with words that stand for missing among the words."""
        key = ("words" if strip else "cells", name)
        if key not in self._parsed:
            self._parsed[key] = self._encode(self._stored(name), strip)
        return self._parsed[key]

    def _stored(self, name: str) -> Cells:
        if name not in self.stored:
            # A wrong delimiter makes one wide column, so the header is what the user must see.
            raise EdgewiseError(
                f"{self.path} has no column {name!r}; its columns are "
                f"{preview(list(self.stored), limit=12)}"
            )
        return self.stored[name]

    def _comma(self, name: str, row: int) -> str:
        if self.decimal != "." or as_number(self.column(name)[row], ",") is None:
            return ""
        return ", or say --decimal , if commas are decimal points"

    def _parse_numbers(self, cells: Cells, name: str) -> tuple[np.ndarray, int | None]:
        if isinstance(cells, pa.ChunkedArray) and _is_numeric(cells.type):
            values = pc.cast(cells, pa.float64(), safe=False).to_numpy()
            wrong = ~np.isnan(values) & ~(np.abs(values) < TOO_LARGE)
            return _frozen(values), int(wrong.argmax()) if wrong.any() else None
        text = self.trimmed(name)
        if self.decimal == ".":
            fast = _cast(text)
            if fast is None or np.isnan(fast).any():
                gaps = pc.is_in(text, pa.array(sorted(self.missing)))
                fast = _cast(pc.if_else(gaps, None, text), gaps)
            if fast is not None and (np.isnan(fast) | (np.abs(fast) < TOO_LARGE)).all():
                return _frozen(fast), None
        values = np.full(len(self), np.nan)
        cells_one_by_one = (cell for chunk in text.chunks for cell in chunk.to_pylist())
        for row, cell in enumerate(cells_one_by_one):
            value = as_number(cell, self.decimal, self.missing)
            if value is None:
                return values, row
            values[row] = value
        return _frozen(values), None

    def _encode(self, cells: Cells, strip: bool) -> tuple[np.ndarray, tuple[str, ...]]:
        if isinstance(cells, tuple):
            cells = pa.chunked_array([_as_text(cells)], pa.string())
        if pa.types.is_dictionary(cells.type):
            chunks = cells.unify_dictionaries().chunks
        else:
            try:
                chunks = cells.dictionary_encode().chunks  # which share one dictionary
            except pa.ArrowNotImplementedError:  # lists and the like
                text = pa.array([as_cell(value) for value in cells.to_pylist()], pa.string())
                chunks = [text.dictionary_encode()]
        found = [as_cell(value) for value in chunks[0].dictionary.to_pylist()] if chunks else []
        number: dict[str, int] = {}
        place = [number.setdefault(w.strip() if strip else w, len(number)) for w in found]
        codes = [c.indices.fill_null(len(found)).to_numpy(zero_copy_only=False) for c in chunks]
        joined = np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)
        return _frozen(np.array([*place, -1])[joined]), tuple(number)


class _Columns(Mapping[str, tuple[str, ...]]):
    def __init__(self, table: Table) -> None:
        self._table = table

    def __getitem__(self, name: str) -> tuple[str, ...]:
        if name not in self._table.stored:
            raise KeyError(name)
        return self._table.column(name)

    def __contains__(self, name: object) -> bool:
        return name in self._table.stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.stored)

    def __len__(self) -> int:
        return len(self._table.stored)


def as_cell(value: Any) -> str:
    return "" if is_missing(value) else str(value)


def _as_text(cells: Sequence[str]) -> pa.Array:
    try:
        return pa.array(cells, pa.string())
    except UnicodeEncodeError:  # bytes of another encoding, kept in a damaged row
        return pa.array([c.encode("utf-8", "replace").decode() for c in cells], pa.string())


def _is_text(kind: pa.DataType) -> bool:
    """Whether cells are strings, also where repeated ones are stored once."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _cast(text: pa.ChunkedArray, gaps: pa.ChunkedArray | None = None) -> np.ndarray | None:
    """The numbers that Arrow reads in the cells; None where it cannot, or reads a gap itself."""
    try:
        values = pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        return None
    array = values.to_numpy()
    if gaps is not None and int(np.isnan(array).sum()) != (pc.sum(gaps).as_py() or 0):
        return None
    return array


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
