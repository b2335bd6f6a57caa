"""Columns of delimited text and of Parquet files as Arrow arrays, within what memory allows."""

import codecs
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.core.errors import EdgewiseError
from edgewise.data.delimited import Row, check_header, resolved_encoding, rows_of_text
from edgewise.kernels.memory import memory_limit

Opener = Callable[[], AbstractContextManager[BufferedIOBase]]
_BLOCK = 2**20  # bytes that Arrow parses at a time; a longer line is left to the exact reader
_ROWS = 2**14  # of the exact reader, between two conversions
_CELL = 64  # bytes that a cell takes on its way to a tensor


@dataclass(frozen=True)
class TextFile:
    """Delimited text that can be opened again: for its rows, and for the lines they are on."""

    path: str
    open: Opener
    encoding: str
    delimiter: str

    def columns(self) -> dict[str, pa.ChunkedArray]:
        """Every cell a string. Arrow reads what has no quotes, many times faster."""
        try:
            with self.open() as stream:
                return self._plain_columns(stream)
        except (pa.ArrowException, _NotPlain):
            return self.exact_columns()  # which reads it, or says what is wrong with it

    def exact_columns(self) -> dict[str, pa.ChunkedArray]:
        """The same columns, row by row."""
        with self.open() as stream:
            rows = rows_of_text(stream, self.path, self.encoding, self.delimiter)
            header = next(rows).cells
            chunks: list[list[pa.Array]] = [[] for _ in header]
            while part := list(islice(rows, _ROWS)):
                _check_size(stream.tell(), self.path)
                for column, cells in zip(chunks, _transposed(part, len(header)), strict=True):
                    column.append(_strings(cells, self.path))
        return {
            name: pa.chunked_array(parts, pa.string())
            for name, parts in zip(header, chunks, strict=True)
        }

    def lines(self) -> np.ndarray:
        """The line that each row ends on, by reading the file once more."""
        with self.open() as stream:
            rows = rows_of_text(stream, self.path, self.encoding, self.delimiter)
            return np.fromiter((row.line for row in rows), np.int64)[1:]

    def _plain_columns(self, stream: BufferedIOBase) -> dict[str, pa.ChunkedArray]:
        from pyarrow import csv

        encoding = resolved_encoding(stream, self.path, self.encoding)
        if encoding not in ("utf-8", "utf-8-sig") or not self.delimiter.isascii():
            raise _NotPlain
        header = next(rows_of_text(stream, self.path, self.encoding, self.delimiter))
        stream.seek(0)
        names = [str(i) for i in range(len(header.cells))]
        table = csv.read_csv(
            _Plain(stream, self.path),
            csv.ReadOptions(column_names=names, skip_rows=header.line, block_size=_BLOCK),
            csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=False,
                double_quote=False,
                # Spaces alone are a blank line, unless the table has one column only.
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
        return dict(zip(header.cells, table.columns, strict=True))


class _NotPlain(Exception):
    """Text that Arrow might read otherwise than it is meant."""


class _Plain:
    """Bytes on their way to Arrow, as long as they hold no quotes and fit into memory."""

    closed = False

    def __init__(self, stream: BufferedIOBase, path: str) -> None:
        self._stream, self._path, self._done = stream, path, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        if b'"' in data:
            raise _NotPlain
        begun, _ = self._decoder.getstate()  # a character that the block before cut in two
        if begun or not data.isascii():  # Arrow would print a stack trace for a row that is no text
            try:
                self._decoder.decode(data, final=len(data) < size)
            except UnicodeDecodeError:
                raise _NotPlain from None
        self._done += len(data)
        _check_size(self._done, self._path)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def read_parquet(stream: BufferedIOBase, path: str) -> dict[str, pa.ChunkedArray]:
    """The columns of a Parquet file, with their own types."""
    table = in_parquet(path, lambda: validated(opened_parquet(stream, path, whole=True).read()))
    check_header(table.column_names, path)
    return dict(zip(table.column_names, table.columns, strict=True))


def opened_parquet(stream: BufferedIOBase, path: str, *, whole: bool) -> Any:
    """A Parquet file whose repeated words stay shared; ``whole`` if all of it must fit."""
    from pyarrow import parquet

    file = parquet.ParquetFile(stream)
    words = [
        field.name
        for field in file.schema_arrow
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
    cells = max(_leaves(file), file.metadata.num_rows * file.metadata.num_columns)
    if whole and cells * _CELL > memory_limit():
        raise EdgewiseError(
            f"{path} holds {file.metadata.num_rows:,} rows of {file.metadata.num_columns} "
            f"column(s), about {cells * _CELL / 2**30:,.0f} GiB once read, more than memory "
            "allows; split the file, or raise EDGEWISE_MEMORY_GB"
        )
    stream.seek(0)
    return parquet.ParquetFile(stream, read_dictionary=words)


def _leaves(file: Any) -> int:
    """Values in columns of lists and the like, of which a row may have any number."""
    # Only where there are some: at a damaged description of a column the library ends the process.
    if not any(pa.types.is_nested(field.type) for field in file.schema_arrow):
        return 0
    groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
    return sum(group.column(i).num_values for group in groups for i in range(group.num_columns))


def validated(table: Any) -> Any:
    """A table or batch whose offsets and indices lie within it: those of a damaged file may not."""
    if table is not None:
        table.validate(full=True)
    return table


def in_parquet(path: str, read: Callable[[], Any]) -> Any:
    """What ``read`` gives; a damaged file is a sentence."""
    try:
        return read()
    except EdgewiseError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0].rstrip(".")
        raise EdgewiseError(
            f"{path} is not a whole Parquet file ({reason}); export it again"
        ) from error


def _check_size(size: int, path: str) -> None:
    if size > memory_limit() // 4:
        raise EdgewiseError(
            f"{path} holds more than {memory_limit() // 2**22:,} MB of text, which would not fit "
            "into memory; split the file, or raise EDGEWISE_MEMORY_GB"
        )


def _transposed(rows: Sequence[Row], width: int) -> list[tuple[str, ...]]:
    return list(zip(*(row.cells for row in rows), strict=True)) if rows else [()] * width


def _strings(cells: Sequence[str], path: str) -> pa.Array:
    try:
        return pa.array(cells, pa.string())
    except (pa.ArrowException, UnicodeError) as error:
        raise EdgewiseError(f"{path} holds characters that are no text ({error})") from error
