"""A graph in a folder whose edges are rows of their own: as tables of edges are read, but mapped.

Parallel edges are kept apart, in the order of the table; what is known of each row, targets and
the split, is a table beside the arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.core.manifest import MANIFEST
from edgewise.core.schema import Maybe
from edgewise.data.array_files import SHAPE, ArrayFile
from edgewise.data.edge_reader import EdgeReader, ReadEdges, edge_reader_from_json
from edgewise.data.graph_reader import TableNotes
from edgewise.data.graph_store import NODES, NOTES_SHAPE
from edgewise.data.store_files import (
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
)
from edgewise.data.tables import Table
from edgewise.graphs.edge_lookup import EdgeLookup
from edgewise.graphs.graph import Graph, MultiGraph
from edgewise.kernels.incident_sampling import IncidentLists

FORMAT = "edgewise edge store 1"
EDGES = "edges.parquet"
TABLES = {"nodes": NODES, "edges": EDGES}
ROW_UNITS = ("edge", "link")
_INCIDENT = IncidentLists._fields
_PAIRS = ("pair_key", "pair_start", "pair_edge")
ARRAYS = ("x", "edge_index", "edge_attr", "row", *_INCIDENT, *_PAIRS)
_WORDS = ("split_column", "decimal", "learnt_rows", "learnt_by")
_LISTS = ("targets", "categories", "missing_values", "sources")
_TABLE = {"sha256": str, "bytes": int}
SHAPES = {
    FORMAT: {
        **dict.fromkeys(("format", "edgewise", "checksum"), str),
        "arrays": {str: SHAPE},
        "nodes": _TABLE,
        "edges": _TABLE,
        "graph": {
            **dict.fromkeys(_WORDS, str),
            **{name: [str] for name in _LISTS},
            **{
                "rows": int,
                "ports": bool,
                "reader": {str: object},
                "split": {str: (str, bool, int)},
            },
            "notes": NOTES_SHAPE,
            "unit": Maybe(str),  # at first there were rows of edges alone
        },
    }
}


@dataclass(frozen=True)
class EdgeStoreInfo:
    """What a store says about its edges, beside the arrays.

    Args:
        reader: How the tables were read, and others like them are.
        rows: How many rows the table of edges has.
        targets: Its columns that may be predicted.
        split_column: Its column that says train, validation or test; or nothing.
        ports: Whether parallel edges were to be numbered, if there are any.
        notes: What was left out or not known in reading.
        learnt_rows: The edges that ``reader`` was learnt from, see
            :func:`edgewise.data.store_files.checksum_of_rows`; nothing: all, or those of others.
        learnt_by: What chose these edges, in words.
        split: The settings of the split that chose them.
        categories: Targets that were declared to hold categories.
        missing_values: Words that stand for missing in the table.
        decimal: The decimal point of its numbers.
        sources: The tables that were imported.
        unit: What is to be predicted: each edge, or the link of a pair of nodes.
    """

    reader: EdgeReader
    rows: int
    targets: tuple[str, ...] = ()
    split_column: str = ""
    ports: bool = True
    notes: TableNotes = field(default_factory=lambda: TableNotes(0, 0, {}, 0))
    learnt_rows: str = ""
    learnt_by: str = ""
    split: Mapping[str, Any] = field(default_factory=dict)
    categories: tuple[str, ...] = ()
    missing_values: tuple[str, ...] = ()
    decimal: str = "."
    sources: tuple[str, ...] = ()
    unit: str = "edge"

    @property
    def arrays(self) -> tuple[str, ...]:
        """The names of its arrays."""
        return (*ARRAYS, *(("time",) * bool(self.reader.time)), *(("shown",) * self.shows))

    @property
    def shows(self) -> bool:
        """Whether columns are kept that are known together with the label."""
        return bool(self.reader.shown)

    def to_json(self) -> dict[str, Any]:
        own = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}
        return {**own, "reader": self.reader.to_json(), "notes": vars(self.notes)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "EdgeStoreInfo":
        """What :meth:`to_json` gave; ValueError, KeyError or TypeError if it is not."""
        own: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in content.items()
        }
        if own.get("unit", "edge") not in ROW_UNITS:
            raise ValueError(f"rows are {own['unit']!r}, which this version does not know")
        reader, notes = edge_reader_from_json(content["reader"]), TableNotes(**content["notes"])
        return cls(**{**own, "reader": reader, "notes": notes})


@dataclass(frozen=True, eq=False)
class EdgeStore:
    """A store that was opened. Its arrays are maps of its files, which processes share."""

    folder: Path
    arrays: Mapping[str, np.ndarray]
    info: EdgeStoreInfo
    checksum: str  # of the manifest, which has those of all files
    files: Mapping[str, ArrayFile]
    tables_sha256: Mapping[str, str]

    @property
    def unit(self) -> str:
        """What its rows are."""
        return self.info.unit

    def imported_for(self, unit: str) -> "EdgeStore":
        """The store itself; refused if other rows than those of this unit are predicted from it."""
        if self.unit != unit:
            raise EdgewiseError(
                f"{self.folder} was imported with --predict {self.unit}s, to predict its "
                f"{self.unit}s; import the tables again with --predict {unit}s"
            )
        return self

    @property
    def num_nodes(self) -> int:
        return len(self.arrays["x"])

    @property
    def num_edges(self) -> int:
        return len(self.arrays["row"])

    def __str__(self) -> str:
        x, attr = self.arrays["x"], self.arrays["edge_attr"]
        return (
            f"{len(x):,} nodes with {x.shape[1]} features, {len(attr):,} edges with "
            f"{attr.shape[1]} channels"
        )

    @property
    def implied(self) -> Mapping[str, Any]:
        """Settings that follow from the import."""
        reader = self.info.reader
        undirected = {} if reader.directed else {"directed": False}
        times = {"time_column": reader.time} if reader.time else {}
        ports = {} if self.info.ports else {"ports": False}
        return {**self.info.split, **undirected, **times, **ports, "predict": f"{self.unit}s"}

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The name of each node."""
        table = read_rows(
            self.folder / NODES, self.num_nodes, of="nodes", decimal=".", missing_values=()
        )
        return tuple(table.trimmed(self.info.reader.tables.id).to_pylist())

    @cached_property
    def edges(self) -> Table:
        """The targets and subsets of all rows of the table of edges; read when first asked for."""
        info = self.info
        read_as: dict[str, Any] = {"decimal": info.decimal, "missing_values": info.missing_values}
        table = read_rows(self.folder / EDGES, info.rows, of="rows of edges", **read_as)
        table.require(*info.targets, *filter(None, (info.split_column,)))
        return table

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each edge in the table."""
        rows = self.arrays["row"]
        if not is_below(rows, self.info.rows):
            raise damaged(self.folder, "an edge has a row that there is not")
        return rows

    @property
    def times(self) -> np.ndarray | None:
        """When each row of the table happens."""
        return self.arrays.get("time")

    def read(self) -> ReadEdges:
        """The edges as :meth:`EdgeReader.read` gives them for the tables."""
        rows, shown, times = self.rows, self.arrays.get("shown"), self.times
        if times is not None and len(rows) < len(times):
            times = times[rows]
        return ReadEdges(
            self.graph,
            as_tensor(rows),
            times,
            None if shown is None else as_tensor(shown),
            self.info.notes,
            self._lookup,
        )

    @cached_property
    def graph(self) -> Graph:
        """The graph, whose numbers stay where they are.

        That each edge joins two nodes is looked at once more, for compiled code relies on it.
        """
        self._check_numbers()
        return MultiGraph.unchecked(
            x=as_tensor(self.arrays["x"]),
            edge_index=as_tensor(self.arrays["edge_index"].reshape(2, -1)),
            edge_attr=as_tensor(self.arrays["edge_attr"]),
            node_ids=self.node_names,
            channel_names=self.info.reader.channel_names,
        )

    @cached_property
    def _lookup(self) -> EdgeLookup:
        incident = IncidentLists(**{name: self.arrays[name] for name in _INCIDENT})
        pairs = {name: self.arrays[name] for name in _PAIRS}
        return EdgeLookup(incident, **pairs, directed=self.info.reader.directed)

    def _check_numbers(self) -> None:
        arrays, edges = self.arrays, self.num_edges
        starts = (arrays[name] for name in ("out_start", "in_start", "pair_start"))
        numbers = (arrays[name] for name in ("out_edge", "in_edge", "pair_edge"))
        right = all(counts_up_to(start, edges) for start in starts)
        right = right and all(is_below(number, edges) for number in numbers)
        if not right or not is_below(arrays["edge_index"], self.num_nodes):
            raise damaged(self.folder, "an edge joins nodes that there are not")

    def verify(self) -> None:
        """Read every file once, and refuse one that is not as it was written."""
        tables = [(TABLES[name], checksum) for name, checksum in self.tables_sha256.items()]
        verify_files(self.folder, self.files, tables)


def open_edge_store(folder: str | Path) -> EdgeStore:
    """Open a store of edges; one that is damaged is refused before anything is read.

    Args:
        folder: What ``edgewise import --predict edges`` or ``links`` wrote.
    """
    folder = Path(folder)
    content = read_manifest(folder, SHAPES)
    try:
        info = EdgeStoreInfo.from_json(content["graph"])
        files = {name: ArrayFile.from_json(content["arrays"][name]) for name in info.arrays}
        _check_shapes(files, info)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(folder / MANIFEST, str(error)) from error
    arrays = opened_arrays(folder, files)
    check_sizes(folder, content, TABLES)
    checksums = {name: content[name]["sha256"] for name in TABLES}
    return EdgeStore(folder, arrays, info, content["checksum"], files, checksums)


def write_edge_manifest(folder: Path, files: Mapping[str, ArrayFile], info: EdgeStoreInfo) -> None:
    """Write the manifest, which makes a store of a folder of arrays."""
    write_manifest(folder, FORMAT, files, TABLES, info.to_json())


def _check_shapes(files: Mapping[str, ArrayFile], info: EdgeStoreInfo) -> None:
    """Refuse arrays that do not belong to one graph; ValueError says why."""
    shape = {name: file.shape for name, file in files.items()}
    nodes, edges, groups = shape["x"][0], shape["row"][0], shape["pair_key"][0]
    names = info.reader
    expected: dict[str, tuple[str, tuple[int, ...]]] = {
        "x": ("f", (nodes, len(names.tables.feature_names))),
        "edge_index": ("i", (2 * edges,)),
        "edge_attr": ("f", (edges, len(names.channel_names))),
        "row": ("i", (edges,)),
        **{f"{way}_start": ("i", (nodes + 1,)) for way in ("out", "in")},
        **{f"{way}_edge": ("i", (edges,)) for way in ("out", "in", "pair")},
        **{f"{way}_time": ("f" if names.time else "i", (edges,)) for way in ("out", "in")},
        **{"pair_key": ("i", (groups,)), "pair_start": ("i", (groups + 2,))},
        "time": ("f", (info.rows,)),
        "shown": ("f", (edges, sum(len(column.outputs) for column in names.shown))),
    }
    for name, file in files.items():
        if (file.dtype.kind, file.shape) != expected[name]:
            raise ValueError(f"{name} does not fit {nodes:,} nodes and {edges:,} edges")
    if nodes < 1 or edges > info.rows:
        raise ValueError(f"{edges:,} edges of {info.rows:,} rows between {nodes:,} nodes")
    if files["edge_index"].dtype != np.int64 or files["row"].dtype != np.int64:
        raise ValueError("edges are numbered in another type")
