"""Write a table a stretch at a time, to a file or to the standard output."""

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import replacing, sweep
from edgewise.core.spreadsheet import inert_rows
from edgewise.core.terminal import printable
from edgewise.data.molecule_sources import check_same_columns
from edgewise.data.table import Table
from edgewise.runs.parquet_writer import Write, parquet_file, parquet_folder
from edgewise.tasks.base import Columns

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = {".parquet": parquet_file, "": parquet_folder}
_ENDINGS = (*_DELIMITERS, ".parquet")


@contextmanager
def table_writer(out: str | Path | None, *, raw_cells: bool = False) -> Iterator[Write]:
    """A function that writes stretches of one table; the file appears when all is written.

    It takes columns and, before them, the table that they belong to, if there is one.

    Args:
        out: A ``.csv``, ``.tsv`` or ``.parquet`` file, or a folder, whose name has no ending, for
            parts in Parquet; without it the standard output.
        raw_cells: Write text as it is, also where a spreadsheet would run it as a formula; Parquet
            is always written so.
    """
    header: list[str] = []

    def shown(rows: Iterable[Sequence[str]]) -> Iterable[Sequence[str]]:
        rows = rows if raw_cells else inert_rows(rows)
        if out is None and sys.stdout.isatty():
            return ([printable(cell) for cell in row] for row in rows)
        return rows

    def writing(stream: Any, delimiter: str) -> Write:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")

        def write(columns: Columns, table: Table | None = None) -> None:
            own = {} if table is None else table.columns
            names = [*own, *columns]
            if not header:
                header.extend(names)
                writer.writerows(shown([header]))
            check_same_columns(header, names, "" if table is None else table.path)
            every = [*(own[name] for name in own), *columns.values()]
            writer.writerows(shown(zip(*every, strict=True)))

        return write

    if out is None:
        if sys.stdout is None:
            raise EdgewiseError("the standard output is closed; name a file with --out")
        with _bytes_as_read(sys.stdout) as text:
            yield writing(text, ",")
        return
    out = Path(out)
    if out.suffix not in _ENDINGS and (out.suffix or out.is_file()):
        raise EdgewiseError(
            f"{out} does not end in {', '.join(_ENDINGS)}; name the file so, or a folder for parts "
            "in Parquet"
        )
    sweep(out.parent)
    if out.suffix in _PARQUET:
        with _PARQUET[out.suffix](out) as write:
            yield write
        return
    with replacing(out) as binary, _text_over(binary) as text:
        yield writing(text, _DELIMITERS[out.suffix])


@contextmanager
def _text_over(binary: Any) -> Iterator[io.TextIOWrapper]:
    """UTF-8 over a stream of bytes; what was no text when it was read is written as it was."""
    text = io.TextIOWrapper(binary, "utf-8", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        text.flush()
        text.detach()


@contextmanager
def _bytes_as_read(stream: Any) -> Iterator[Any]:
    """A stream such as the standard output, by its bytes where it has them."""
    if not hasattr(stream, "buffer"):  # a notebook's
        yield stream
        return
    stream.flush()
    with _text_over(stream.buffer) as text:
        yield text
