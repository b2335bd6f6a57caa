"""A table of any length, in one file or a folder of parts: some rows, or one column, at a time.

Text is turned into Parquet first, for a column of text cannot be read without the others.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.arrow_columns import (
    NotPlain,
    TextFile,
    TextStretch,
    in_parquet,
    opened_parquet,
    validated,
)
from edgewise.data.cells import MISSING
from edgewise.data.delimited import check_header
from edgewise.data.graph_files import TABLE_ENDINGS
from edgewise.data.table import Table
from edgewise.data.tables import open_binary, table_ending, text_file

ROWS = 2**18  # that are read at a time
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Part:
    """A file of a table."""

    path: Path  # the user's
    parquet: Path  # the same, or what its text became
    schema: pa.Schema
    rows: int
    text: TextFile | None = None  # None: there are no lines

    @cached_property
    def _lines(self) -> Sequence[int]:
        try:
            lines = [] if self.text is None else self.text.lines().tolist()
        except EdgewiseError:  # the file may be another one by now
            lines = []
        return lines if len(lines) == self.rows else range(self.rows)

    def where(self, row: int) -> str:
        """``edges.csv:12``, or ``edges.parquet, row 10`` (from 0)."""
        return f"{self.path}{', row ' if self.text is None else ':'}{self._lines[row]}"


@dataclass(frozen=True, eq=False)
class TableParts:
    """A table in one file or more, which all have the same columns."""

    path: str  # for messages
    parts: tuple[Part, ...]
    schema: pa.Schema
    decimal: str = "."
    missing: frozenset[str] = MISSING

    def __len__(self) -> int:
        return self._first_rows[-1]

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns."""
        return self.schema.names

    @cached_property
    def _first_rows(self) -> list[int]:
        return np.cumsum([0, *(part.rows for part in self.parts)]).tolist()

    def where(self, row: int) -> str:
        """The place of a row in its file."""
        number = bisect_right(self._first_rows, row) - 1
        return self.parts[number].where(row - self._first_rows[number])

    def require(self, *names: str) -> None:
        """Refuse names that are no column."""
        self._stretch(dict.fromkeys(self.columns, ()), 0, 0).require(*names)

    def by_column(self) -> Table:
        """The table; each of its columns is read when it is asked for, and forgotten again."""
        return self._stretch(_ColumnsOnDisk(self), len(self), 0, _OfOneColumn())

    def whole(self, *names: str, apart: Sequence[str] = ()) -> Table:
        """All rows of some columns; see :meth:`stretches`."""
        self.require(*names)
        found = [table.stored for _, table in self.stretches(names, apart=apart)]
        columns = {}
        for name in names:
            chunks = [chunk for stored in found for chunk in stored[name].chunks]  # type: ignore[union-attr]
            kind = chunks[0].type if chunks else self.schema.field(name).type
            columns[name] = pa.chunked_array(chunks, kind)
        return self._stretch(columns, len(self), 0)

    def stretches(
        self, names: Sequence[str], *, apart: Sequence[str] = ()
    ) -> Iterator[tuple[int, Table]]:
        """Some columns, some rows at a time, each with the number of its first row.

        Args:
            names: The columns.
            apart: Columns of which nearly all words are different.
        """
        for part, first in zip(self.parts, self._first_rows, strict=False):
            path = str(part.path)
            with open_binary(part.parquet) as stream:
                opened = partial(opened_parquet, stream, path, whole=False, apart=apart)
                file = in_parquet(path, opened)
                batches = file.iter_batches(batch_size=ROWS, columns=list(names))
                while (batch := in_parquet(path, partial(_next, batches))) is not None:
                    columns = {name: self._alike(name, batch.column(name)) for name in names}
                    yield first, self._stretch(columns, batch.num_rows, first)
                    first += batch.num_rows

    def _alike(self, name: str, cells: pa.Array) -> pa.ChunkedArray:
        """Cells in the type that the column has over all parts."""
        kind = self.schema.field(name).type
        same = _value_type(cells.type).equals(kind)
        return pa.chunked_array([cells if same else cells.cast(kind)])

    def _stretch(
        self,
        columns: Mapping[str, Any],
        rows: int,
        first: int,
        parsed: dict[tuple[str, str], Any] | None = None,
    ) -> Table:
        remembered = {} if parsed is None else parsed
        return _Stretch(
            self.path, columns, rows, None, self.decimal, self.missing, remembered,
            whole=self, first=first,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Stretch(Table):
    """Some rows of a table in parts; they stand where they do in the whole."""

    whole: TableParts = field(kw_only=True)
    first: int = field(kw_only=True)

    def where(self, row: int) -> str:
        return self.whole.where(self.first + row)


class _ColumnsOnDisk(Mapping[str, pa.ChunkedArray]):
    """The cells of each column; those of the last one are remembered."""

    def __init__(self, table: TableParts) -> None:
        self._table = table
        self._last: tuple[str, Any] = ("", None)

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        if name not in self:
            raise KeyError(name)
        if self._last[1] is None or self._last[0] != name:
            self._last = ("", None)  # before the next is read
            self._last = (name, self._table.whole(name).stored[name])
        return self._last[1]

    def __contains__(self, name: object) -> bool:
        return name in self._table.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.columns)

    def __len__(self) -> int:
        return len(self._table.columns)


class _OfOneColumn(dict[tuple[str, str], Any]):
    """What was made of the cells of one column; the next takes its place."""

    def __setitem__(self, key: tuple[str, str], value: Any) -> None:
        for other in [one for one in self if one[1] != key[1]]:
            del self[other]
        super().__setitem__(key, value)


def open_parts(
    path: str | Path,
    scratch: Path,
    *,
    encoding: str = "utf-8",
    decimal: str = ".",
    missing_values: Sequence[str] = (),
    show: Callable[[int], None] = lambda _: None,
) -> TableParts:
    """Open a CSV, TSV or Parquet file, or a folder of such parts.

    Args:
        path: The file or folder.
        scratch: A folder for text that is turned into Parquet; made if need be.
        encoding: Of text files.
        decimal: The decimal point of numbers in text files.
        missing_values: Words that stand for missing, beside the usual ones.
        show: Called with the bytes of the file that are read, while text is.
    """
    path, parts = Path(path), []
    for number, file in enumerate(part_files(path)):
        if table_ending(file) == ".parquet":
            parts.append(_parquet_part(file))
        else:
            scratch.mkdir(parents=True, exist_ok=True)
            text = text_file(file, encoding)
            parts.append(_text_part(file, text, scratch / f"{number}.parquet", show))
    point = decimal if parts[0].text is not None else "."  # as in files that are read whole
    missing = MISSING | {word.strip() for word in missing_values}
    return TableParts(str(path), tuple(parts), _common_schema(parts), point, missing)


def part_files(path: Path) -> list[Path]:
    """A file itself, or the tables of a folder, by their names (``part-2`` before ``part-10``)."""
    if not path.is_dir():
        return [path]
    try:
        files = [p for p in path.iterdir() if p.is_file() and p.name[0] not in "._"]
    except OSError as error:
        raise EdgewiseError(
            f"{path} cannot be read ({error.strerror}); check its permissions"
        ) from error
    files = [file for file in files if file.name.lower().endswith(TABLE_ENDINGS)]
    if not files:
        raise EdgewiseError(f"{path} holds no part of a table; put .csv, .tsv or .parquet there")
    if len({table_ending(file) == ".parquet" for file in files}) > 1:
        raise EdgewiseError(f"{path} holds Parquet and text; put parts of one kind there")
    return sorted(files, key=lambda file: (_numbered(file.name), file.name))


def _numbered(name: str) -> list[tuple[int, int, str]]:
    pieces = _DIGITS.split(name)
    return [(1, int(p), "") if p.isdecimal() else (0, 0, p) for p in pieces]


def _parquet_part(path: Path) -> Part:
    with open_binary(path) as stream:
        file = in_parquet(str(path), lambda: opened_parquet(stream, str(path), whole=False))
        schema, rows = in_parquet(str(path), lambda: (file.schema_arrow, file.metadata.num_rows))
    check_header(schema.names, str(path))
    return Part(path, path, schema, rows)


def _text_part(path: Path, text: TextFile, target: Path, show: Callable[[int], None]) -> Part:
    schema = pa.schema([(name, pa.string()) for name in text.header()])
    try:
        rows = _copied(text.plain_stretches(), schema, target, show)
    except (pa.ArrowException, NotPlain):
        rows = _copied(text.exact_stretches(), schema, target, show)  # or it says what is wrong
    return Part(path, target, schema, rows, text)


def _copied(
    stretches: Iterator[TextStretch], schema: pa.Schema, target: Path, show: Callable[[int], None]
) -> int:
    """Write text as Parquet, and count its rows."""
    from pyarrow import parquet

    rows, waiting = 0, []
    with parquet.ParquetWriter(target, schema) as writer:
        for stretch in stretches:
            waiting.append(pa.record_batch(list(stretch.columns), schema=schema))
            rows += waiting[-1].num_rows
            if sum(batch.num_rows for batch in waiting) >= ROWS:
                writer.write_table(pa.Table.from_batches(waiting, schema))
                waiting = []
            show(stretch.done)
        writer.write_table(pa.Table.from_batches(waiting, schema))
    return rows


def _common_schema(parts: Sequence[Part]) -> pa.Schema:
    """The names and types of the columns, over all parts."""
    first = parts[0]
    for part in parts:
        if sorted(part.schema.names) != sorted(first.schema.names):
            raise EdgewiseError(
                f"{part.path} has the columns {preview(part.schema.names, limit=12)}, but "
                f"{first.path} has {preview(first.schema.names, limit=12)}; give all parts the "
                "same columns"
            )
    fields = []
    for name in first.schema.names:
        kinds = [pa.schema([(name, _value_type(p.schema.field(name).type))]) for p in parts]
        try:
            fields.append(pa.unify_schemas(kinds, promote_options="permissive").field(0))
        except pa.ArrowException as error:
            different = next(p for p, kind in zip(parts, kinds, strict=True) if kind != kinds[0])
            raise EdgewiseError(
                f"column {name!r} is {kinds[0].field(0).type} in {first.path}, but "
                f"{_value_type(different.schema.field(name).type)} in {different.path}; export "
                "all parts with the same types"
            ) from error
    return pa.schema(fields)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _next(batches: Iterator[Any]) -> Any:
    return validated(next(batches, None))
