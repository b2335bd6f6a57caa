"""A row is a pair of nodes, which an edge joins or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.edge_reader import EdgeReader, load_edge_reader
from edgewise.data.source import with_whole_graph
from edgewise.data.sources import GraphInput, Source
from edgewise.data.tables import Table
from edgewise.data.times import read_times
from edgewise.graphs.graph import Graph, single_precision
from edgewise.graphs.link_rows import LinkRows, pair_width
from edgewise.graphs.links import Links, find_links
from edgewise.graphs.pair_names import pair_name
from edgewise.nn.network import Network
from edgewise.tasks.base import Columns, Prediction
from edgewise.tasks.classification import Classification
from edgewise.tasks.link import Link, link_task
from edgewise.units.base import Asked, Opened, Predicted, Predicts, Problem, Show, Unit
from edgewise.units.edge_notices import time_notices
from edgewise.units.edge_tables import (
    known_ends,
    learnt_reader,
    refuse_merging,
    split_of_edges,
    table_ends,
    time_notes,
)
from edgewise.units.fan_outs import refuse_undivided
from edgewise.units.link_problem import link_problem
from edgewise.units.link_scores import (
    named_nodes,
    pair_columns,
    recommended,
    recommended_columns,
)
from edgewise.units.pair_network import pair_network


class LinkUnit(Unit):
    """Pairs of nodes of one graph."""

    name, plural, estimator = "link", "links", "Link"
    settings = frozenset({"head", "time_column", "neighbors", "batch_size"})
    not_searched = frozenset({"layer", "batch_size"})
    id_column, error_view = "row", "edges"
    encoder_file = "reader.json"

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        found = with_whole_graph(source.read_graph(settings.data))
        _refuse(found, settings)
        time = settings.split.time_column
        if found.edges is None:
            assert found.graph is not None
            graph, task = single_precision(found.graph), link_task()
            links = find_links(graph.edge_index, directed=settings.model.directed)
            split = split_of_edges(settings, task, links.truth, None, None)
            problem = link_problem(graph, links, task, split, settings)
            return Opened(problem, (str(graph), *found.notes, _note(links, task)))
        ends = table_ends(found, settings)
        rows = np.flatnonzero((ends >= 0).all(axis=1))
        times = read_times(found.edges, time)[rows] if time else None
        when = None if times is None else torch.from_numpy(times)
        task, types = _task_and_types(found.edges, settings)
        types = None if types is None else types[rows]
        links = find_links(
            known_ends(ends),
            directed=settings.model.directed,
            time=when,
            types=types,
            num_types=len(task.types),
        )
        row_times = None if links.time is None else links.time.numpy()
        split = split_of_edges(settings, task, links.truth, None, row_times)
        reader = learnt_reader(
            found,
            settings,
            _trained_rows(links, split.train, rows, when, settings),
            categories=settings.data.target,
        )
        graph = reader.read(found.nodes, found.edges).graph
        problem = link_problem(graph, links, task, split, settings, reader, time=when, types=types)
        notes = (str(graph), *found.notes, _note(links, task), *time_notes(time, "links"))
        notices = time_notices(found.edges, row_times, split, settings.data.target, "links")
        return Opened(problem, notes, notices=tuple(notices))

    def takes(self, settings: Settings) -> frozenset[str]:
        # Of a whole graph, an epoch is ten steps.
        return self.settings - (frozenset() if settings.training.neighbors else {"batch_size"})

    def check_divisible(self, settings: Settings) -> None:
        refuse_undivided(settings)

    def network(self, features: int, outputs: int, channels: int, settings: Settings) -> Network:
        return pair_network(features, outputs, channels, pair_width(outputs - 1), settings.model)

    def predicted(self, model: Predicts, source: Source, asked: Asked) -> Iterator[Predicted]:
        raise EdgewiseError(
            "a model of links scores pairs; name them with --pairs pairs.csv, or ask for the "
            "likeliest with --top 10 --for ids.csv"
        )

    def evaluated(
        self, model: Predicts, source: Source, asked: Asked
    ) -> tuple[Prediction, np.ndarray]:
        raise EdgewiseError(
            "links of other data would be among what they are predicted from; train on these data"
        )

    def scored(
        self, model: Predicts, source: Source, *, pairs: Table | None, top: int, ids: Table | None
    ) -> Iterator[Predicted]:
        """Scores of pairs, or the likeliest partners of some nodes; all edges carry messages."""
        graph, types = self._graph(model, source)
        if pairs is not None:
            yield Predicted(*pair_columns(model, graph, pairs, types))
            return
        nodes = named_nodes(ids, model.settings, graph)
        for best in recommended(model, graph, nodes, top, types):
            columns = recommended_columns(model, graph, best)
            yield Predicted(columns, len(best.probability))

    def _graph(self, model: Predicts, source: Source) -> tuple[Graph, Tensor | None]:
        """The graph as the model reads it, and the types of its edges."""
        found = with_whole_graph(source.read_graph(model.settings.data))
        if found.graph is not None:
            return single_precision(found.graph), None
        if model.encoder is None or found.edges is None:
            raise EdgewiseError(
                f"the model was not trained on tables, so it cannot read {source}; give its graph"
            )
        # What is asked for comes after all that is there, so times say nothing.
        read = replace(model.encoder, time="").read(found.nodes, found.edges)
        assert isinstance(model.task, Link)
        if not model.task.types:
            return read.graph, None
        codes, words = found.edges.categories(model.task.column)
        number = {name: k for k, name in enumerate(model.task.types)}
        types = np.array([*(number.get(word, -1) for word in words), -1])[codes]
        return read.graph, torch.from_numpy(types)[read.rows]

    def load_encoder(self, path: Path) -> EdgeReader | None:
        return load_edge_reader(path) if path.exists() else None

    def as_data(self, value: Any, encoder: Any, device: torch.device) -> LinkRows:
        if not isinstance(value, LinkRows):
            raise EdgewiseError(
                f"the model predicts links of a graph, not {type(value).__name__}; use "
                "LinkPredictor, or name files"
            )
        return replace(value, device=device)

    def row_columns(self, problem: Problem, rows: slice) -> Columns:
        assert isinstance(problem.data, LinkRows)
        source, target = problem.data.ids.ends(rows)
        numbers = range(len(problem.data))[rows]
        return {"row": list(map(str, numbers)), "source": source, "target": target}

    def row_names(self, cells: Mapping[str, Sequence[str]]) -> Sequence[str]:
        return [pair_name(*ends) for ends in zip(cells["source"], cells["target"], strict=True)]

    def row_times(self, problem: Problem) -> np.ndarray | None:
        assert isinstance(problem.data, LinkRows)
        times = problem.data.times
        return None if times is None else times.row.numpy()

    def needs_split(self, settings: Settings) -> bool:
        return True

    def rows_of_file(self, problem: Problem, rows: Tensor) -> Tensor:
        """Numbers of the links: the pairs without an edge follow from them."""
        assert isinstance(problem.data, LinkRows)
        links = problem.data.link_of_row[rows]
        return links[links >= 0]


def _refuse(found: GraphInput, settings: Settings) -> None:
    """Refuse settings that would be ignored."""
    data, time = settings.data, settings.split.time_column
    refuse_merging(settings, "what messages go along, and one link for each pair")
    if found.edges is None and (data.target or time):
        raise EdgewiseError(
            f"the edges have no columns, such as {preview([*data.target, *filter(None, [time])])}; "
            "leave them out, or give tables"
        )
    if len(data.target) > 1:
        raise EdgewiseError(
            f"one column names the types of links, not {preview(data.target)}; name one, or none"
        )
    ends = {data.source_column, data.destination_column}
    if ends & {*data.target}:
        raise EdgewiseError(
            f"{preview(data.target)} names ends of edges, not their type; name another column with "
            "--target, or none"
        )
    if settings.split.split_column:
        raise EdgewiseError(
            "the rows are pairs of nodes, of which a column of the edges says nothing; leave out "
            "split_column, or name a JSON file of links with --split"
        )


def _task_and_types(edges: Table, settings: Settings) -> tuple[Link, Tensor | None]:
    """The task, and the number of the type of each row of the edges table."""
    if not settings.data.target:
        return link_task(), None
    (column,) = settings.data.target
    classes = Classification.learn(edges, (column,), (column,))
    return link_task(column, classes.classes), classes.read(edges)


def _trained_rows(
    links: Links, train: Tensor, rows: np.ndarray, when: Tensor | None, settings: Settings
) -> np.ndarray | None:
    """The rows of the edges table that scales and categories are learnt from."""
    if settings.data.fit_on == "all":
        return None
    if when is None or links.time is None:
        return rows[torch.isin(links.of_edge, train).numpy()]
    # A repeated edge is no link of its own: what is not later than training links is known.
    latest = links.time[train].max() if len(train) else -torch.inf
    return rows[(when <= latest).numpy()]


def _note(links: Links, task: Link) -> str:
    of = f" of {len(task.types)} types ({task.column})" if task.types else ""
    return f"{len(links):,} pairs of nodes with an edge{of}"


LINK = LinkUnit()
