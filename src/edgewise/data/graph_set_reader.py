"""Read tables of many graphs into one set, as it was learnt."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.schema import read_json
from edgewise.data.graph_reader import (
    READER_SHAPE,
    GraphReader,
    TableNotes,
    graph_reader_from_json,
)
from edgewise.graphs.graph_set import GraphSet

if TYPE_CHECKING:
    from edgewise.data.graph_set_tables import PlacedGraphs

_FORMAT = "edgewise graph set reader 1"
_SHAPE = {"format": str, "graph": str, "columns": READER_SHAPE}


@dataclass(frozen=True)
class GraphSetReader:
    """How tables of nodes and edges become many graphs."""

    graph: str  # the column that names the graph
    columns: GraphReader  # how all others are read

    file: ClassVar[str] = "reader.json"

    def read(self, placed: "PlacedGraphs") -> tuple[GraphSet, TableNotes]:
        """Read tables with the same columns."""
        tables = placed.tables
        x, edge_index, edge_attr, notes = self.columns.encode(
            tables.nodes, tables.edges, placed.pairs, placed.edge_rows
        )
        graph = placed.graph_of_node[edge_index[0]]
        order = np.argsort(graph, kind="stable")
        place = np.empty(len(x), dtype=np.int64)  # of each node within its graph
        place[placed.node_order] = np.arange(len(x))
        place -= placed.node_offset[placed.graph_of_node]
        count = np.bincount(graph, minlength=len(placed))
        found = GraphSet(
            x=torch.from_numpy(x[placed.node_order]),
            edge_index=torch.from_numpy(place[edge_index[:, order]]),
            edge_attr=torch.from_numpy(edge_attr[order]),
            node_offset=torch.from_numpy(placed.node_offset),
            edge_offset=torch.from_numpy(np.concatenate([[0], count.cumsum()])),
            ids=placed.ids,
            rows=torch.arange(len(placed)),
            channel_names=self.columns.channel_names,
        )
        return found, notes

    @property
    def names(self) -> DataSettings:
        """Settings under which tables are read alike."""
        reader = self.columns
        return DataSettings(
            graph_column=self.graph,
            id_column=reader.id,
            source_column=reader.source,
            destination_column=reader.target,
            unknown=reader.unknown,
        )

    def to_json(self) -> dict[str, Any]:
        """Everything that was learnt."""
        return {"format": _FORMAT, "graph": self.graph, "columns": self.columns.to_json()}


def load_graph_set_reader(path: str | Path) -> GraphSetReader:
    """Read the reader that a model was saved with."""
    try:
        content = read_json(Path(path), _SHAPE)
        if content["format"] != _FORMAT:
            raise ValueError("another format")
        return GraphSetReader(content["graph"], graph_reader_from_json(content["columns"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(
            f"{path} is not a saved reader of graphs ({error}); copy the folder again, or train "
            "again"
        ) from error
