"""Where edges to predict come from: tables, which are learnt from, or a store of edges."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.edge_reader import EdgeReader, ReadEdges
from edgewise.data.edge_store import EdgeStore
from edgewise.data.graph_tables import learn_channel
from edgewise.data.sources import GraphInput, Source
from edgewise.data.splits import Split
from edgewise.data.store_files import as_tensor
from edgewise.data.tables import Table
from edgewise.data.times import read_times
from edgewise.graphs.incident import port_numbers
from edgewise.tasks.base import Task
from edgewise.tasks.reading import guessed_target
from edgewise.units.base import Predicts
from edgewise.units.edge_notices import edge_row_notices, late_notices
from edgewise.units.edge_tables import known_ends, learnt_reader, node_table, table_ends
from edgewise.units.stored_columns import (
    check_edge_columns,
    learnt_notices,
    refuse_imported_otherwise,
)


class EdgesOfTables:
    """Edges of tables.

    Args:
        found: The tables.
        table: That of edges.
        settings: How they are read.
    """

    def __init__(self, found: GraphInput, table: Table, settings: Settings) -> None:
        self.table, self._found, self._settings = table, found, settings
        self.categories = settings.data.categories

    def targets(self) -> tuple[tuple[str, ...], list[str]]:
        """The columns to predict, and what is to be told of them."""
        notes = list(self._found.notes)
        if self._settings.data.target:
            return self._settings.data.target, notes
        name = self._found.label or guessed_target(self.table)
        return (name,), [*notes, f"predicting column {name!r} of the edges"]

    def unknown(self) -> Tensor:
        """Whether each row is dropped because it names a node that there is not."""
        if self._found.nodes is None or self._settings.data.unknown == "error":
            return torch.zeros(len(self.table), dtype=torch.bool)
        return torch.from_numpy((table_ends(self._found, self._settings) < 0).any(axis=1))

    def times(self) -> np.ndarray | None:
        """When each row happens."""
        time = self._settings.split.time_column
        return read_times(self.table, time) if time else None

    def read(self, targets: tuple[str, ...], split: Split) -> tuple[ReadEdges, EdgeReader]:
        """The edges, and how they were read, which is learnt from those of training."""
        settings, shown = self._settings, self._settings.data.label_columns
        rows = None if settings.data.fit_on == "all" else split.train.numpy()
        ends = known_ends(table_ends(self._found, settings))
        nodes, directed = len(node_table(self._found, settings)), settings.model.directed
        parallel = port_numbers(ends, nodes, directed=directed).any()
        reader = learnt_reader(
            self._found,
            settings,
            rows,
            left_out=(*targets, *shown),
            ports=settings.model.ports and bool(parallel),
            shown=tuple(learn_channel(self.table, name, rows) for name in shown),
        )
        return reader.read(self._found.nodes, self.table), reader

    def notices(self, reader: EdgeReader, task: Task, truth: Tensor, split: Split) -> list[str]:
        """Sentences on what may make the scores mean less."""
        return edge_row_notices(self._found, reader, task, truth, split, self.times())


class EdgesOfStore:
    """Edges of a store, whose columns were read when it was imported.

    Args:
        store: That was opened.
        settings: Of the model.
    """

    def __init__(self, store: EdgeStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self.categories = store.info.categories
        self._refuse_other_settings()

    @property
    def table(self) -> Table:
        return self._store.edges

    def targets(self) -> tuple[tuple[str, ...], list[str]]:
        known, folder = self._store.info.targets, self._store.folder
        names = self._settings.data.target or known
        absent = [name for name in names if name not in known]
        if absent or not names:
            raise EdgewiseError(
                f"{folder} was imported with the target(s) {preview(known)}"
                f"{f', not {preview(absent)}' if absent else ''}; import the tables again with "
                "--target"
            )
        return names, []

    def unknown(self) -> Tensor:
        dropped = torch.ones(self._store.info.rows, dtype=torch.bool)
        dropped[as_tensor(self._store.rows)] = False
        return dropped

    def times(self) -> np.ndarray | None:
        return self._store.times

    def read(self, targets: tuple[str, ...], split: Split) -> tuple[ReadEdges, EdgeReader]:
        reader = self._store.info.reader
        # Columns that are known with the label are no features; without labels nobody sees them.
        shown = reader.shown if self._settings.model.label_messages else ()
        return self._store.read(), replace(reader, shown=shown)

    def notices(self, reader: EdgeReader, task: Task, truth: Tensor, split: Split) -> list[str]:
        times, notices = self.times(), []
        if times is not None:  # what is larger than tables is not searched for leaks
            notices += late_notices(times, split, "edges")
        return notices + learnt_notices(self._store, split.train.numpy())

    def _refuse_other_settings(self) -> None:
        """Refuse settings that the import decided otherwise."""
        settings, reader = self._settings, self._store.info.reader
        shown = tuple(column.name for column in reader.shown)
        asked = {
            "time_column": (settings.split.time_column, reader.time),
            "directed": (settings.model.directed, reader.directed),
            # Where there are no parallel edges, none are numbered whatever is said.
            "ports": (settings.model.ports or not reader.ports, True),
            "label_columns": (settings.data.label_columns or shown, shown),
        }
        refuse_imported_otherwise(self._store.folder, asked)


def read_edges(unit: str, source: Source, settings: Settings) -> EdgesOfTables | EdgesOfStore:
    """Edges to learn from; ``unit`` is the name of that whose rows they are."""
    found = source.read_graph(settings.data)
    if found.edge_store is not None:
        return EdgesOfStore(found.edge_store.imported_for(unit), settings)
    if found.store is not None:
        raise EdgewiseError(
            f"{found.store.folder} is a graph store without rows of edges: parallel ones were "
            "merged, and it has no edges to predict; import the tables again with --predict edges "
            "--target COLUMN"
        )
    if found.edges is None:
        raise EdgewiseError(
            f"{source} is {source.described}, whose edges have no columns to predict; give tables"
        )
    return EdgesOfTables(found, found.edges, settings)


def read_like(unit: str, model: Predicts, source: Source) -> tuple[ReadEdges, Table]:
    """Edges as a model reads them, and the table of what is known of its rows."""
    found = source.read_graph(replace(model.settings.data, target=model.task.names))
    if found.edge_store is not None and model.encoder is not None:
        check_edge_columns(model.encoder, found.edge_store.imported_for(unit))
        read = found.edge_store.read()
        if not model.encoder.shown:
            read = replace(read, shown=None)
        return read, found.edge_store.edges
    if found.edges is None or model.encoder is None:
        raise EdgewiseError(
            f"the model predicts edges of tables, and cannot read {source}; give tables with the "
            "same columns, or a store that was imported with --like RUN"
        )
    return model.encoder.read(found.nodes, found.edges), found.edges
