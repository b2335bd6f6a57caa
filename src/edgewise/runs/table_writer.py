"""Write a table a stretch at a time, to a file or to the standard output."""

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import replacing, sweep
from edgewise.core.spreadsheet import inert_rows
from edgewise.core.terminal import printable
from edgewise.tasks.base import Columns


@contextmanager
def table_writer(
    out: str | Path | None, *, raw_cells: bool = False
) -> Iterator[Callable[[Columns], None]]:
    """A function that writes stretches of one table; the file appears when all is written.

    Args:
        out: A ``.csv`` or ``.tsv`` file; without it the standard output.
        raw_cells: Write text as it is, also where a spreadsheet would run it as a formula.
    """
    header: list[str] = []

    def shown(rows: Iterable[Sequence[str]]) -> Iterable[Sequence[str]]:
        rows = rows if raw_cells else inert_rows(rows)
        if out is None and sys.stdout.isatty():
            return ([printable(cell) for cell in row] for row in rows)
        return rows

    def writing(stream: Any, delimiter: str) -> Callable[[Columns], None]:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")

        def write(columns: Columns) -> None:
            if not header:
                header.extend(columns)
                writer.writerows(shown([header]))
            writer.writerows(shown(zip(*(columns[name] for name in header), strict=True)))

        return write

    if out is None:
        if sys.stdout is None:
            raise EdgewiseError("the standard output is closed; name a file with --out")
        with _bytes_as_read(sys.stdout) as text:
            yield writing(text, ",")
        return
    if Path(out).suffix not in (".csv", ".tsv"):
        raise EdgewiseError(f"{out} does not end in .csv or .tsv; name the file so")
    sweep(Path(out).parent)
    with replacing(out) as binary, _text_over(binary) as text:
        yield writing(text, "\t" if Path(out).suffix == ".tsv" else ",")


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
