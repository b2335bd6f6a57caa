"""A row is a pair of nodes, which an edge joins or not."""

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
from edgewise.data.sources import GraphInput, Source
from edgewise.data.tables import Table
from edgewise.graphs.graph import Graph, single_precision
from edgewise.graphs.link_rows import LinkRows, pair_width
from edgewise.graphs.links import Links, find_links
from edgewise.graphs.pair_names import pair_name
from edgewise.nn.network import Network
from edgewise.tasks.base import Columns, Prediction, Task
from edgewise.tasks.link import Link, link_task
from edgewise.units.base import Asked, Opened, Predicted, Predicts, Problem, Show, Unit
from edgewise.units.edge_tables import refuse_merging, split_of_edges, time_notes
from edgewise.units.fan_outs import refuse_undivided
from edgewise.units.imported_tables import ImportedTables
from edgewise.units.link_import import WHAT_EDGES_ARE, import_links
from edgewise.units.link_inputs import (
    LinksOfStore,
    LinksOfTables,
    find_link_rows,
    refuse_target,
    stored_links,
    types_of_edges,
    without_times,
)
from edgewise.units.link_problem import link_problem
from edgewise.units.link_scores import (
    named_nodes,
    pair_columns,
    recommended,
    recommended_columns,
)
from edgewise.units.pair_network import pair_network
from edgewise.units.stored_columns import check_columns, check_edge_columns

_OR_IMPORT = ", or a store that was imported with --predict links"


class LinkUnit(Unit):
    """Pairs of nodes of one graph."""

    name, plural, estimator = "link", "links", "Link"
    settings = frozenset({"head", "time_column", "neighbors", "batch_size"})
    not_searched = frozenset({"layer", "batch_size"})
    id_column, error_view = "row", "edges"
    encoder_file = "reader.json"
    import_settings = IMPORT_SETTINGS - {"task", "split_column", "label_columns", "ports"}

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        found = source.read_graph(settings.data)
        _refuse(found, settings)
        if found.edge_store is not None:
            inputs: LinksOfStore | LinksOfTables = LinksOfStore(
                found.edge_store.imported_for(self.name), settings
            )
        elif found.edges is not None:
            inputs = LinksOfTables(found, found.edges, settings)
        else:
            graph, task = single_precision(_ready_graph(found)), link_task()
            links = find_links(graph.edge_index, directed=settings.model.directed)
            split = split_of_edges(settings, task, links.truth, None, None)
            problem = link_problem(graph, links, task, split, settings)
            return Opened(problem, (str(graph), *found.notes, _note(links, task)))
        table = inputs.table if inputs.target else None
        rows = find_link_rows(
            inputs.ends, inputs.rows, inputs.times, table, inputs.target, settings
        )
        graph, reader = inputs.read(rows)
        links, task, split = rows.links, rows.task, rows.split
        problem = link_problem(
            graph, links, task, split, settings, reader, time=rows.time, types=rows.types
        )
        by_time = time_notes(settings.split.time_column, "links")
        notes = (str(graph), *found.notes, _note(links, task), *by_time)
        return Opened(problem, notes, notices=tuple(inputs.notices(rows)))

    def kept_columns(self, task: Task) -> tuple[str, ...]:
        assert isinstance(task, Link)
        return (task.column,) if task.column else ()

    def import_tables(self, tables: ImportedTables) -> None:
        import_links(tables)

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
        found, task = source.read_graph(model.settings.data), model.task
        assert isinstance(task, Link)
        if found.edge_store is not None and model.encoder is not None:
            store = found.edge_store.imported_for(self.name)
            check_edge_columns(model.encoder, store, times=False)
            return stored_links(found.edge_store, task)
        if found.store is not None and model.encoder is not None:
            check_columns(model.encoder.tables, found.store)
            if task.types or model.encoder.time:
                raise EdgewiseError(
                    f"{found.store.folder} has no types and times of edges, which the model was "
                    "trained on; import the tables again with --like RUN"
                )
        if found.edges is None and found.edge_store is None:
            return single_precision(_ready_graph(found)), None
        if model.encoder is None or found.edges is None:
            raise EdgewiseError(
                f"the model was not trained on tables, so it cannot read {source}; give its graph"
            )
        read = without_times(model.encoder).read(found.nodes, found.edges)
        if not task.types:
            return read.graph, None
        return read.graph, types_of_edges(found.edges, task)[read.rows]

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
    refuse_merging(settings, WHAT_EDGES_ARE)
    named = [*data.target, *filter(None, [time])]
    if found.edges is None and found.edge_store is None and named:
        raise EdgewiseError(
            f"the edges have no columns, such as {preview(named)}; leave them out, or give tables"
            f"{_OR_IMPORT if found.store is not None else ''}"
        )
    # A store was imported with columns of other names, perhaps, and compares the target itself.
    ends = () if found.edges is None else (data.source_column, data.destination_column)
    refuse_target(data.target, ends)
    if settings.split.split_column:
        raise EdgewiseError(
            "the rows are pairs of nodes, of which a column of the edges says nothing; leave out "
            "split_column, or name a JSON file of links with --split"
        )


def _ready_graph(found: GraphInput) -> Graph:
    """A graph that came without columns, all of it."""
    graph = found.graph if found.store is None else found.store.whole()
    assert graph is not None
    return graph


def _note(links: Links, task: Link) -> str:
    of = f" of {len(task.types)} types ({task.column})" if task.types else ""
    return f"{len(links):,} pairs of nodes with an edge{of}"


LINK = LinkUnit()
