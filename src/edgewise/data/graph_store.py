"""A graph in a folder: arrays that are mapped into memory, a table of its nodes, and a manifest.

Types, shapes and sizes are checked whenever a store is opened; the numbers themselves by
:meth:`GraphStore.verify`, which reads all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from edgewise.core.files import building
from edgewise.core.manifest import MANIFEST
from edgewise.data.array_files import SHAPE, ArrayFile
from edgewise.data.graph_reader import GraphReader, TableNotes, graph_reader_from_json
from edgewise.data.store_files import (
    TableWriter,
    as_tensor,
    check_sizes,
    counts_up_to,
    damaged,
    is_below,
    opened_arrays,
    read_manifest,
    read_rows,
    verify_files,
    write_manifest,
    written,
)
from edgewise.data.tables import Table
from edgewise.graphs.array_graph import Adjacency, ArrayGraph
from edgewise.graphs.graph import Graph

FORMAT = "edgewise graph store 1"
NODES = "nodes.parquet"
_ADJACENCY = ("out_start", "target", "in_start", "source", "in_edge")
ARRAYS = ("x", *_ADJACENCY, "edge_attr")
_TABLES = {"nodes": NODES}
_WORDS = ("id_column", "split_column", "decimal", "learnt_rows", "learnt_by")
_LISTS = ("targets", "features", "channels", "categories", "missing_values", "sources")
NOTES_SHAPE = {
    **dict.fromkeys(("dropped_edges", "merged_edges", "unlabelled"), int),
    "unseen": {str: int},
}
_INFO_SHAPE = {
    **dict.fromkeys(_WORDS, str),
    **{name: [str] for name in _LISTS},
    "reader": (None, {str: object}),
    "split": {str: (str, bool, int)},
    "notes": NOTES_SHAPE,
}
_MANIFEST_SHAPE = {
    **dict.fromkeys(("format", "edgewise", "checksum"), str),
    "arrays": dict.fromkeys(ARRAYS, SHAPE),
    "nodes": {"sha256": str, "bytes": int},
    "graph": _INFO_SHAPE,
}


@dataclass(frozen=True)
class StoreInfo:
    """What a store says about its graph, beside the arrays.

    Args:
        features: The name of each node feature.
        channels: The name of each edge channel.
        id_column: Column of its table of nodes that names them.
        targets: Columns of that table that may be predicted.
        split_column: Column of that table that says train, validation or test; or nothing.
        reader: How the tables were read, and others like them are; None: it came from arrays.
        notes: What was left out, merged or not known in reading them.
        learnt_rows: The nodes that ``reader`` was learnt from, as :func:`checksum_of_rows` gives
            it; nothing: all of them, or those of other tables.
        learnt_by: What chose these nodes, in words.
        split: The settings of the split that chose them.
        categories: Targets that were declared to hold categories.
        missing_values: Words that stand for missing in the table of nodes.
        decimal: The decimal point of its numbers.
        sources: The tables that were imported.
    """

    features: tuple[str, ...]
    channels: tuple[str, ...]
    id_column: str = "id"
    targets: tuple[str, ...] = ()
    split_column: str = ""
    reader: GraphReader | None = None
    notes: TableNotes = field(default_factory=lambda: TableNotes(0, 0, {}, 0))
    learnt_rows: str = ""
    learnt_by: str = ""
    split: Mapping[str, Any] = field(default_factory=dict)
    categories: tuple[str, ...] = ()
    missing_values: tuple[str, ...] = ()
    decimal: str = "."
    sources: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        own = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}
        reader = None if self.reader is None else self.reader.to_json()
        return {**own, "reader": reader, "notes": vars(self.notes)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "StoreInfo":
        """What :meth:`to_json` gave; ValueError, KeyError or TypeError if it is not."""
        own: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in content.items()
        }
        reader = content["reader"] and graph_reader_from_json(content["reader"])
        return cls(**{**own, "reader": reader, "notes": TableNotes(**content["notes"])})


@dataclass(frozen=True, eq=False)
class GraphStore:
    """A store that was opened. Its arrays are maps of its files, which processes share."""

    folder: Path
    graph: ArrayGraph
    info: StoreInfo
    checksum: str  # of the manifest, which has those of all files
    files: Mapping[str, ArrayFile]
    nodes_sha256: str

    unit = "node"  # what its rows are

    def __str__(self) -> str:
        graph = self.graph
        return (
            f"{graph.num_nodes:,} nodes with {graph.num_features} features, {graph.num_edges:,} "
            f"edges with {graph.num_channels} channels"
        )

    @property
    def implied(self) -> Mapping[str, Any]:
        """Settings that follow from the import."""
        undirected = self.info.reader is not None and not self.info.reader.directed
        return {**self.info.split, **({"directed": False} if undirected else {})}

    @cached_property
    def nodes(self) -> Table:
        """The names, targets and subsets of the nodes; read when first asked for."""
        path, info = self.folder / NODES, self.info
        read_as: dict[str, Any] = {"decimal": info.decimal, "missing_values": info.missing_values}
        table = read_rows(path, self.graph.num_nodes, of="nodes", **read_as)
        table.require(info.id_column, *info.targets, *filter(None, (info.split_column,)))
        return table

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The name of each node."""
        return tuple(self.nodes.trimmed(self.info.id_column).to_pylist())

    def mapped(self) -> ArrayGraph:
        """The graph for those who read parts of it.

        That each edge joins two nodes is looked at once more, for compiled code relies on it.
        """
        edges, nodes = self.graph.adjacency, self.graph.num_nodes
        lists = ((edges.out_start, edges.target), (edges.in_start, edges.source))
        right = all(counts_up_to(start, edges.num_edges) for start, _ in lists)
        right = right and all(is_below(numbers, nodes) for _, numbers in lists)
        if not right or not is_below(edges.in_edge, edges.num_edges):
            raise damaged(self.folder, "an edge joins nodes that there are not")
        return self.graph

    def whole(self) -> Graph:
        """The graph for those who need all of it at once; its numbers stay where they are."""
        graph, info = self.mapped(), self.info
        adjacency = graph.adjacency
        edge_index = np.empty((2, graph.num_edges), dtype=np.int64)
        edge_index[0] = np.repeat(np.arange(graph.num_nodes), np.diff(adjacency.out_start))
        edge_index[1] = adjacency.target
        return Graph.unchecked(
            x=as_tensor(graph.x),
            edge_index=torch.from_numpy(edge_index),
            edge_attr=as_tensor(graph.edge_attr),
            node_ids=self.node_names,
            channel_names=info.channels,
        )

    def verify(self) -> None:
        """Read every file once, and refuse one that is not as it was written."""
        verify_files(self.folder, self.files, [(NODES, self.nodes_sha256)])


def open_store(folder: str | Path) -> GraphStore:
    """Open a graph store; one that is damaged is refused before anything is read.

    Args:
        folder: What ``edgewise import`` or :func:`write_store` wrote.
    """
    folder = Path(folder)
    content = read_manifest(folder, {FORMAT: _MANIFEST_SHAPE})
    try:
        info = StoreInfo.from_json(content["graph"])
        files = {name: ArrayFile.from_json(content["arrays"][name]) for name in ARRAYS}
        _check_shapes(files, info)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(folder / MANIFEST, str(error)) from error
    arrays = opened_arrays(folder, files)
    check_sizes(folder, content, _TABLES)
    adjacency = Adjacency(**{name: arrays[name] for name in _ADJACENCY})
    graph = ArrayGraph(arrays["x"], adjacency, arrays["edge_attr"])
    return GraphStore(folder, graph, info, content["checksum"], files, content["nodes"]["sha256"])


def write_store(
    folder: str | Path,
    graph: ArrayGraph,
    nodes: Mapping[str, Any] | None = None,
    info: StoreInfo | None = None,
) -> GraphStore:
    """Write arrays as a graph store, and open it.

    Args:
        folder: A new folder.
        graph: Node features, edges in both orders, and channels.
        nodes: Columns of the nodes: their names, and what may be predicted. Without it they are
            named by their numbers.
        info: What the store says about them; without it, names are numbers, and every column
            of ``nodes`` but ``id`` may be predicted.
    """
    columns = {"id": np.arange(graph.num_nodes), **(nodes or {})}
    if info is None:
        info = StoreInfo(
            features=tuple(map(str, range(graph.num_features))),
            channels=tuple(map(str, range(graph.num_channels))),
            targets=tuple(name for name in columns if name != "id"),
        )
    arrays = {"x": graph.x, "edge_attr": graph.edge_attr, **vars(graph.adjacency)}
    with building(folder) as place:
        files = {name: written(place, name, arrays[name]) for name in ARRAYS}
        with TableWriter(place, NODES) as writer:
            writer.append(pa.table(columns))
        write_store_manifest(place, files, info)
    return open_store(folder)


def write_store_manifest(folder: Path, files: Mapping[str, ArrayFile], info: StoreInfo) -> None:
    """Write the manifest, which makes a store of a folder of arrays."""
    write_manifest(folder, FORMAT, files, _TABLES, info.to_json())


def _check_shapes(files: Mapping[str, ArrayFile], info: StoreInfo) -> None:
    """Refuse arrays that do not belong to one graph; ValueError says why."""
    features, channels = len(info.features), len(info.channels)
    x, attr = files["x"].shape, files["edge_attr"].shape
    if len(x) != 2 or len(attr) != 2 or x[1] != features or attr[1] != channels:
        raise ValueError("features or channels are not as many as their names")
    for name in _ADJACENCY:
        expected = (x[0] + 1,) if name.endswith("_start") else (attr[0],)
        if files[name].shape != expected or files[name].dtype.kind != "i":
            raise ValueError(f"{name} does not fit {x[0]:,} nodes and {attr[0]:,} edges")
    for name in ("x", "edge_attr"):
        if files[name].dtype.kind != "f":
            raise ValueError(f"{name} holds no real numbers")
