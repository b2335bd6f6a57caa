"""A graph in a folder: arrays that are mapped into memory, a table of its nodes, and a manifest.

Types, shapes and sizes are checked whenever a store is opened; the numbers themselves by
:meth:`GraphStore.verify`, which reads all of them.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from edgewise import __version__
from edgewise.core.errors import EdgewiseError
from edgewise.core.files import building, inside
from edgewise.core.manifest import MANIFEST, sha256_of
from edgewise.core.schema import read_json
from edgewise.data.array_files import SHAPE, ArrayFile, ArrayWriter
from edgewise.data.arrow_columns import read_parquet
from edgewise.data.graph_reader import GraphReader, TableNotes, graph_reader_from_json
from edgewise.data.tables import Table, make_table, open_binary
from edgewise.graphs.array_graph import Adjacency, ArrayGraph
from edgewise.graphs.graph import Graph

FORMAT = "edgewise graph store 1"
NODES = "nodes.parquet"
_ADJACENCY = ("out_start", "target", "in_start", "source", "in_edge")
ARRAYS = ("x", *_ADJACENCY, "edge_attr")
_ROWS = 2**16  # of an array that are written at a time
_CURE = "copy the folder again, or import the tables again"
_WORDS = ("id_column", "split_column", "decimal", "learnt_rows", "learnt_by")
_LISTS = ("targets", "features", "channels", "categories", "missing_values", "sources")
_INFO_SHAPE = {
    **dict.fromkeys(_WORDS, str),
    **{name: [str] for name in _LISTS},
    "reader": (None, {str: object}),
    "split": {str: (str, bool, int)},
    "notes": {"dropped_edges": int, "merged_edges": int, "unseen": {str: int}, "unlabelled": int},
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

    @cached_property
    def nodes(self) -> Table:
        """The names, targets and subsets of the nodes; read when first asked for."""
        path, info = self.folder / NODES, self.info
        with open_binary(path) as stream:
            columns = read_parquet(stream, str(path))
        read_as: dict[str, Any] = {"decimal": info.decimal, "missing_values": info.missing_values}
        table = make_table(str(path), columns, None, **read_as)
        table.require(info.id_column, *info.targets, *filter(None, (info.split_column,)))
        if len(table) != self.graph.num_nodes:
            raise EdgewiseError(
                f"{path} has {len(table):,} rows for {self.graph.num_nodes:,} nodes; {_CURE}"
            )
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
        right = all(_counts_up_to(start, edges.num_edges) for start, _ in lists)
        right = right and all(_is_below(numbers, nodes) for _, numbers in lists)
        if not right or not _is_below(edges.in_edge, edges.num_edges):
            raise _damaged(self.folder, "an edge joins nodes that there are not")
        return self.graph

    def whole(self) -> Graph:
        """The graph for those who need all of it at once; its numbers stay where they are."""
        graph, info = self.mapped(), self.info
        adjacency = graph.adjacency
        edge_index = np.empty((2, graph.num_edges), dtype=np.int64)
        edge_index[0] = np.repeat(np.arange(graph.num_nodes), np.diff(adjacency.out_start))
        edge_index[1] = adjacency.target
        return Graph.unchecked(
            x=_as_tensor(graph.x),
            edge_index=torch.from_numpy(edge_index),
            edge_attr=_as_tensor(graph.edge_attr),
            node_ids=self.node_names,
            channel_names=info.channels,
        )

    def verify(self) -> None:
        """Read every file once, and refuse one that is not as it was written."""
        for name, file in self.files.items():
            if not file.is_in(_array_path(self.folder, name)):
                raise _damaged(_array_path(self.folder, name), "its checksum differs")
        if sha256_of(self.folder / NODES) != self.nodes_sha256:
            raise _damaged(self.folder / NODES, "its checksum differs")


def _counts_up_to(start: np.ndarray, last: int) -> bool:
    return bool(start[0] == 0 and start[-1] == last and not (np.diff(start) < 0).any())


def _is_below(numbers: np.ndarray, limit: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < limit)


def is_store(folder: str | Path) -> bool:
    """Whether a folder is a graph store, perhaps a damaged one; runs have no arrays."""
    folder = Path(folder)
    arrays = any(_array_path(folder, name).exists() for name in ARRAYS)
    return arrays and ((folder / MANIFEST).exists() or (folder / NODES).exists())


def open_store(folder: str | Path) -> GraphStore:
    """Open a graph store; one that is damaged is refused before anything is read.

    Args:
        folder: What ``edgewise import`` or :func:`write_store` wrote.
    """
    folder = Path(folder)
    content = _read_manifest(folder)
    try:
        info = StoreInfo.from_json(content["graph"])
        files = {name: ArrayFile.from_json(content["arrays"][name]) for name in ARRAYS}
        _check_shapes(files, info)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder / MANIFEST, str(error)) from error
    arrays = {}
    for name, file in files.items():
        try:
            arrays[name] = file.open(_array_path(folder, name))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise _damaged(_array_path(folder, name), str(reason)) from error
    nodes = inside(folder, NODES)
    if not nodes.is_file() or nodes.stat().st_size != content["nodes"]["bytes"]:
        raise _damaged(nodes, "it is missing, or of another size")
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
        files = {name: _written(place, name, arrays[name]) for name in ARRAYS}
        with NodeWriter(place) as writer:
            writer.append(pa.table(columns))
        write_store_manifest(place, files, info)
    return open_store(folder)


class NodeWriter:
    """Writes the table of the nodes, some rows at a time; there must be some."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NODES
        self._writer: Any = None

    def append(self, rows: pa.Table) -> None:
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._path, rows.schema)
        self._writer.write_table(rows)

    def __enter__(self) -> "NodeWriter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()


def write_store_manifest(folder: Path, files: Mapping[str, ArrayFile], info: StoreInfo) -> None:
    """Write the manifest, which makes a store of a folder of arrays."""
    nodes = folder / NODES
    content = {
        "format": FORMAT,
        "edgewise": __version__,
        "arrays": {name: file.to_json() for name, file in files.items()},
        "nodes": {"sha256": sha256_of(nodes), "bytes": nodes.stat().st_size},
        "graph": info.to_json(),
    }
    content["checksum"] = _checksum(content)
    (folder / MANIFEST).write_text(json.dumps(content, indent=1), encoding="utf-8")


def array_writer(folder: Path, name: str, dtype: Any, *, width: int | None = None) -> ArrayWriter:
    """A writer of one of the arrays of a store."""
    return ArrayWriter(_array_path(folder, name), dtype, width=width)


def checksum_of_rows(rows: np.ndarray) -> str:
    """What tells one choice of rows from another: SHA-256 of their numbers in rising order."""
    return hashlib.sha256(np.sort(rows).astype("<i8").tobytes()).hexdigest()


def _as_tensor(array: np.ndarray) -> Tensor:
    """A tensor of numbers that stay in their file, and must not be changed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _written(folder: Path, name: str, array: np.ndarray) -> ArrayFile:
    width = None if array.ndim == 1 else array.shape[1]
    with array_writer(folder, name, array.dtype, width=width) as writer:
        for start in range(0, len(array), _ROWS):
            writer.append(array[start : start + _ROWS])
    return writer.file


def _array_path(folder: Path, name: str) -> Path:
    return inside(folder, f"{name}.npy")


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = inside(folder, MANIFEST)
    try:
        content: dict[str, Any] = read_json(path, {"format": str})
        if content["format"] != FORMAT:
            raise EdgewiseError(
                f"its format is {content['format']!r}, and this version reads {FORMAT!r}"
            )
        if content.get("checksum") != _checksum(content):
            raise EdgewiseError("its checksum differs")
        content = read_json(path, _MANIFEST_SHAPE)
    except (OSError, ValueError) as error:
        raise _damaged(path, getattr(error, "strerror", None) or str(error)) from error
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


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


def _damaged(path: Path, reason: str) -> EdgewiseError:
    return EdgewiseError(f"{path} is damaged ({reason.rstrip('.')}); {_CURE}")
