"""The names of the nodes of a large table, and the number of each node by its name."""

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.data.graph_reader import no_nodes, wrong_name
from edgewise.data.table import Table
from edgewise.data.table_parts import TableParts
from edgewise.kernels.id_index import NumberIndex, WordIndex, Words


class NodeNames:
    """Names that are whole numbers are kept as such, others as bytes; all of them in memory.

    Args:
        nodes: A row for each node; one without a name, or with that of another, is refused.
        id: The column of names.
    """

    def __init__(self, nodes: TableParts, id: str) -> None:
        if not len(nodes):
            raise no_nodes(nodes.path)
        table = nodes.whole(id, apart=(id,))
        cells: Any = table.stored[id]
        self._numbers = _as_numbers(cells)
        if self._numbers is None or cells.null_count:
            self._numbers = None
            self._names = table.trimmed(id)
            empty = pc.equal(self._names, "").to_numpy()
            index: NumberIndex | WordIndex = self._words
        else:
            empty = np.zeros(0, dtype=bool)
            index = self._by_number = NumberIndex(self._numbers)
        rows = [int(empty.argmax())] if empty.any() else []
        rows += [index.repeated] if index.repeated >= 0 else []
        if rows:
            row = min(rows)
            name = table.column(id)[row].strip()
            raise wrong_name(table, row, name, int(self.find(table, id)[row]), "node")
        self.count = len(nodes)
        self.first = table.trimmed(id)[0].as_py()

    def find(self, table: Table, column: str) -> np.ndarray:
        """The number of the node that each cell of a column names; -1: there is none."""
        cells: Any = table.stored[column]
        numbers = None if self._numbers is None else _as_numbers(cells)
        if numbers is None:
            return self._words.find(_as_words(table.trimmed(column)))
        found = self._by_number.find(numbers)
        if cells.null_count:
            found[pc.is_null(cells).to_numpy()] = -1
        return found

    @cached_property
    def _words(self) -> WordIndex:
        """The names as words; made of numbers only where edges spell them as words."""
        if self._numbers is not None:
            self._names = pa.chunked_array([pc.cast(pa.array(self._numbers), pa.string())])
        return WordIndex(_as_words(self._names))


def _as_numbers(cells: pa.ChunkedArray) -> np.ndarray | None:
    """Whole numbers, 0 where there is none; None where the cells are not all that."""
    if not pa.types.is_integer(cells.type):
        return None
    try:
        return pc.cast(cells, pa.int64()).fill_null(0).to_numpy()
    except pa.ArrowInvalid:  # above the largest with a sign
        return None


def _as_words(cells: pa.ChunkedArray) -> Words:
    if cells.num_chunks == 1:
        joined = cells.chunk(0)
    else:  # 2 GB and more of names need longer numbers
        joined = pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in cells.chunks])
    if not len(joined):
        return Words(np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.uint8))
    kind = np.int64 if pa.types.is_large_string(joined.type) else np.int32
    _, start, data = joined.buffers()
    starts = np.frombuffer(start, kind)[joined.offset : joined.offset + len(joined) + 1]
    return Words(starts, np.frombuffer(data or b"", np.uint8))
