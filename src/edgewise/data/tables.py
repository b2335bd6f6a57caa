"""Tables from CSV, TSV and Parquet files, from pandas frames and from columns of values."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.data.arrow_columns import TextFile, read_parquet
from edgewise.data.cells import MISSING, as_number
from edgewise.data.delimited import DELIMITERS, check_header, find_delimiter
from edgewise.data.table import Cells, Table, as_cell

if TYPE_CHECKING:
    import pandas

__all__ = [
    "DELIMITERS", "MISSING", "Table", "as_number", "check_header", "make_table", "open_binary",
    "parse_text", "read_table", "table_ending", "table_from_columns", "table_from_frame",
    "text_file",
]  # fmt: skip


def read_table(
    path: str | Path,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str = ".",
    missing_values: Sequence[str] = (),
) -> Table:
    """Read a CSV, TSV or Parquet file; the first two may be gzipped.

    Args:
        path: The file; its ending says what it is.
        encoding: Of text files; a byte-order mark is understood.
        delimiter: Between cells; without it a tab for ``.tsv``; for ``.csv`` a comma, or a
            semicolon where the header has some and no comma.
        decimal: The decimal point of numbers in text files.
        missing_values: Words that stand for missing, beside :data:`MISSING`.
    """
    path = Path(path)
    if table_ending(path) == ".parquet":
        with open_binary(path) as stream:
            columns = read_parquet(stream, str(path))
            return make_table(str(path), columns, None, missing_values=missing_values)
    file = text_file(path, encoding, delimiter)
    return make_table(
        str(path), file.columns(), file.lines, decimal=decimal, missing_values=missing_values
    )


def text_file(path: Path, encoding: str = "utf-8", delimiter: str | None = None) -> TextFile:
    """A CSV or TSV file, with what stands between its cells; other endings are refused."""
    suffix = table_ending(path)
    if suffix not in DELIMITERS and delimiter is None:
        with open_binary(path):  # a missing file is reported first
            raise EdgewiseError(
                f"{path} ends in {suffix or 'nothing'!r}; give a .csv, .tsv or .parquet file"
            )
    if delimiter is None:
        with open_binary(path) as stream:
            delimiter = find_delimiter(stream, str(path), encoding, DELIMITERS[suffix])
    return TextFile(str(path), lambda: open_binary(path), encoding, delimiter)


def table_ending(path: Path) -> str:
    """``.csv`` of ``nodes.csv.gz``."""
    return Path(path.stem).suffix.lower() if path.suffix == ".gz" else path.suffix.lower()


def parse_text(
    data: bytes,
    path: str,
    encoding: str = "utf-8",
    delimiter: str = ",",
    *,
    decimal: str = ".",
    missing_values: Sequence[str] = (),
) -> Table:
    """Parse delimited text: quoted cells may hold delimiters, line ends and quotes."""
    file = TextFile(path, lambda: io.BytesIO(data), encoding, delimiter)
    return make_table(
        path, file.columns(), file.lines, decimal=decimal, missing_values=missing_values
    )


@contextmanager
def open_binary(path: Path) -> Iterator[io.BufferedIOBase]:
    """A file to read, unpacked on the way if it is gzipped; failures are sentences."""
    try:
        raw = path.open("rb")
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        reason = getattr(error, "strerror", None) or error
        raise EdgewiseError(f"{path} cannot be read ({reason}); check the name") from error
    with raw:
        try:
            yield gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            reason = str(error).rstrip(".")
            raise EdgewiseError(
                f"{path} is not a complete gzip file ({reason}); pack it again"
            ) from error
        except OSError as error:
            raise EdgewiseError(
                f"{path} cannot be read to its end ({error.strerror or error}); copy it anew"
            ) from error


def table_from_columns(
    columns: Mapping[str, Sequence[Any]],
    path: str,
    *,
    decimal: str = ".",
    missing_values: Sequence[str] = (),
) -> Table:
    """A table from values of any type, row numbers standing in for lines."""
    cells = {name: tuple(as_cell(value) for value in values) for name, values in columns.items()}
    return make_table(path, cells, None, decimal=decimal, missing_values=missing_values)


def table_from_frame(frame: "pandas.DataFrame", path: str = "the table") -> Table:
    """A table from a pandas ``DataFrame``."""
    header = [str(name) for name in frame.columns]
    check_header(header, path)
    values = (frame.iloc[:, i].tolist() for i in range(len(header)))
    return table_from_columns(dict(zip(header, values, strict=True)), path)


def make_table(
    path: str,
    columns: Mapping[str, Cells],
    find_lines: Callable[[], np.ndarray] | None,
    *,
    decimal: str = ".",
    missing_values: Sequence[str] = (),
) -> Table:
    """A table of columns as they are stored."""
    if len(decimal) != 1 or decimal.isalnum() or decimal in "+-_ ":
        raise EdgewiseError(f"decimal={decimal!r} is no decimal point; choose . or ,")
    rows = len(next(iter(columns.values()), ()))
    missing = MISSING | {word.strip() for word in missing_values}
    return Table(path, columns, rows, find_lines, decimal, missing)
