"""Tables from CSV, TSV and Parquet files: every cell a string, every row with its line."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.core.errors import EdgewiseError, missing_extra, preview
from edgewise.core.missing import is_missing
from edgewise.data.archives import gunzip

if TYPE_CHECKING:
    import pandas

# What people write where nothing is known. Ids are exempt: a node may well be named NA.
_LONGEST_CELL = 2**24  # csv's own limit of 131,072 is too small for a large structure
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "None"})
_TOO_LARGE = 1e18
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}


@dataclass(frozen=True)
class Table:
    """Columns of strings. A missing cell is an empty string."""

    path: str  # for messages
    columns: dict[str, tuple[str, ...]]
    lines: tuple[int, ...]  # the line each row ends on, or its number where there are no lines
    has_lines: bool = True

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """``edges.csv:12``, or ``edges.parquet, row 10`` (from 0)."""
        between = ":" if self.has_lines else ", row "
        return f"{self.path}{between}{self.lines[row]}"

    def column(self, name: str) -> tuple[str, ...]:
        if name not in self.columns:
            # A wrong delimiter makes one wide column, so the header is what the user must see.
            raise EdgewiseError(
                f"{self.path} has no column {name!r}; its columns are "
                f"{preview(list(self.columns), limit=12)}"
            )
        return self.columns[name]

    def numbers(self, name: str) -> list[float]:
        """The column as finite numbers, NaN where a cell is missing."""
        values = []
        for row, cell in enumerate(self.column(name)):
            value = as_number(cell)
            if value is None:
                raise EdgewiseError(
                    f"{self.where(row)}: column {name!r} holds {cell!r}, expected a number of "
                    "ordinary size; mend the cell, or leave it empty"
                )
            values.append(value)
        return values


def as_number(cell: str) -> float | None:
    """The number in a cell, NaN for a missing one, None for anything else.

    Infinity and numbers whose squares would leave single precision count as something else.
    """
    text = cell.strip()
    if text in MISSING:
        return math.nan
    if "_" in text:  # Python would read 1_2 as 12
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < _TOO_LARGE else None


def read_table(path: str | Path, *, encoding: str = "utf-8", delimiter: str | None = None) -> Table:
    """Read a CSV, TSV or Parquet file; the first two may be gzipped.

    Args:
        path: The file; its ending says what it is.
        encoding: Of text files; a byte-order mark is understood.
        delimiter: Between cells; without it a comma for ``.csv``, a tab for ``.tsv``.
    """
    path = Path(path)
    suffix = Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EdgewiseError(f"{path} cannot be read ({error.strerror}); check the name") from error
    if not data.strip():
        raise EdgewiseError(f"{path} is empty; expected a header line with the column names")
    if suffix == ".parquet":
        return _parse_parquet(data, str(path))
    if suffix not in DELIMITERS and delimiter is None:
        raise EdgewiseError(
            f"{path} ends in {suffix or 'nothing'!r}; give a .csv, .tsv or .parquet file"
        )
    data = gunzip(data, str(path)) if path.suffix == ".gz" else data
    return parse_text(data, str(path), encoding, delimiter or DELIMITERS[suffix])


def parse_text(data: bytes, path: str, encoding: str = "utf-8", delimiter: str = ",") -> Table:
    """Parse delimited text: quoted cells may hold delimiters, line ends and quotes."""
    rows, lines = [], []
    reader = csv_reader(io.StringIO(_decoded(data, path, encoding), newline=""), delimiter)
    header: list[str] = []
    try:
        for cells in reader:
            if is_blank(cells, header):
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                check_header(header, path)
                continue
            if len(cells) != len(header):
                raise EdgewiseError(
                    f"{path}:{reader.line_num}: {len(cells)} cells under {len(header)} column "
                    "names; put cells that hold the delimiter in double quotes"
                )
            rows.append(cells)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise EdgewiseError(
            f"{path}:{reader.line_num}: {error}; look for a double quote that is not closed"
        ) from error
    columns = zip(*rows, strict=True) if rows else ((),) * len(header)
    return Table(path, dict(zip(header, columns, strict=True)), tuple(lines))


def csv_reader(text: Iterable[str], delimiter: str) -> Any:
    """A reader of rows that takes cells of any reasonable length."""
    csv.field_size_limit(_LONGEST_CELL)
    return csv.reader(text, delimiter=delimiter, strict=True)


def is_blank(cells: Sequence[str], header: Sequence[str]) -> bool:
    """Whether a line is empty: no row, unless the table has one column only."""
    return not cells or (len(cells) == 1 != len(header) and not cells[0].strip())


def table_from_columns(columns: dict[str, Sequence[Any]], path: str) -> Table:
    """A table from values of any type, row numbers standing in for lines."""
    cells = {name: tuple(_cell(value) for value in values) for name, values in columns.items()}
    rows = range(len(next(iter(cells.values()), ())))
    return Table(path, cells, tuple(rows), has_lines=False)


def table_from_frame(frame: "pandas.DataFrame", path: str = "the table") -> Table:
    """A table from a pandas ``DataFrame``."""
    header = [str(name) for name in frame.columns]
    check_header(header, path)
    values = (frame.iloc[:, i].tolist() for i in range(len(header)))
    return table_from_columns(dict(zip(header, values, strict=True)), path)


def _parse_parquet(data: bytes, path: str) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing_extra("pyarrow", "parquet", "a Parquet table") from error
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(data))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise EdgewiseError(
            f"{path} is not a whole Parquet file ({reason}); export it again"
        ) from error
    check_header(table.column_names, path)
    return table_from_columns({n: table[n].to_pylist() for n in table.column_names}, path)


def _cell(value: Any) -> str:
    return "" if is_missing(value) else str(value)


def _decoded(data: bytes, path: str, encoding: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise EdgewiseError(
            f"{path}:{line}: byte 0x{data[error.start]:02x} is not {encoding}; save the file as "
            "UTF-8, or pass encoding='latin-1' if it comes from an old spreadsheet"
        ) from error
    except LookupError as error:
        raise EdgewiseError(
            f"there is no encoding {encoding!r}; utf-8 and latin-1 are common"
        ) from error


def check_header(header: Sequence[str], path: str) -> None:
    twice = sorted({name for name in header if list(header).count(name) > 1})
    if twice:
        raise EdgewiseError(f"{path}: column name(s) {preview(twice)} stand twice; rename them")
