"""Whole graphs in three tables: one of graphs, one of their nodes, one of their edges."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import Settings
from edgewise.data.columns import Column, raw_values
from edgewise.data.graph_reader import unique_names
from edgewise.data.graph_rows import InvalidRow, Progress
from edgewise.data.graph_set_reader import GraphSetReader
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.notices import index_notices, leak_notices
from edgewise.data.splits import Split
from edgewise.data.tables import Table
from edgewise.graphs.graph_set import GraphSet


@dataclass(frozen=True, eq=False)
class GraphTables:
    """A row for each graph, and the tables of nodes and edges that name their graph."""

    graphs: Table
    nodes: Table
    edges: Table
    settings: DataSettings  # how columns are named
    directed: bool = True  # whether the form of the data says so
    categories: tuple[str, ...] = ()  # columns that the form knows to hold categories
    targets: tuple[str, ...] = ()

    named_by, may_be_invalid = "the names of graphs", False

    @property
    def table(self) -> Table:
        return self.graphs

    @property
    def name_column(self) -> str:
        """The column of the graphs table that names them."""
        name = self.settings.graph_column
        return name if name in self.graphs.columns else self.settings.id_column

    def other_columns(self) -> list[str]:
        return [name for name in self.graphs.columns if name != self.name_column]

    def structures(
        self, *, on_invalid: str = "error", progress: Progress | None = None
    ) -> tuple["PlacedGraphs", tuple[InvalidRow, ...]]:
        return PlacedGraphs(self), ()


class PlacedGraphs:
    """Graphs whose nodes and edges were found, each in its graph; else they are refused.

    Args:
        tables: Where they stand.
    """

    has_direction = True
    splits: tuple[str, ...] = ()

    def __init__(self, tables: GraphTables) -> None:
        self.tables = tables
        self.names = _graph_names(tables)
        self.graph_of_node = _graph_of_node(tables, self.names)
        counts = np.bincount(self.graph_of_node, minlength=len(self.names))
        if not counts.all():
            row = int((counts == 0).argmax())
            raise EdgewiseError(
                f"{tables.graphs.where(row)}: graph {self.names[row].as_py()!r} has no node in "
                f"{tables.nodes.path}; give it one, or remove the row"
            )
        self.node_offset = np.concatenate([[0], counts.cumsum()])
        # Nodes of a graph stand together, in the order of their table.
        self.node_order = np.argsort(self.graph_of_node, kind="stable")
        self.pairs, self.edge_rows = _pairs(self)

    @property
    def directed(self) -> bool:
        """Whether an edge may go one way only."""
        return self.tables.directed

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.names.to_pylist())

    @property
    def rows(self) -> np.ndarray:
        return np.arange(len(self))

    def __len__(self) -> int:
        return len(self.names)

    def learn(self, train: np.ndarray, settings: Settings) -> GraphSetReader:
        data, tables = settings.data, self.tables
        rows = edge_rows = None
        if data.fit_on != "all":
            training = np.zeros(len(self), dtype=bool)
            training[train] = True
            (rows,) = np.nonzero(training[self.graph_of_node])
            kept = training[self.graph_of_node[self.pairs[:, 0]]]
            edge_rows = self.edge_rows[kept]
        named = (name for name in (data.graph_column,) if name in tables.edges.columns)
        reader = learn_graph_reader(
            tables.nodes,
            tables.edges,
            id=data.id_column,
            numbers=data.numbers,
            categories=tuple(dict.fromkeys((*tables.categories, *self._categories(data)))),
            text=data.text,
            ignore=tuple(dict.fromkeys((*data.ignore, data.graph_column, *named))),
            source=data.source_column,
            target=data.destination_column,
            directed=tables.directed and data.edges == "directed",
            missing=data.missing,
            unknown=data.unknown,
            duplicates=data.duplicates,
            rows=rows,
            edge_rows=edge_rows,
        )
        return GraphSetReader(data.graph_column, reader)

    def _categories(self, data: DataSettings) -> list[str]:
        """Columns of categories; targets that were declared so stand in the table of graphs."""
        tables = self.tables
        elsewhere = {*tables.nodes.columns, *tables.edges.columns}
        own = set(tables.graphs.columns)
        return [name for name in data.categories if name in elsewhere or name not in own]

    def packed(self, encoder: Any) -> tuple[GraphSet, tuple[str, ...]]:
        if not isinstance(encoder, GraphSetReader):
            raise EdgewiseError(
                "the model was not trained on tables of graphs, so it cannot read them; give "
                "graphs as in training"
            )
        found, notes = encoder.read(self)
        return found, (notes.changes,) if notes.changed else ()

    def grouped_split(self, name: str, seed: int) -> Split | None:
        return None

    def notices(
        self, encoder: Any, targets: Mapping[str, np.ndarray], parts: Mapping[str, np.ndarray]
    ) -> list[str]:
        reader, tables = encoder.columns, self.tables
        features = _raw(tables.nodes, reader.features)
        channels = _raw(tables.edges, reader.channels)
        kept = {name: column[self.edge_rows] for name, column in channels.items()}
        graph_of_edge = self.graph_of_node[self.pairs[:, 0]]
        found = []
        for of, values, graph in (
            ("column", features, self.graph_of_node),
            ("edge column", kept, graph_of_edge),
        ):
            at = {name: truth[graph] for name, truth in targets.items()}
            found += leak_notices(values, at, of=of, at=" of its graph", units=graph)
        found += index_notices(features, "nodes")
        found += index_notices(channels, "edges")
        if not len(tables.edges):
            found.append(f"{tables.edges.path} has no edges, so only nodes tell graphs apart")
        return found


def _raw(table: Table, columns: tuple[Column, ...]) -> dict[str, np.ndarray]:
    return {column.name: raw_values(table, column) for column in columns}


def _graph_names(tables: GraphTables) -> pa.ChunkedArray:
    if not len(tables.graphs):
        raise EdgewiseError(f"{tables.graphs.path} has a header but no rows; add some")
    return unique_names(tables.graphs, tables.name_column, "graph")


def _graph_of(table: Table, tables: GraphTables, names: pa.ChunkedArray) -> np.ndarray:
    """The number of the graph that each row of nodes or edges names; -1: none has this name."""
    named = table.trimmed(tables.settings.graph_column)
    if not len(named):
        return np.zeros(0, dtype=np.int64)
    place = pc.index_in(named, pa.concat_arrays(names.chunks)).fill_null(-1)
    return place.to_numpy().astype(np.int64)


def _graph_of_node(tables: GraphTables, names: pa.ChunkedArray) -> np.ndarray:
    nodes, column = tables.nodes, tables.settings.graph_column
    if not len(nodes):
        raise EdgewiseError(f"{nodes.path} has a header but no rows; graphs need nodes")
    graph = _graph_of(nodes, tables, names)
    (unknown,) = np.nonzero(graph < 0)
    if len(unknown):
        row = int(unknown[0])
        name = nodes.trimmed(column)[row].as_py()
        raise EdgewiseError(
            f"{nodes.where(row)}: the node names the graph {name!r}, which is not in column "
            f"{tables.name_column!r} of {tables.graphs.path}; {len(unknown)} such row(s) must be "
            "left out, or their graphs added"
        )
    return graph


def _pairs(placed: PlacedGraphs) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the nodes at both ends of each edge, ``[edges, 2]``, and the row of the edge."""
    tables, data = placed.tables, placed.tables.settings
    nodes, edges = tables.nodes, tables.edges
    edges.require(data.source_column, data.destination_column)
    ids = nodes.trimmed(data.id_column)
    words = pc.unique(ids)
    code = pc.index_in(ids, words).to_numpy().astype(np.int64)
    key = placed.graph_of_node * len(words) + code
    order = np.argsort(key, kind="stable")
    _refuse_repeated_nodes(placed, ids, key, order)
    if not len(edges):
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64)
    with_graphs = data.graph_column in edges.columns
    if not with_graphs and len(words) < len(nodes):
        raise EdgewiseError(
            f"{edges.path} has no column {data.graph_column!r}, and nodes of several graphs have "
            "the same id; add the column, or give each node an id of its own"
        )
    graph = _graph_of(edges, tables, placed.names) if with_graphs else None
    pairs = np.empty((len(edges), 2), dtype=np.int64)
    place = np.empty(len(words), dtype=np.int64)
    place[code] = np.arange(len(nodes))  # of nodes whose id is their own
    for side, column in enumerate((data.source_column, data.destination_column)):
        word = pc.index_in(edges.trimmed(column), words).fill_null(-1).to_numpy().astype(np.int64)
        if graph is None:
            pairs[:, side] = np.where(word < 0, -1, place[word])
            continue
        wanted = graph * len(words) + word
        found = order[np.searchsorted(key[order], wanted).clip(max=len(order) - 1)]
        known = (graph >= 0) & (word >= 0) & (key[found] == wanted)
        pairs[:, side] = np.where(known, found, -1)
    known = (pairs >= 0).all(axis=1)
    if not known.all() and data.unknown == "error":
        _refuse_unknown_end(placed, int((~known).argmax()), graph)
    rows = np.nonzero(known)[0]
    ends = placed.graph_of_node[pairs[rows]]
    apart = ends[:, 0] != ends[:, 1]
    if apart.any():
        row = int(rows[apart.argmax()])
        names = [placed.ids[graph] for graph in ends[apart.argmax()]]
        raise EdgewiseError(
            f"{edges.where(row)}: the edge from {_cell(edges, data.source_column, row)!r} to "
            f"{_cell(edges, data.destination_column, row)!r} joins the graphs {names[0]!r} and "
            f"{names[1]!r}; an edge stays within its graph, so correct or remove it"
        )
    return pairs[rows], rows


def _refuse_repeated_nodes(
    placed: PlacedGraphs, ids: pa.ChunkedArray, key: np.ndarray, order: np.ndarray
) -> None:
    nodes = placed.tables.nodes
    empty = pc.equal(ids, "").to_numpy()
    if empty.any():
        raise EdgewiseError(f"{nodes.where(int(empty.argmax()))}: the node has no id; give it one")
    again = np.nonzero(key[order][1:] == key[order][:-1])[0]
    if len(again):
        place = again[order[again + 1].argmin()]
        first, row = int(order[place]), int(order[place + 1])
        raise EdgewiseError(
            f"{nodes.where(row)}: the id {ids[row].as_py()!r} stands already in graph "
            f"{placed.ids[placed.graph_of_node[row]]!r} at {nodes.where(first)}; give each node of "
            "a graph its own"
        )


def _refuse_unknown_end(placed: PlacedGraphs, row: int, graph: np.ndarray | None) -> None:
    tables, data = placed.tables, placed.tables.settings
    edges = tables.edges
    ends = [_cell(edges, name, row) for name in (data.source_column, data.destination_column)]
    edge = f"{edges.where(row)}: the edge from {ends[0]!r} to {ends[1]!r}"
    cure = "correct it, or leave such edges out with --unknown drop"
    if graph is not None and graph[row] < 0:
        name = _cell(edges, data.graph_column, row)
        raise EdgewiseError(
            f"{edge} names the graph {name!r}, which is not in column {tables.name_column!r} of "
            f"{tables.graphs.path}; {cure}"
        )
    ids = tables.nodes.trimmed(data.id_column)
    for end in ends:
        (there,) = np.nonzero(pc.equal(ids, end).to_numpy())
        homes = placed.graph_of_node[there]
        if graph is None and not len(there):
            raise EdgewiseError(
                f"{edge} names {end!r}, which is not in {tables.nodes.path}; {cure}"
            )
        if graph is not None and graph[row] not in homes:
            where = f"is a node of graph {placed.ids[homes[0]]!r}" if len(there) else "is no node"
            raise EdgewiseError(
                f"{edge} is one of graph {placed.ids[graph[row]]!r}, but {end!r} {where}; {cure}"
            )


def _cell(table: Table, column: str, row: int) -> str:
    return str(table.trimmed(column)[row].as_py())
