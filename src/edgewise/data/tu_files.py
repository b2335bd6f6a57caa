"""The text files of a TUDataset: graphs by the block-diagonal adjacency of all of them.

Nodes are counted from 1 over all graphs. ``NAME_A.txt`` holds a pair of nodes in each line,
``NAME_graph_indicator.txt`` the graph of each node; further files hold labels and attributes.
"""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.archives import gunzip
from edgewise.data.graph_set_tables import GraphTables
from edgewise.data.table import Cells, Table
from edgewise.data.tables import make_table

LABEL = "label"
_NEEDED = ("A", "graph_indicator")
# The columns that a file makes, of the nodes, edges or graphs; labels hold categories.
_PARTS = {"node": "graph_indicator", "edge": "A", "graph": ""}
_FILES = (*_NEEDED, *(f"{part}_{what}" for part in _PARTS for what in ("labels", "attributes")))


def tu_files(folder: str | Path) -> dict[str, Path]:
    """The files of a TUDataset in a folder by what they hold; none where it holds no such set."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(Path(folder).iterdir()):
        stem = path.name.removesuffix(".gz")
        for role in _FILES:
            if stem.endswith(f"_{role}.txt") and path.is_file():
                name = stem.removesuffix(f"_{role}.txt")
                found.setdefault(name, {}).setdefault(role, path)
    whole = {name: files for name, files in found.items() if all(r in files for r in _NEEDED)}
    if len(whole) > 1:
        raise EdgewiseError(
            f"{folder} holds the data sets {preview(sorted(whole))}; put each into its own folder"
        )
    return next(iter(whole.values()), {})


def read_tu_folder(folder: str | Path, settings: DataSettings) -> GraphTables:
    """Read the TUDataset of a folder."""
    contents = {}
    for role, path in tu_files(folder).items():
        try:
            data = path.read_bytes()
        except OSError as error:
            raise EdgewiseError(f"{path} cannot be read ({error.strerror})") from error
        plain = gunzip(data, str(path)) if path.suffix == ".gz" else data
        contents[role] = (str(path), plain)
    return read_tu(contents, settings)


def read_tu(files: Mapping[str, tuple[str, bytes]], settings: DataSettings) -> GraphTables:
    """Tables of graphs, nodes and edges.

    Args:
        files: The place and the content of each file, by what it holds.
        settings: How the columns of tables are called.
    """
    pairs = _numbers(*files["A"], width=2)
    graph = _numbers(*files["graph_indicator"], width=1)[:, 0]
    outside = (graph < 1) | (graph > len(graph))
    if outside.any():
        row = int(outside.argmax())
        raise EdgewiseError(
            f"{files['graph_indicator'][0]}:{row + 1}: there is no graph {graph[row]} for "
            f"{len(graph)} nodes; count graphs from 1"
        )
    counts = {"node": len(graph), "edge": len(pairs), "graph": int(graph.max())}
    columns: dict[str, dict[str, Cells]] = {part: {} for part in _PARTS}
    categories = []
    for part, count in counts.items():
        for what, dtype in (("labels", np.int64), ("attributes", np.float64)):
            if f"{part}_{what}" not in files:
                continue
            path, data = files[f"{part}_{what}"]
            values = _numbers(path, data, dtype=dtype)
            if len(values) != count:
                raise EdgewiseError(
                    f"{path} has {len(values):,} lines for {count:,} {part}s; give one for each"
                )
            single = LABEL if part == "graph" else f"{part}_{what.removesuffix('s')}"
            for number, column in enumerate(values.T):
                name = single if what == "labels" and values.shape[1] == 1 else (
                    f"{part}_{what.removesuffix('s')}_{number}"
                )  # fmt: skip
                columns[part][name] = _cells(column)
                categories += [name] if what == "labels" and part != "graph" else []
    nodes = {
        settings.graph_column: _cells(graph),
        settings.id_column: _cells(np.arange(1, len(graph) + 1)),
    }
    ends = {
        settings.source_column: _cells(pairs[:, 0]),
        settings.destination_column: _cells(pairs[:, 1]),
    }
    names = {settings.graph_column: _cells(np.arange(1, counts["graph"] + 1))}
    graphs = next(
        (files[name][0] for name in ("graph_labels", "graph_attributes") if name in files),
        files["graph_indicator"][0],
    )
    return GraphTables(
        _table(graphs, {**names, **columns["graph"]}, counts["graph"]),
        _table(files["graph_indicator"][0], {**nodes, **columns["node"]}, len(graph)),
        _table(files["A"][0], {**ends, **columns["edge"]}, len(pairs)),
        settings,
        categories=tuple(categories),
        targets=tuple(columns["graph"])[:1] if LABEL in columns["graph"] else (),
    )


def _numbers(
    path: str, data: bytes, *, width: int | None = None, dtype: type = np.int64
) -> np.ndarray:
    """The numbers of a file, ``[lines, width]``."""
    text = data.decode("utf-8", errors="replace")
    if not text.strip():
        raise EdgewiseError(f"{path} is empty; fetch it again")
    try:
        values: np.ndarray = np.loadtxt(
            io.StringIO(text), delimiter=",", dtype=dtype, ndmin=2, comments=None
        )
    except (ValueError, OverflowError, IndexError) as error:
        raise EdgewiseError(
            f"{path} does not hold numbers in lines ({str(error).rstrip('.')}); correct the line"
        ) from error
    if width is not None and values.shape[1] != width:
        raise EdgewiseError(f"{path} has {values.shape[1]} numbers in a line, expected {width}")
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values)).any(axis=1).argmax())
        raise EdgewiseError(f"{path}:{row + 1}: the number is not finite; correct it")
    return values


def _cells(values: np.ndarray) -> Cells:
    return pa.chunked_array([pa.array(np.ascontiguousarray(values))])


def _table(path: str, columns: Mapping[str, Cells], rows: int) -> Table:
    return make_table(path, columns, lambda: np.arange(1, rows + 1))
