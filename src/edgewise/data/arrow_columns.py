"""Columns of delimited text and of Parquet files as Arrow arrays, within what memory allows."""

import codecs
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
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
_KEPT: deque[Any] = deque(maxlen=64)  # what was handed to Arrow last; closed by now, and small


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
        except (pa.ArrowException, NotPlain):
            return self.exact_columns()  # which reads it, or says what is wrong with it

    def exact_columns(self) -> dict[str, pa.ChunkedArray]:
        """The same columns, row by row."""
        header = self.header()
        chunks: list[list[pa.Array]] = [[] for _ in header]
        for part in self.exact_stretches():
            _check_size(part.size, self.path)
            for column, cells in zip(chunks, part.columns, strict=True):
                column.append(cells)
        return {
            name: pa.chunked_array(parts, pa.string())
            for name, parts in zip(header, chunks, strict=True)
        }

    def header(self) -> list[str]:
        """The names of the columns."""
        with self.open() as stream:
            return next(rows_of_text(stream, self.path, self.encoding, self.delimiter)).cells

    def plain_stretches(self) -> Iterator["TextStretch"]:
        """Some rows at a time, as Arrow reads them; it fails where it might read them wrongly."""
        from pyarrow import csv

        with self.open() as stream:
            _, *options = self._plain_options(stream)
            for batch in csv.open_csv(for_arrow(_Plain(stream, self.path, fits=False)), *options):
                yield TextStretch(batch.columns, stream.tell(), position(stream))

    def exact_stretches(self) -> Iterator["TextStretch"]:
        """The same row by row, whatever stands in the file."""
        with self.open() as stream:
            rows = rows_of_text(stream, self.path, self.encoding, self.delimiter)
            width = len(next(rows).cells)
            while part := list(islice(rows, _ROWS)):
                columns = [_strings(cells, self.path) for cells in _transposed(part, width)]
                yield TextStretch(columns, stream.tell(), position(stream))

    def lines(self) -> np.ndarray:
        """The line that each row ends on, by reading the file once more."""
        with self.open() as stream:
            rows = rows_of_text(stream, self.path, self.encoding, self.delimiter)
            return np.fromiter((row.line for row in rows), np.int64)[1:]

    def _plain_columns(self, stream: BufferedIOBase) -> dict[str, pa.ChunkedArray]:
        from pyarrow import csv

        header, *options = self._plain_options(stream)
        table = csv.read_csv(for_arrow(_Plain(stream, self.path)), *options)
        return dict(zip(header, table.columns, strict=True))

    def _plain_options(self, stream: BufferedIOBase) -> tuple[list[str], Any, Any, Any]:
        """The names of the columns, and how Arrow is to read, parse and convert the rows."""
        from pyarrow import csv

        encoding = resolved_encoding(stream, self.path, self.encoding)
        if encoding not in ("utf-8", "utf-8-sig") or not self.delimiter.isascii():
            raise NotPlain
        header = next(rows_of_text(stream, self.path, self.encoding, self.delimiter))
        stream.seek(0)
        names = [str(i) for i in range(len(header.cells))]
        return (
            header.cells,
            csv.ReadOptions(column_names=names, skip_rows=header.line, block_size=_BLOCK),
            _kept(
                csv.ParseOptions(
                    delimiter=self.delimiter,
                    quote_char=False,
                    double_quote=False,
                    # Spaces alone are a blank line, unless the table has one column only.
                    invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
                )
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )


def for_arrow(stream: Any) -> pa.PythonFile:
    """A stream of Python as Arrow reads it."""
    return _kept(pa.PythonFile(stream, mode="r"))


def _kept(handed: Any) -> Any:
    """The same, kept for a while, so that Arrow is not the last to let go of it.

    Its threads let go a moment after everything is read, and need the interpreter if they are the
    last: where it is just ending, they would be ended in the middle of it, and abort the process.
    """
    _KEPT.append(handed)
    return handed


@dataclass(frozen=True)
class TextStretch:
    """Some rows of a text file."""

    columns: Sequence[pa.Array]
    size: int  # bytes of text up to its end
    done: int  # bytes of the file, which may be packed, up to there


class NotPlain(Exception):
    """Text that Arrow might read otherwise than it is meant."""


class _Plain:
    """Bytes on their way to Arrow, as long as they hold no quotes and, as ``fits``, fit in."""

    closed = False

    def __init__(self, stream: BufferedIOBase, path: str, *, fits: bool = True) -> None:
        self._stream, self._path, self._fits, self._done = stream, path, fits, 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        if b'"' in data:
            raise NotPlain
        begun, _ = self._decoder.getstate()  # a character that the block before cut in two
        if begun or not data.isascii():  # Arrow would print a stack trace for a row that is no text
            try:
                self._decoder.decode(data, final=len(data) < size)
            except UnicodeDecodeError:
                raise NotPlain from None
        self._done += len(data)
        if self._fits:
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


def opened_parquet(
    stream: BufferedIOBase, path: str, *, whole: bool, apart: Collection[str] = ()
) -> Any:
    """A Parquet file whose repeated words stay shared.

    Args:
        stream: Its bytes.
        path: For messages.
        whole: Whether all of it must fit into memory; otherwise it is read a page at a time.
        apart: Columns whose words are not shared: nearly all of them are different.
    """
    from pyarrow import parquet

    source = for_arrow(stream)
    file = parquet.ParquetFile(source)
    words = [
        field.name
        for field in file.schema_arrow
        if (pa.types.is_string(field.type) or pa.types.is_large_string(field.type))
        and field.name not in apart
    ]
    cells = max(_leaves(file), file.metadata.num_rows * file.metadata.num_columns)
    if whole and cells * _CELL > memory_limit():
        raise EdgewiseError(
            f"{path} holds {file.metadata.num_rows:,} rows of {file.metadata.num_columns} "
            f"column(s), about {cells * _CELL / 2**30:,.0f} GiB once read, more than memory "
            "allows; split the file, or raise EDGEWISE_MEMORY_GB"
        )
    stream.seek(0)
    pages = {} if whole else {"pre_buffer": False, "buffer_size": _BLOCK}
    return parquet.ParquetFile(source, read_dictionary=words, **pages)


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


def position(stream: Any) -> int:
    """How far the file itself is read, packed or not."""
    return int(getattr(stream, "fileobj", stream).tell())


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
