"""Tables of any length to a graph store, a stretch of rows at a time.

What is learnt and what is written is what :mod:`edgewise.data.graph_tables` and
:meth:`GraphReader.read` give for the same tables, but for the order of the edges. The names of the
nodes and one column of them at a time are in memory; of the edges never more than some millions.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.data import columns
from edgewise.data.array_files import ArrayFile
from edgewise.data.column_kinds import WordCounts, kind_of_words
from edgewise.data.columns import Categories, Column, Numbers, Weights
from edgewise.data.edge_sorting import EdgeSorter
from edgewise.data.graph_reader import GraphReader, TableNotes
from edgewise.data.graph_store import NODES
from edgewise.data.graph_tables import check_policies, learn_features, named_kinds, text_channel
from edgewise.data.node_names import NodeNames
from edgewise.data.store_files import TableWriter, array_writer
from edgewise.data.table import Table
from edgewise.data.table_parts import ROWS, TableParts

Show = Callable[[str, int, int | None], None]
# Which of some edges, from the first of so many rows on, are learnt from.
Chosen = Callable[[int, int], np.ndarray | slice]


@dataclass(frozen=True)
class ColumnChoices:
    """How columns are to be read; see :func:`edgewise.data.graph_tables.learn_graph_reader`."""

    id: str = "id"
    source: str = "source"
    target: str = "target"
    directed: bool = True
    unknown: str = "error"
    duplicates: str = "error"
    missing: str = "error"
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


class Importer:
    """Two tables on their way into the folder of a store.

    Args:
        nodes: One row per node.
        edges: One row per edge.
        reader: How the tables are read, where it was learnt before.
        choices: How they are to be read, otherwise.
        scratch: A folder for what does not fit into memory.
        show: Called with what is going on, how much is done, of how much.
    """

    def __init__(
        self,
        nodes: TableParts,
        edges: TableParts,
        *,
        scratch: Path,
        show: Show,
        reader: GraphReader | None = None,
        choices: ColumnChoices | None = None,
    ) -> None:
        self.nodes, self.edges, self._reader = nodes, edges, reader
        self._choices = chosen = choices or ColumnChoices()
        self._scratch, self._show = scratch, show
        if reader is None:
            check_policies(
                missing=chosen.missing, unknown=chosen.unknown, duplicates=chosen.duplicates
            )
            self._named = named_kinds(
                nodes, edges, chosen.numbers, chosen.categories, chosen.text, chosen.ignore
            )
        self._done, self._all = 0, 2 * len(nodes) + 5 * len(edges)

    def read_ends(self) -> None:
        """Find the nodes that each edge joins; names that are none are refused, or left out."""
        reader = self._reader or self._unlearnt()
        self.nodes.require(reader.id)
        self.edges.require(reader.source, reader.target)
        names = NodeNames(self.nodes, reader.id)
        ends = (reader.source, reader.target)
        path, kept = self._scratch / "ends", 0
        kind: Any = np.int32 if names.count < 2**31 else np.int64
        with path.open("wb") as stream:
            for _, table in self.edges.stretches(list(dict.fromkeys(ends)), apart=ends):
                pairs: np.ndarray = np.stack([names.find(table, end) for end in ends], axis=1)
                known = (pairs >= 0).all(axis=1)
                if reader.unknown == "error" and not known.all():
                    row = int((~known).argmax())
                    raise reader.unknown_node(table, row, pairs[row], self.nodes.path)
                kept += int(known.sum())
                stream.write(pairs.data)
                self._advance("matching edges with nodes", len(table))
        if len(self.edges) and not kept:
            raise reader.no_edge(self.edges.by_column(), names.first, self.nodes.path)
        self._kept = kept
        self._ends = np.zeros((0, 2), kind)
        if len(self.edges):
            self._ends = np.memmap(path, kind, "r", shape=(len(self.edges), 2)).view(np.ndarray)

    def learn(self, rows: np.ndarray | None) -> GraphReader:
        """Learn how columns are read, from some nodes and the edges that touch one of them."""
        if self._reader is None:
            self._reader = self._learnt(rows)
        self._refuse_gaps(self._reader)
        return self._reader

    def _refuse_gaps(self, reader: GraphReader) -> None:
        nodes = self.nodes.by_column()
        for column in reader.features:
            if isinstance(column, Numbers) and not column.fill:
                column.refuse_gaps(nodes)

    def write(self, folder: Path, kept: Sequence[str]) -> tuple[dict[str, ArrayFile], TableNotes]:
        """Write the arrays and the table of nodes, in which some columns are kept."""
        reader = self._reader
        assert reader is not None
        unseen: dict[str, Counter[str]] = {"nodes": Counter(), "edges": Counter()}
        files = {"x": self._write_nodes(folder, reader, kept, unseen["nodes"])}
        sorter = EdgeSorter(
            self._scratch,
            nodes=len(self.nodes),
            channels=len(reader.channel_names),
            directed=reader.directed,
            duplicates=reader.duplicates,
            rows=len(self.edges),
        )
        for first, value in self._channels(reader, unseen["edges"]):
            pairs = self._ends[first : first + len(value)]
            (known,) = np.nonzero((pairs >= 0).all(axis=1))
            if len(known) < len(pairs):
                pairs, value = pairs[known], value[known]
            sorter.add(pairs, value, known + first)
            self._advance("sorting edges", len(value))
        files |= sorter.write(
            folder, self.edges.where, lambda rows: self._advance("writing edges", rows)
        )
        counted = {n: c for side in unseen.values() for n, c in side.items() if c}
        return files, TableNotes(len(self.edges) - self._kept, sorter.merged, counted, 0)

    def _unlearnt(self) -> GraphReader:
        chosen = self._choices
        return GraphReader(
            chosen.id, chosen.source, chosen.target, chosen.directed, chosen.unknown,
            chosen.duplicates, (), (), None,
        )  # fmt: skip

    def _learnt(self, rows: np.ndarray | None) -> GraphReader:
        if rows is None:
            return self._learnt_from(None, _all_edges)
        training = np.zeros(len(self.nodes) + 1, dtype=bool)  # -1, no such node: the last
        training[rows] = True

        def touching(first: int, count: int) -> np.ndarray:
            source, target = self._ends[first : first + count].T
            return training[source] | training[target]

        return self._learnt_from(rows, touching)

    def _learnt_from(self, rows: np.ndarray | None, edges: Chosen) -> GraphReader:
        chosen = self._choices
        named = self._named
        nodes = self.nodes.by_column()
        left_out = (chosen.id, *chosen.ignore)
        features = learn_features(nodes, named, left_out, missing=chosen.missing, rows=rows)
        self._advance("learning columns", len(self.nodes))
        left_out = (chosen.source, chosen.target, *chosen.ignore)
        names = [name for name in self.edges.columns if name not in left_out]
        channels = [self._learn_channel(name, named.get(name, ""), edges) for name in names]
        self._advance("learning columns", len(self.edges))
        reader = self._unlearnt()
        return GraphReader(**{**vars(reader), "features": features, "channels": tuple(channels)})

    def _learn_channel(self, name: str, kind: str, chosen: Chosen) -> Column:
        """What :func:`edgewise.data.graph_tables.learn_channel` gives, some rows at a time."""
        if kind in ("", "numbers"):
            weights = self._learn_weights(name, chosen, strict=kind == "numbers")
            if weights is not None:
                return weights
        counts = WordCounts()
        present: set[str] = set()
        for first, table in self.edges.stretches([name]):
            counts.add(table, name, first)
            codes, words = table.categories(name)
            codes = codes[chosen(first, len(codes))]
            present.update(words[code] for code in np.unique(codes).tolist() if code >= 0)
        if (kind or kind_of_words(counts, self.edges.by_column(), name)) == "text":
            raise text_channel(self.edges.path, name)
        return Categories(name, tuple(sorted(present)))

    def _learn_weights(self, name: str, chosen: Chosen, *, strict: bool) -> Weights | None:
        """None: some cell is no number; ``strict`` refuses it."""
        largest, signed = 0.0, False
        for first, table in self.edges.stretches([name]):
            value, word = table.parsed_numbers(name)
            if word is not None:
                if strict:
                    table.numbers(name)
                return None
            value = np.nan_to_num(value)
            learnt_from = value[chosen(first, len(value))]
            largest = max(largest, float(np.abs(learnt_from).max(initial=0.0)))
            signed = signed or bool((value < 0).any())
        return Weights(name, largest or 1.0, signed)

    def _write_nodes(
        self, folder: Path, reader: GraphReader, kept: Sequence[str], unseen: Counter[str]
    ) -> ArrayFile:
        names = list(dict.fromkeys((reader.id, *kept, *(c.name for c in reader.features))))
        self.nodes.require(*names)
        with (
            array_writer(folder, "x", np.float32, width=len(reader.feature_names)) as x,
            TableWriter(folder, NODES) as rows,
        ):
            for _, table in self.nodes.stretches(names, apart=(reader.id,)):
                x.append(columns.encoded(reader.features, table))
                count_unseen(unseen, reader.features, table)
                ids: Any = table.stored[reader.id]
                ids = ids if pa.types.is_integer(ids.type) else table.trimmed(reader.id)
                others = {name: plain_cells(table.stored[name]) for name in kept}
                rows.append(pa.table({reader.id: ids, **others}))
                self._advance("encoding nodes", len(table))
        return x.file

    def _channels(
        self, reader: GraphReader, unseen: Counter[str]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The channels of some edges at a time, and the row of the first."""
        names = [column.name for column in reader.channels]
        if not names:
            for first in range(0, len(self.edges), ROWS):
                yield first, np.ones((min(ROWS, len(self.edges) - first), 1), dtype=np.float32)
            return
        self.edges.require(*names)
        for first, table in self.edges.stretches(names):
            count_unseen(unseen, reader.channels, table)
            yield first, columns.encoded(reader.channels, table)

    def _advance(self, what: str, rows: int) -> None:
        self._done += rows
        self._show(what, min(self._done, self._all), self._all)


def _all_edges(first: int, count: int) -> slice:
    return slice(None)


def count_unseen(unseen: Counter[str], encoders: Sequence[Column], table: Table) -> None:
    for column in encoders:
        unseen[column.name] += column.unseen(table)


def plain_cells(cells: Any) -> pa.ChunkedArray:
    """Cells without a dictionary of their words."""
    kind = cells.type
    return cells.cast(kind.value_type) if pa.types.is_dictionary(kind) else cells
