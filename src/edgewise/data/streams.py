"""Tables of any length, a stretch of rows at a time; a broken row is kept, and marked as such."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.core.errors import EdgewiseError
from edgewise.data.arrow_columns import in_parquet, opened_parquet, position, validated
from edgewise.data.delimited import (
    DELIMITERS,
    Row,
    check_header,
    find_delimiter,
    rows_of_text,
)
from edgewise.data.sdf import sdf_names, sdf_rows
from edgewise.data.tables import Table, make_table, open_binary, table_from_columns

ROWS = 1024  # in a stretch
_BYTES = 2**24  # in a stretch; long lines make shorter ones


@dataclass(frozen=True)
class Stretch:
    """Some rows of a file, one after the other."""

    table: Table
    broken: dict[int, str]  # rows of this stretch that are not rows of the table, and why
    done: int  # bytes of the file that are read
    size: int = 0  # bytes in all, where they were counted


def stream_table(
    path: str | Path,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str = ".",
    missing_values: Sequence[str] = (),
    rows: int = ROWS,
) -> Iterator[Stretch]:
    """Read CSV, TSV (also gzipped), Parquet or SDF, never more than ``rows`` at a time.

    The other arguments are those of :func:`edgewise.data.tables.read_table`.
    """
    path = Path(path)
    name = path.name.lower().removesuffix(".gz")
    ending = Path(name).suffix
    read_as = {"decimal": decimal, "missing_values": missing_values}
    with open_binary(path) as stream:
        if ending == ".parquet":
            yield from _parquet(stream, str(path), rows)
        elif ending == ".sdf":
            yield from _sdf(stream, str(path), encoding, rows)
        elif delimiter is not None or ending in DELIMITERS:
            mark = delimiter or find_delimiter(stream, str(path), encoding, DELIMITERS[ending])
            yield from _delimited(stream, str(path), encoding, mark, rows, read_as)
        else:
            raise EdgewiseError(f"{path} is not a .csv, .tsv, .parquet or .sdf file")


def _delimited(
    stream: BufferedIOBase,
    path: str,
    encoding: str,
    delimiter: str,
    rows: int,
    read_as: Mapping[str, Any],
) -> Iterator[Stretch]:
    found = rows_of_text(stream, path, encoding, delimiter, lenient=True)
    header = next(found).cells
    part: list[Row] = []
    before, last = 0, False
    for row in chain(found, [None]):
        last = row is None
        if row is not None:
            part.append(row)
        if last or len(part) == rows or stream.tell() - before > _BYTES:
            cells = [(row.cells + [""] * len(header))[: len(header)] for row in part]
            lines = np.array([row.line for row in part], dtype=np.int64)
            columns = zip(*cells, strict=True) if cells else ((),) * len(header)
            table = make_table(
                path, dict(zip(header, columns, strict=True)), partial(np.asarray, lines), **read_as
            )
            broken = {i: row.fault for i, row in enumerate(part) if row.fault}
            yield Stretch(table, broken, position(stream))
            part, before = [], stream.tell()


def _parquet(stream: BufferedIOBase, path: str, rows: int) -> Iterator[Stretch]:
    file = in_parquet(path, lambda: opened_parquet(stream, path, whole=False))
    batches = file.iter_batches(batch_size=rows)
    names = file.schema_arrow.names
    check_header(names, path)
    if not file.metadata.num_rows:  # its columns are written all the same
        empty = file.schema_arrow.empty_table()
        yield Stretch(make_table(path, dict(zip(names, empty.columns, strict=True)), None), {}, 0)
    while (batch := in_parquet(path, lambda: validated(next(batches, None)))) is not None:
        columns = {name: pa.chunked_array([batch.column(i)]) for i, name in enumerate(names)}
        yield Stretch(make_table(path, columns, None), {}, stream.tell())


def _sdf(stream: BufferedIOBase, path: str, encoding: str, rows: int) -> Iterator[Stretch]:
    names = sdf_names(stream, path, encoding)  # first, for the file that is written has one header
    records: list[dict[str, Any]] = []
    for record in chain(sdf_rows(stream, path, encoding), [None]):
        if record is not None:
            records.append(record)
        if record is None or len(records) == rows:
            columns = {name: [record.get(name) for record in records] for name in names}
            yield Stretch(table_from_columns(columns, path), {}, position(stream))
            records = []
