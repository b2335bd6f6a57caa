"""What a user should know about the columns of edges before training on them."""

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
    if times is None:
        named = [name for name in time_columns(edges) if name not in task.names]
        if named:
            notices.append(
                f"the edges have times ({quoted(named)}), but the split is random, so edges are "
                f"predicted from later ones; --time-column {named[0]} splits by time"
            )
    elif not is_by_time(times, split):
        notices.append(
            "the split is not by time: some training edges are later than validation or test "
            "edges; messages still come from earlier edges alone"
        )
    return notices


def edge_columns_line(reader: EdgeReader) -> str:
    """One line on all columns, and whether parallel edges are numbered."""
    line = columns_line(reader.tables)
    return f"{line}; parallel edges numbered" if reader.ports else line


def _values(table: Table, column: Column) -> np.ndarray:
    if isinstance(column, Numbers | Weights):
        return table.numbers(column.name)
    return table.categories(column.name)[0]
