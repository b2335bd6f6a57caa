"""A row is an edge of one graph."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import IMPORT_SETTINGS, Settings
from edgewise.data.edge_reader import EdgeReader, load_edge_reader
from edgewise.data.graph_reader import TableNotes
from edgewise.data.sources import Source
from edgewise.data.splits import Split
from edgewise.graphs.edge_rows import EdgeRows, query_width
from edgewise.graphs.pair_names import pair_name
from edgewise.nn.network import Network
from edgewise.tasks.base import Columns, Prediction
from edgewise.tasks.prediction import stretches
from edgewise.tasks.reading import find_task, table_truth
from edgewise.units.base import (
    Asked,
    Opened,
    Predicted,
    Predicts,
    Problem,
    Show,
    Tell,
    Unit,
    known_rows,
    required_truth,
)
from edgewise.units.edge_import import import_edges
from edgewise.units.edge_inputs import read_edges, read_like
from edgewise.units.edge_notices import edge_columns_line
from edgewise.units.edge_problem import edge_problem, edge_rows
from edgewise.units.edge_tables import (
    refuse_merging,
    split_of_edges,
    time_notes,
    without_unknown_ends,
)
from edgewise.units.fan_outs import refuse_undivided
from edgewise.units.imported_tables import ImportedTables
from edgewise.units.pair_network import pair_network


class EdgeUnit(Unit):
    """Edges of one graph; parallel edges are rows of their own."""

    name, plural, estimator = "edge", "edges", "Edge"
    settings = frozenset(
        {"head", "batch_size", "time_column", "label_messages", "label_columns", "ports"}
        | {"incident_means", "neighbors", "paths", "regime"}
    )
    not_searched = frozenset({"layer", "batch_size"})  # edge states, of a whole graph
    id_column, error_view = "row", "edges"
    encoder_file = "reader.json"
    import_settings = IMPORT_SETTINGS

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        _refuse(settings)
        found = read_edges(self.name, source, settings)
        names, notes = found.targets()
        task, truth = find_task(found.table, names, settings.data.task, found.categories)
        truth = without_unknown_ends(truth, task, found.unknown())
        times, time = found.times(), settings.split.time_column
        split = known_rows(split_of_edges(settings, task, truth, found.table, times), task, truth)
        read, reader = found.read(names, split)
        unlabelled = len(truth) - len(task.labelled_rows(truth))
        labels = ", with labels of training edges" if settings.model.label_messages else ""
        notes += [_reading_note(read.notes, unlabelled), *time_notes(time, "edges", labels)]
        notices = found.notices(reader, task, truth, split)
        truth, split = truth[read.rows], _of_rows(split, read.rows, len(truth))
        problem = edge_problem(read, task, truth, split, settings, reader)
        return Opened(problem, (str(read.graph), *notes), notices=tuple(notices))

    def import_tables(self, tables: ImportedTables) -> None:
        import_edges(tables)

    def check_divisible(self, settings: Settings) -> None:
        refuse_undivided(settings)

    def changed(self, problem: Problem, settings: Settings) -> Problem:
        assert isinstance(problem.data, EdgeRows)
        data = replace(problem.data, paths=settings.model.paths)
        return replace(problem, data=data, settings=settings)

    def network(self, features: int, outputs: int, channels: int, settings: Settings) -> Network:
        model = settings.model
        width = query_width(channels, directed=model.directed, paths=model.paths)
        return pair_network(features, outputs, channels, width, model)

    def predicted(self, model: Predicts, source: Source, asked: Asked) -> Iterator[Predicted]:
        data, truth, count = self._read(model, source, asked.tell)
        prediction, task = model.predict(data), model.task
        if isinstance(truth, EdgewiseError):
            asked.tell(f"written without the truth beside the predictions: {truth}")
        bad = count - len(data)
        for rows in stretches(len(data)):
            some = prediction.of_rows(rows)
            columns = (
                task.compared_columns(some, truth[rows].numpy())
                if isinstance(truth, Tensor)
                else task.predicted_columns(some)
            )
            yield Predicted({**_row_columns(data, rows), **columns}, len(some.mean), bad)
            bad = 0

    def evaluated(
        self, model: Predicts, source: Source, asked: Asked
    ) -> tuple[Prediction, np.ndarray]:
        data, truth, _ = self._read(model, source, asked.tell)
        return model.predict(data), required_truth(truth, source, model.task).numpy()

    def _read(
        self, model: Predicts, source: Source, tell: Tell
    ) -> tuple[EdgeRows, Tensor | EdgewiseError | None, int]:
        """Edges as the model reads them, their truth (or why not), and how many there were."""
        read, table = read_like(self.name, model, source)
        if read.notes.changed:
            tell(read.notes.changes)
        truth = table_truth(model.task, table)
        truth = truth[read.rows] if isinstance(truth, Tensor) else truth
        shown = truth if isinstance(truth, Tensor) else model.task.unknown_truth(len(read.rows))
        data = edge_rows(read, model.task, shown, model.settings)
        return data, truth, len(table)

    def described_columns(self, problem: Problem) -> list[str]:
        reader = problem.encoder
        if not isinstance(reader, EdgeReader):
            return []
        return [
            f"{column.name}: {type(column).__name__.lower()}, {len(column.outputs)} wide"
            for column in (*reader.tables.features, *reader.tables.channels)
        ]

    def summarised_columns(self, problem: Problem) -> str:
        reader = problem.encoder
        return edge_columns_line(reader) if isinstance(reader, EdgeReader) else ""

    def load_encoder(self, path: Path) -> EdgeReader | None:
        return load_edge_reader(path) if path.exists() else None

    def as_data(self, value: Any, encoder: Any, device: torch.device) -> EdgeRows:
        if not isinstance(value, EdgeRows):
            raise EdgewiseError(
                f"the model predicts edges of a graph, not {type(value).__name__}; use "
                "EdgeClassifier or EdgeRegressor, or name files"
            )
        return replace(value, device=device)

    def row_columns(self, problem: Problem, rows: slice) -> Columns:
        assert isinstance(problem.data, EdgeRows)
        return _row_columns(problem.data, rows)

    def row_names(self, cells: Mapping[str, Sequence[str]]) -> Sequence[str]:
        return [pair_name(*ends) for ends in zip(cells["source"], cells["target"], strict=True)]

    def row_times(self, problem: Problem) -> np.ndarray | None:
        assert isinstance(problem.data, EdgeRows)
        return None if problem.data.time is None else problem.data.time.numpy()

    def needs_split(self, settings: Settings) -> bool:
        return settings.model.label_messages or bool(settings.split.time_column)

    def rows_of_file(self, problem: Problem, rows: Tensor) -> Tensor:
        assert isinstance(problem.data, EdgeRows)
        return rows if problem.data.rows is None else problem.data.rows[rows]


def _row_columns(data: EdgeRows, rows: slice) -> Columns:
    numbers = range(len(data))[rows] if data.rows is None else data.rows[rows].tolist()
    source, target = data.ids.ends(rows)
    return {"row": list(map(str, numbers)), "source": source, "target": target}


def _refuse(settings: Settings) -> None:
    """Refuse settings that would be ignored."""
    refuse_merging(settings, "the rows here")
    if settings.data.label_columns and not settings.model.label_messages:
        raise EdgewiseError(
            f"label_columns = {preview(settings.data.label_columns)} are shown with labels, which "
            "are not shown; set label_messages = true, or leave them out with --ignore"
        )


def _of_rows(split: Split, rows: Tensor, count: int) -> Split:
    """The split of a table as that of the edges that were read from it."""
    place = torch.full((count,), -1)
    place[rows] = torch.arange(len(rows))
    return Split(**{name: place[part] for name, part in split.parts().items()})


def _reading_note(notes: TableNotes, unlabelled: int) -> str:
    cells = ", ".join(f"{count} in {name}" for name, count in notes.unseen.items()) or "none"
    return (
        f"{notes.dropped_edges} edges to unknown nodes dropped, empty or unseen cells: {cells}, "
        f"{unlabelled} edges unlabelled"
    )


EDGE = EdgeUnit()
