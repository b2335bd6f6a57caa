"""A row is an edge of one graph."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.edge_reader import EdgeReader, ReadEdges, load_edge_reader
from edgewise.data.graph_reader import TableNotes
from edgewise.data.graph_tables import learn_channel
from edgewise.data.sources import GraphInput, Source
from edgewise.data.splits import Split
from edgewise.data.times import read_times
from edgewise.graphs.edge_rows import EdgeRows, edge_name, query_width
from edgewise.graphs.incident import port_numbers
from edgewise.nn.network import Network
from edgewise.tasks.base import Columns, Prediction, Task
from edgewise.tasks.reading import find_task, guessed_target, table_truth
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
from edgewise.units.edge_notices import edge_columns_line, edge_row_notices
from edgewise.units.edge_problem import edge_problem, edge_rows
from edgewise.units.edge_tables import (
    known_ends,
    learnt_reader,
    node_table,
    refuse_merging,
    split_of_edges,
    table_ends,
    time_notes,
)
from edgewise.units.fan_outs import refuse_undivided
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

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        found = source.read_graph(settings.data)
        edges = found.edges
        if edges is None:
            raise EdgewiseError(
                f"{source} is {source.described}, whose edges have no columns to predict; give "
                "tables"
            )
        _refuse(settings)
        names, notes = _targets(found, settings)
        task, truth = find_task(edges, names, settings.data.task, settings.data.categories)
        truth = _without_unknown_ends(found, settings, task, truth)
        time = settings.split.time_column
        times = read_times(edges, time) if time else None
        split = known_rows(split_of_edges(settings, task, truth, edges, times), task, truth)
        reader = _learnt_reader(found, names, settings, split)
        read = reader.read(found.nodes, edges)
        unlabelled = len(truth) - len(task.labelled_rows(truth))
        labels = ", with labels of training edges" if settings.model.label_messages else ""
        notes += [_reading_note(read.notes, unlabelled), *time_notes(time, "edges", labels)]
        notices = edge_row_notices(found, reader, task, truth, split, times)
        truth, split = truth[read.rows], _of_rows(split, read.rows, len(truth))
        problem = edge_problem(read, task, truth, split, settings, reader)
        return Opened(problem, (str(read.graph), *found.notes, *notes), notices=tuple(notices))

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
        prediction = model.predict(data)
        columns = model.task.predicted_columns(prediction)
        if isinstance(truth, Tensor):
            columns = model.task.compared_columns(prediction, truth.numpy())
        elif truth is not None:
            asked.tell(f"written without the truth beside the predictions: {truth}")
        yield Predicted({**_row_columns(data), **columns}, len(data), count - len(data))

    def evaluated(
        self, model: Predicts, source: Source, asked: Asked
    ) -> tuple[Prediction, np.ndarray]:
        data, truth, _ = self._read(model, source, asked.tell)
        return model.predict(data), required_truth(truth, source, model.task).numpy()

    def _read(
        self, model: Predicts, source: Source, tell: Tell
    ) -> tuple[EdgeRows, Tensor | EdgewiseError | None, int]:
        """Edges as the model reads them, their truth (or why not), and how many there were."""
        found = source.read_graph(replace(model.settings.data, target=model.task.names))
        if found.edges is None or model.encoder is None:
            raise EdgewiseError(
                f"the model predicts edges of tables, and cannot read {source}; give tables with "
                "the same columns"
            )
        read: ReadEdges = model.encoder.read(found.nodes, found.edges)
        if read.notes.changed:
            tell(str(read.notes))
        truth = table_truth(model.task, found.edges)
        truth = truth[read.rows] if isinstance(truth, Tensor) else truth
        shown = truth if isinstance(truth, Tensor) else model.task.unknown_truth(len(read.rows))
        data = edge_rows(read, model.task, shown, model.settings)
        return data, truth, len(found.edges)

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

    def row_columns(self, problem: Problem) -> Columns:
        assert isinstance(problem.data, EdgeRows)
        return _row_columns(problem.data)

    def row_names(self, cells: Mapping[str, Sequence[str]]) -> Sequence[str]:
        return [edge_name(*ends) for ends in zip(cells["source"], cells["target"], strict=True)]

    def row_times(self, problem: Problem) -> np.ndarray | None:
        assert isinstance(problem.data, EdgeRows)
        return None if problem.data.time is None else problem.data.time.numpy()

    def needs_split(self, settings: Settings) -> bool:
        return settings.model.label_messages or bool(settings.split.time_column)

    def rows_of_file(self, problem: Problem, rows: Tensor) -> Tensor:
        assert isinstance(problem.data, EdgeRows)
        return rows if problem.data.rows is None else problem.data.rows[rows]


def _row_columns(data: EdgeRows) -> Columns:
    rows = torch.arange(len(data)) if data.rows is None else data.rows
    source, target = data.ends
    return {"row": [str(row) for row in rows.tolist()], "source": source, "target": target}


def _refuse(settings: Settings) -> None:
    """Refuse settings that would be ignored."""
    refuse_merging(settings, "the rows here")
    if settings.data.label_columns and not settings.model.label_messages:
        raise EdgewiseError(
            f"label_columns = {preview(settings.data.label_columns)} are shown with labels, which "
            "are not shown; set label_messages = true, or leave them out with --ignore"
        )


def _targets(found: GraphInput, settings: Settings) -> tuple[tuple[str, ...], list[str]]:
    assert found.edges is not None
    if settings.data.target:
        return settings.data.target, []
    name = found.label or guessed_target(found.edges)
    return (name,), [f"predicting column {name!r} of the edges"]


def _without_unknown_ends(
    found: GraphInput, settings: Settings, task: Task, truth: Tensor
) -> Tensor:
    """The truth, not known of edges that are dropped because they name no node."""
    if found.nodes is None or settings.data.unknown == "error":
        return truth
    dropped = torch.from_numpy((table_ends(found, settings) < 0).any(axis=1))
    truth = truth.clone()
    truth[dropped] = task.unknown_truth(int(dropped.sum())).to(truth.dtype)
    return truth


def _of_rows(split: Split, rows: Tensor, count: int) -> Split:
    """The split of a table as that of the edges that were read from it."""
    place = torch.full((count,), -1)
    place[rows] = torch.arange(len(rows))
    return Split(**{name: place[part] for name, part in split.parts().items()})


def _learnt_reader(
    found: GraphInput, targets: tuple[str, ...], settings: Settings, split: Split
) -> EdgeReader:
    edges, shown = found.edges, settings.data.label_columns
    assert edges is not None
    rows = None if settings.data.fit_on == "all" else split.train.numpy()
    ends, directed = known_ends(table_ends(found, settings)), settings.model.directed
    nodes = len(node_table(found, settings))
    return learnt_reader(
        found,
        settings,
        rows,
        left_out=(*targets, *shown),
        ports=settings.model.ports and bool(port_numbers(ends, nodes, directed=directed).any()),
        shown=tuple(learn_channel(edges, name, rows) for name in shown),
    )


def _reading_note(notes: TableNotes, unlabelled: int) -> str:
    cells = ", ".join(f"{count} in {name}" for name, count in notes.unseen.items()) or "none"
    return (
        f"{notes.dropped_edges} edges to unknown nodes dropped, empty or unseen cells: {cells}, "
        f"{unlabelled} edges unlabelled"
    )


EDGE = EdgeUnit()
