"""Tables of any length, a stretch of rows at a time; a broken row is kept, and said to be one."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError, missing_extra
from edgewise.data.chemistry import sdf_records
from edgewise.data.tables import (
    DELIMITERS,
    Table,
    check_header,
    csv_reader,
    is_blank,
    table_from_columns,
)

ROWS = 1024  # in a stretch
_SDF_FIELD = re.compile(rb">.*<(.+)>")


@dataclass(frozen=True)
class Stretch:
    """Some rows of a file, one after the other."""

    table: Table
    broken: dict[int, str]  # rows of this stretch that are not rows of the table, and why
    done: int  # bytes of the file that are read


def stream_table(
    path: str | Path, *, encoding: str = "utf-8", rows: int = ROWS
) -> Iterator[Stretch]:
    """Read CSV, TSV (also gzipped), Parquet or SDF, never more than ``rows`` at a time."""
    path = Path(path)
    name = path.name.lower().removesuffix(".gz")
    try:
        raw = path.open("rb")
    except OSError as error:
        raise EdgewiseError(f"{path} cannot be read ({error.strerror}); check the name") from error
    with raw:
        stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        try:
            if name.endswith(".parquet"):
                yield from _parquet(raw, str(path), rows)
            elif name.endswith(".sdf"):
                yield from _sdf(stream, raw, str(path), rows)
            elif (ending := Path(name).suffix) in DELIMITERS:
                yield from _delimited(stream, raw, str(path), encoding, DELIMITERS[ending], rows)
            else:
                raise EdgewiseError(f"{path} is not a .csv, .tsv, .parquet or .sdf file")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise EdgewiseError(f"{path} is not a complete gzip file ({error})") from error
        except OSError as error:
            raise EdgewiseError(
                f"{path} cannot be read to its end ({error.strerror or error}); copy it anew"
            ) from error


def _delimited(
    stream: Any, raw: Any, path: str, encoding: str, delimiter: str, rows: int
) -> Iterator[Stretch]:
    with _text(stream, encoding) as text:
        reader = csv_reader(text, delimiter)
        header: list[str] = []
        cells_of_rows: list[list[str]] = []
        lines: list[int] = []
        broken: dict[int, str] = {}
        for cells, wrong in _rows(reader):
            if not wrong and is_blank(cells, header):
                continue
            if not header:
                if wrong:
                    raise EdgewiseError(f"{path}:1: the line of column names is damaged ({wrong})")
                header = [cell.strip() for cell in cells]
                check_header(header, path)
                continue
            wrong = wrong or _fault(cells, header, encoding)
            if wrong:
                broken[len(lines)] = wrong
                cells = (cells + [""] * len(header))[: len(header)]
            cells_of_rows.append(cells)
            lines.append(reader.line_num)
            if len(lines) == rows:
                yield Stretch(_table(path, header, cells_of_rows, lines), broken, raw.tell())
                cells_of_rows, lines, broken = [], [], {}
        if not header:
            raise EdgewiseError(f"{path} is empty; expected a header line with the column names")
        yield Stretch(_table(path, header, cells_of_rows, lines), broken, raw.tell())


def _fault(cells: list[str], header: list[str], encoding: str) -> str:
    """What is wrong with a row, or nothing."""
    if len(cells) != len(header):
        return f"{len(cells)} cells under {len(header)} column names"
    if any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
        return f"bytes that are not {encoding}"
    return ""


def _rows(reader: Any) -> Iterator[tuple[list[str], str]]:
    """Each row, and what is wrong with it; the reader goes on behind a damaged one."""
    while True:
        try:
            yield next(reader), ""
        except StopIteration:
            return
        except csv.Error as error:
            yield [], f"{error}; look for a double quote that is not closed"


def _text(stream: Any, encoding: str) -> io.TextIOWrapper:
    head = stream.read(2)
    stream.seek(0)
    if head in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        encoding = "utf-8-sig"  # the same, and a byte-order mark is understood
    try:
        return io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline="")
    except LookupError as error:
        raise EdgewiseError(
            f"there is no encoding {encoding!r}; utf-8 and latin-1 are common"
        ) from error


def _table(path: str, header: list[str], rows: list[list[str]], lines: list[int]) -> Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(header)
    return Table(path, dict(zip(header, columns, strict=True)), tuple(lines))


def _parquet(raw: Any, path: str, rows: int) -> Iterator[Stretch]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing_extra("pyarrow", "parquet", "a Parquet table") from error
    try:
        for batch in pyarrow.parquet.ParquetFile(raw).iter_batches(batch_size=rows):
            names = batch.schema.names
            check_header(names, path)
            columns = {name: batch.column(i).to_pylist() for i, name in enumerate(names)}
            yield Stretch(table_from_columns(columns, path), {}, raw.tell())
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, EdgewiseError):
            raise
        reason = str(error).splitlines()[0].rstrip(".")
        raise EdgewiseError(f"{path} is not a whole Parquet file ({reason})") from error


def _sdf(stream: Any, raw: Any, path: str, rows: int) -> Iterator[Stretch]:
    # All names before the first row, for the file that is written has one header.
    fields = (_SDF_FIELD.match(line) for line in stream)
    names = dict.fromkeys(["smiles", *(f[1].decode("utf-8", "replace") for f in fields if f)])
    stream.seek(0)
    records: list[dict[str, Any]] = []

    def stretch() -> Stretch:
        columns: dict[str, Sequence[Any]] = {
            name: [record.get(name) for record in records] for name in names
        }
        return Stretch(table_from_columns(columns, path), {}, raw.tell())

    for record in sdf_records(stream):
        records.append(record)
        if len(records) == rows:
            yield stretch()
            records = []
    yield stretch()
