"""Read tables whose edges are the rows: parallel edges stay apart, nodes need no table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.schema import mismatch, read_json
from edgewise.data import columns
from edgewise.data.columns import Column
from edgewise.data.graph_reader import (
    READER_SHAPE,
    GraphReader,
    TableNotes,
    graph_reader_from_json,
    node_ids,
)
from edgewise.data.tables import Table, table_from_columns
from edgewise.data.times import read_times
from edgewise.graphs.edge_lookup import EdgeLookup
from edgewise.graphs.graph import Graph, MultiGraph
from edgewise.graphs.incident import port_numbers

_FORMAT = "edgewise edge reader 1"
_SHAPE = {
    **{"format": str, "has_nodes": bool, "ports": bool, "time": str, "directed": bool},
    "tables": READER_SHAPE,
    "shown": [{"kind": str}],
}


@dataclass(frozen=True, eq=False)
class ReadEdges:
    """The edges of a table that could be read."""

    graph: Graph
    rows: Tensor  # of the table, of each edge
    times: np.ndarray | None
    shown: Tensor | None  # columns that are known together with the label, [edges, channels]
    notes: TableNotes
    lookup: EdgeLookup | None = None  # where edges are found, if that is known already


@dataclass(frozen=True)
class EdgeReader:
    """How tables become a graph whose edges are predicted.

    Args:
        tables: How the columns of nodes and edges are read.
        has_nodes: Whether nodes have a table of their own.
        ports: Whether parallel edges are numbered.
        time: Column of times; empty: there is none.
        directed: Whether edges the other way are others.
        shown: Columns that are known only together with the label.
    """

    tables: GraphReader
    has_nodes: bool
    ports: bool
    time: str
    directed: bool
    shown: tuple[Column, ...] = ()

    @property
    def channel_names(self) -> tuple[str, ...]:
        return (*self.tables.channel_names, *(("port",) * self.ports))

    def read(self, nodes: Table | None, edges: Table) -> ReadEdges:
        """Read tables with the same columns; those that are predicted may be absent."""
        tables = self.tables
        if nodes is None and self.has_nodes:
            raise EdgewiseError(
                f"the model was trained with a table of nodes, and {edges.path} comes without "
                "one; give both"
            )
        if nodes is None or not self.has_nodes:
            nodes = implied_nodes(edges, tables.source, tables.target, tables.id)
        ids = node_ids(nodes, tables.id)
        pairs, rows = tables.known_pairs(edges, ids, nodes)
        edge_index = torch.from_numpy(np.ascontiguousarray(pairs.T))
        times = read_times(edges, self.time)[rows] if self.time else None
        value = [columns.encoded(tables.channels, edges)[rows]]
        if self.ports:
            when = None if times is None else torch.from_numpy(times)
            port = port_numbers(edge_index, len(nodes), directed=self.directed, time=when)
            value.append(port_channel(port).numpy())
        graph = MultiGraph(
            x=torch.from_numpy(columns.encoded(tables.features, nodes)),
            edge_index=edge_index,
            edge_attr=torch.from_numpy(np.hstack(value)),
            node_ids=tuple(ids.to_pylist()),
            channel_names=self.channel_names,
        )
        unseen = {
            column.name: count
            for side, table in ((tables.features, nodes), (tables.channels, edges))
            for column in side
            if (count := column.unseen(table))
        }
        notes = TableNotes(len(edges) - len(rows), 0, unseen, 0)
        return ReadEdges(graph, torch.from_numpy(rows), times, self._shown(edges, rows), notes)

    def _shown(self, edges: Table, rows: np.ndarray) -> Tensor | None:
        return torch.from_numpy(self.encode_shown(edges)[rows]) if self.shown else None

    def encode_shown(self, edges: Table) -> np.ndarray:
        """What is shown with labels; nothing of a column that new data do not have."""
        parts = [
            column.encode(edges).astype(np.float32)
            if column.name in edges.columns
            else np.zeros((len(edges), len(column.outputs)), dtype=np.float32)
            for column in self.shown
        ]
        return np.hstack(parts)

    def to_json(self) -> dict[str, Any]:
        own = {k: v for k, v in vars(self).items() if isinstance(v, str | bool)}
        shown = [columns.to_json(column) for column in self.shown]
        return {"format": _FORMAT, **own, "tables": self.tables.to_json(), "shown": shown}


def port_channel(port: Tensor) -> Tensor:
    """Numbers among parallel edges as a channel, ``[edges, 1]``."""
    return port.float().log1p().unsqueeze(1)


def edge_reader_from_json(content: Mapping[str, Any]) -> EdgeReader:
    """What :meth:`EdgeReader.to_json` gave; ValueError, KeyError or TypeError if it is not."""
    fault = mismatch(dict(content), _SHAPE)
    if fault:
        raise ValueError(fault)
    fields = dict(content)
    if fields.pop("format") != _FORMAT:
        raise ValueError("another format")
    tables = graph_reader_from_json(fields.pop("tables"))
    shown = tuple(columns.from_json(column) for column in fields.pop("shown"))
    return EdgeReader(replace(tables, labels=None), **fields, shown=shown)


def load_edge_reader(path: Path) -> EdgeReader:
    """Read what :meth:`EdgeReader.to_json` gave."""
    try:
        return edge_reader_from_json(read_json(path, _SHAPE))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(
            f"{path} is not a saved reader of edges ({error}); train again"
        ) from error


def implied_nodes(edges: Table, source: str, target: str, id: str = "id") -> Table:
    """A table of the nodes that edges name, in the order in which they first stand there."""
    edges.require(source, target)
    if not len(edges):
        raise EdgewiseError(f"{edges.path} has a header but no rows; add some edges")
    both = [pa.concat_arrays(edges.trimmed(name).chunks) for name in (source, target)]
    for name, ends in zip((source, target), both, strict=True):
        empty = pc.equal(ends, "").to_numpy(zero_copy_only=False)
        if empty.any():
            raise EdgewiseError(
                f"{edges.where(int(empty.argmax()))}: column {name!r} names no node; fill the cell"
            )
    return table_from_columns({id: pc.unique(pa.concat_arrays(both)).to_pylist()}, edges.path)
