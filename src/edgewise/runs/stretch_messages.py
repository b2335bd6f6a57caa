"""Stretches of rows and their predictions as bytes in Arrow's format, for other processes."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from edgewise.data.streams import Stretch
from edgewise.data.table import Cells, Table
from edgewise.tasks.base import Columns, Numbers
from edgewise.units.base import Predicted

_ABOUT = b"edgewise"


def stretch_to_bytes(stretch: Stretch) -> bytes:
    """Some rows of a file, to be read by :func:`stretch_from_bytes`."""
    about = {"broken": stretch.broken, "done": stretch.done, "size": stretch.size}
    return _to_bytes(stretch.table, {}, about)


def stretch_from_bytes(content: Any) -> Stretch:
    table, _, about = _from_bytes(content)
    broken = {int(row): fault for row, fault in about["broken"].items()}
    return Stretch(table, broken, about["done"], about["size"])


def predicted_to_bytes(some: Predicted) -> bytes:
    """Some predictions with the rows they are for, to be read by :func:`predicted_from_bytes`."""
    assert some.table is not None
    about = {"good": some.good, "bad": some.bad, "done": some.done, "size": some.size}
    return _to_bytes(some.table, some.columns, about)


def predicted_from_bytes(content: Any) -> Predicted:
    table, columns, about = _from_bytes(content)
    return Predicted(columns, about["good"], about["bad"], table, about["done"], about["size"])


def _to_bytes(table: Table, columns: Columns, about: Mapping[str, Any]) -> bytes:
    arrays = [*map(_to_arrow, table.stored.values()), *map(_to_arrow, columns.values())]
    names = [*table.stored, *columns]
    content = {
        **about,
        "path": table.path,
        "own": len(table.stored),
        "text": [not isinstance(cells, pa.ChunkedArray) for cells in table.stored.values()],
        "numbers": [isinstance(cells, Numbers) for cells in columns.values()],
        "rows": len(table),
        "decimal": table.decimal,
        "missing": sorted(table.missing),
    }
    frame = pa.table(arrays, names).replace_schema_metadata({_ABOUT: json.dumps(content)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, frame.schema) as writer:
        writer.write_table(frame)
    return sink.getvalue().to_pybytes()


def _from_bytes(content: Any) -> tuple[Table, Columns, dict[str, Any]]:
    with pa.ipc.open_stream(content) as reader:
        frame = reader.read_all()
    about = json.loads(frame.schema.metadata[_ABOUT])
    own = about["own"]
    stored: dict[str, Cells] = {
        name: tuple(_to_text(cells)) if text else cells
        for name, cells, text in zip(frame.column_names, frame.columns, about["text"], strict=False)
    }
    table = Table(
        about["path"], stored, about["rows"], None, about["decimal"], frozenset(about["missing"])
    )
    columns: Columns = {
        name: (Numbers if number else list)(_to_text(cells))
        for name, cells, number in zip(
            frame.column_names[own:], frame.columns[own:], about["numbers"], strict=True
        )
    }
    return table, columns, about


def _to_arrow(cells: Cells | list[str]) -> Any:
    """Text as bytes: cells of a damaged row may hold some that are no text."""
    if isinstance(cells, pa.ChunkedArray):
        return cells
    return pa.array([cell.encode("utf-8", "surrogateescape") for cell in cells], pa.binary())


def _to_text(cells: pa.ChunkedArray) -> list[str]:
    return [cell.decode("utf-8", "surrogateescape") for cell in cells.to_pylist()]
