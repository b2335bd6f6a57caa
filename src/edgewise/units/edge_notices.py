"""What a user should know about the columns of edges before training on them."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from edgewise.data.columns import Column, Numbers, Weights
from edgewise.data.edge_reader import EdgeReader
from edgewise.data.notices import index_notices, leak_notices, quoted
from edgewise.data.sources import GraphInput
from edgewise.data.splits import Split
from edgewise.data.tables import Table
from edgewise.data.times import is_by_time, time_columns
from edgewise.tasks.base import Task
from edgewise.units.node_notices import columns_line


def edge_row_notices(
    found: GraphInput,
    reader: EdgeReader,
    task: Task,
    truth: Tensor,
    split: Split,
    times: np.ndarray | None,
) -> list[str]:
    """Sentences on tables whose edges a model is about to learn from."""
    edges = found.edges
    assert edges is not None
    channels = {column.name: _values(edges, column) for column in reader.tables.channels}
    targets = dict(zip(task.names, truth.reshape(len(truth), -1).numpy().T, strict=False))
    notices = leak_notices(channels, targets, of="edge column")
    notices += index_notices(channels, "edges")
    return notices + time_notices(edges, times, split, task.names, "edges")


def time_notices(
    edges: Table,
    times: np.ndarray | None,
    split: Split,
    names: Sequence[str],
    word: str,
) -> list[str]:
    """A sentence where rows are predicted from later ones, or not split by time.

    Args:
        edges: The table of edges.
        times: When each row happens; None: they are predicted along all edges.
        split: Of the rows.
        names: Columns that are predicted.
        word: What the rows are called.
    """
    if times is None:
        named = [name for name in time_columns(edges) if name not in names]
        if not named:
            return []
        return [
            f"the edges have times ({quoted(named)}), but the split is random, so {word} are "
            f"predicted from later ones; --time-column {named[0]} splits by time"
        ]
    return late_notices(times, split, word)


def late_notices(times: np.ndarray, split: Split, word: str) -> list[str]:
    """A sentence where training rows are later than others."""
    if is_by_time(times, split):
        return []
    return [
        f"the split is not by time: some training {word} are later than validation or test "
        f"{word}; messages still come from earlier edges alone"
    ]


def edge_columns_line(reader: EdgeReader) -> str:
    """One line on all columns, and whether parallel edges are numbered."""
    line = columns_line(reader.tables)
    return f"{line}; parallel edges numbered" if reader.ports else line


def _values(table: Table, column: Column) -> np.ndarray:
    if isinstance(column, Numbers | Weights):
        return table.numbers(column.name)
    return table.categories(column.name)[0]
