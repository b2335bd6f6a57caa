"""Write a table as Parquet a stretch at a time: as one file, or as a folder of parts."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import building, replacing
from edgewise.data.molecule_sources import check_same_columns
from edgewise.data.table import Table, as_cell
from edgewise.tasks.base import Columns, Numbers

_GROUP = 2**16  # rows of a row group
_PART = 2**20  # rows of a part, a whole number of groups

Write = Callable[[Columns, Table | None], None]


@contextmanager
def parquet_file(out: Path) -> Iterator[Write]:
    """A function that writes stretches of one table; the file appears when all is written."""
    with replacing(out) as stream, _Stretches(lambda: _writer_on(stream)) as stretches:
        yield stretches.write


@contextmanager
def parquet_folder(out: Path) -> Iterator[Write]:
    """The same for a folder with parts of about a million rows, named in the order of the rows."""
    with building(out) as folder:
        numbers = iter(range(10**9))

        def next_part(schema: pa.Schema) -> AbstractContextManager[Any]:
            return _writer_on(folder / f"part-{next(numbers):05}.parquet")(schema)

        with _Stretches(lambda: next_part, most=_PART) as stretches:
            yield stretches.write


def _writer_on(place: Any) -> Callable[[pa.Schema], AbstractContextManager[Any]]:
    from pyarrow import parquet

    return lambda schema: parquet.ParquetWriter(place, schema)


class _Stretches:
    """Stretches on their way into row groups; the columns of the first say what all of them are."""

    def __init__(self, opener: Callable[[], Any], most: int | None = None) -> None:
        self.opener, self.most = opener, most
        self.schema: pa.Schema | None = None
        self.waiting: list[pa.Table] = []
        self.rows = self.written = 0
        self.open = ExitStack()
        self.writer: Any = None

    def __enter__(self) -> "_Stretches":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self.schema is not None and (self.waiting or self.writer is None):
            self._flush()
        self.open.close()

    def write(self, columns: Columns, table: Table | None = None) -> None:
        """Take some rows in; ``table`` has the user's own columns."""
        path = "" if table is None else table.path
        own = {} if table is None else {n: _own_column(table, n) for n in table.columns}
        stretch = pa.table({**own, **{n: _column(cells) for n, cells in columns.items()}})
        if self.schema is None:
            self.schema = stretch.schema
        check_same_columns(self.schema.names, stretch.schema.names, path)
        try:
            stretch = stretch.cast(self.schema)
        except (pa.ArrowException, ValueError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise EdgewiseError(
                f"{path} has columns of other types than the rows before ({reason}); give parts "
                "of the same types, or write .csv"
            ) from error
        self.waiting.append(stretch)
        self.rows += len(stretch)
        if self.rows >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        if self.writer is None:
            self.writer = self.open.enter_context(self.opener()(self.schema))
        assert self.schema is not None
        group = pa.concat_tables(self.waiting) if self.waiting else self.schema.empty_table()
        self.writer.write_table(group, row_group_size=len(group) or None)
        self.written += self.rows
        self.waiting, self.rows = [], 0
        if self.most is not None and self.written >= self.most:
            self.open.close()
            self.written, self.writer = 0, None


def _own_column(table: Table, name: str) -> Any:
    """A column of the user's with its own type, if it has one."""
    stored = table.stored[name]
    if not isinstance(stored, pa.ChunkedArray):
        return _column(list(stored))
    if pa.types.is_dictionary(stored.type):
        return stored.cast(stored.type.value_type)
    if pa.types.is_null(stored.type):
        return _column([as_cell(None)] * len(stored))
    return stored


def _column(cells: list[str]) -> pa.Array:
    if isinstance(cells, Numbers):
        return pa.array([float(cell) if cell else None for cell in cells], pa.float64())
    try:
        return pa.array(cells, pa.string())
    except UnicodeEncodeError:  # bytes of another encoding, which have no place in Parquet
        text = [
            cell.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for cell in cells
        ]
        return pa.array(text, pa.string())
