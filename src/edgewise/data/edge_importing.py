"""Tables of any length to a store whose edges are rows of their own, a stretch of rows at a time.

What is learnt and what is written is what :class:`~edgewise.data.edge_reader.EdgeReader` gives for
the same tables. In memory are the names of the nodes and one column at a time.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from edgewise.data.array_files import ArrayFile
from edgewise.data.columns import Column
from edgewise.data.edge_lists import STEPS, KeptEdges, ListWriter
from edgewise.data.edge_reader import EdgeReader, port_channel
from edgewise.data.edge_store import EDGES
from edgewise.data.graph_reader import TableNotes
from edgewise.data.importing import Importer, plain_cells
from edgewise.data.store_files import TableWriter, array_writer, written
from edgewise.data.table_parts import ROWS


@dataclass(frozen=True)
class EdgeChoices:
    """How edges are read that are predicted.

    Args:
        directed: Whether edges the other way are others.
        ports: Whether parallel edges are numbered, where there are any.
        time: Column of times; empty: there is none.
        shown: Columns that are known only together with the label.
    """

    directed: bool
    ports: bool
    time: str
    shown: tuple[str, ...]


class EdgeImporter(Importer):
    """Two tables on their way into the folder of a store of edges."""

    def learn_edges(self, rows: np.ndarray | None, choices: EdgeChoices) -> EdgeReader:
        """Learn how columns are read, from some edges and the nodes at their ends.

        Whether parallel edges are numbered is found out when their lists are written.

        Args:
            rows: Of the table of edges; without it all.
            choices: How they are read.
        """

        def chosen(first: int, count: int) -> np.ndarray | slice:
            return slice(None) if training is None else training[first : first + count]

        training, nodes = None, None
        if rows is not None:
            training = np.zeros(len(self.edges), dtype=bool)
            training[rows] = True
            ends = np.unique(self._ends[rows])
            nodes = ends[ends >= 0]
        self._reader = self._learnt_from(nodes, chosen)
        self._refuse_gaps(self._reader)
        shown: tuple[Column, ...] = tuple(
            self._learn_channel(name, "", chosen) for name in choices.shown
        )
        return EdgeReader(self._reader, True, choices.ports, choices.time, choices.directed, shown)

    @property
    def ends(self) -> np.ndarray:
        """The numbers of both ends of each row, -1 for no node of the table."""
        return self._ends

    @property
    def unknown(self) -> np.ndarray:
        """Whether each row of the table of edges names a node that there is not."""
        parts = [
            (self._ends[first : first + ROWS] < 0).any(axis=1)
            for first in range(0, len(self._ends), ROWS)
        ]
        return np.concatenate([np.zeros(0, dtype=bool), *parts])

    def write_edges(
        self,
        folder: Path,
        reader: EdgeReader,
        kept: Sequence[str],
        times: np.ndarray | None,
        *,
        like: bool,
    ) -> tuple[dict[str, ArrayFile], EdgeReader, TableNotes]:
        """Write the arrays and tables of a store.

        Args:
            folder: Of the store.
            reader: How the tables are read.
            kept: Columns of the table of edges that are kept beside the arrays.
            times: When each row happens.
            like: Whether the reader is that of other tables, which parallel edges do not change.

        Returns:
            The arrays, the reader with what the edges decided, and what was left out.
        """
        self._reader = reader.tables
        self._all = len(self.nodes) + (STEPS + 3) * len(self.edges)
        unseen: dict[str, Counter[str]] = {"nodes": Counter(), "edges": Counter()}
        edges = KeptEdges(self._ends, len(self.nodes), times)
        lists = ListWriter(
            folder,
            self._scratch,
            edges,
            directed=reader.directed,
            show=lambda rows: self._advance("sorting edges", rows),
        )
        files = lists.write()
        if not like:
            reader = replace(reader, ports=reader.ports and bool(lists.ports.any()))
        files["x"] = self._write_nodes(folder, reader.tables, (), unseen["nodes"])
        files |= self._write_rows(folder, edges, reader, lists.ports, unseen["edges"])
        self._write_kept(folder, kept)
        if times is not None:
            files["time"] = written(folder, "time", times.astype(np.float64))
        counted = {n: c for side in unseen.values() for n, c in side.items() if c}
        return files, reader, TableNotes(len(self.edges) - self._kept, 0, counted, 0)

    def _write_rows(
        self,
        folder: Path,
        edges: KeptEdges,
        reader: EdgeReader,
        ports: np.ndarray,
        unseen: Counter[str],
    ) -> dict[str, ArrayFile]:
        """The arrays with a row for each edge, in their order."""
        with array_writer(folder, "edge_index", np.int64) as ends:
            for side in (0, 1):
                for _, pairs in edges.stretches():
                    ends.append(pairs[:, side])
        width = len(reader.channel_names)
        with (
            array_writer(folder, "row", np.int64) as row,
            array_writer(folder, "edge_attr", np.float32, width=width) as attr,
        ):
            done = 0
            for first, value in self._channels(reader.tables, unseen):
                known = self._known(first, len(value))
                value = value[known]
                if reader.ports:
                    port = torch.from_numpy(np.array(ports[done : done + len(known)]))
                    value = np.hstack([value, port_channel(port).numpy()])
                attr.append(value)
                row.append(known + first)
                done += len(known)
                self._advance("writing edges", len(value))
        files = {"edge_index": ends.file, "row": row.file, "edge_attr": attr.file}
        return files | self._write_shown(folder, reader)

    def _write_shown(self, folder: Path, reader: EdgeReader) -> dict[str, ArrayFile]:
        if not reader.shown:
            return {}
        names = [column.name for column in reader.shown if column.name in self.edges.columns]
        width = sum(len(column.outputs) for column in reader.shown)
        with array_writer(folder, "shown", np.float32, width=width) as shown:
            for first, table in self._stretches(names):
                shown.append(reader.encode_shown(table)[self._known(first, len(table))])
        return {"shown": shown.file}

    def _write_kept(self, folder: Path, kept: Sequence[str]) -> None:
        """Columns of all rows as they are; their numbers, where there are none."""
        with TableWriter(folder, EDGES) as writer:
            for first, table in self._stretches(kept):
                cells: dict[str, Any] = {name: plain_cells(table.stored[name]) for name in kept}
                cells = cells or {"row": np.arange(first, first + len(table))}
                writer.append(pa.table(cells))
                self._advance("writing edges", len(table))

    def _stretches(self, names: Sequence[str]) -> Any:
        """Some columns, or the ends where none is asked for, some rows at a time."""
        assert self._reader is not None
        return self.edges.stretches(list(names) or [self._reader.source])

    def _known(self, first: int, count: int) -> np.ndarray:
        """Which of some rows join two nodes, counted from the first."""
        return np.flatnonzero((self._ends[first : first + count] >= 0).all(axis=1))
