"""Whole graphs in one place: safetensors files, GraphML, NetworkX, a folder with two tables."""

import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from torch import Tensor

from edgewise.core.errors import EdgewiseError, missing_extra, preview
from edgewise.core.files import write_atomically
from edgewise.core.schema import parse_json
from edgewise.data.tables import Table, open_binary, read_table, table_from_columns
from edgewise.graphs.graph import Graph
from edgewise.kernels.memory import memory_limit

if TYPE_CHECKING:
    import networkx

TABLE_ENDINGS = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")
_NAMES = ("node_ids", "channel_names", "class_names")
_DEEPEST = 50  # elements of GraphML, one in the other
_GROWTH = 40  # bytes of memory for a byte of GraphML
_MOST_CLASSES = 1000  # that need no node each
_TENSORS = ("x", "edge_index", "edge_attr", "y")


def save_graph(graph: Graph, path: str | Path) -> None:
    """Write a graph as safetensors: plain numbers and names, nothing that could run.

    A PyG ``Data`` is kept with ``save_graph(from_pyg(data), path)``, and read back with
    ``to_pyg(load_graph(path))``.
    """
    from safetensors.torch import save

    tensors = {name: getattr(graph, name) for name in _TENSORS if getattr(graph, name) is not None}
    names = {name: json.dumps(getattr(graph, name)) for name in _NAMES}
    metadata = {"format": "edgewise graph 1", **names}
    content = {name: t.detach().contiguous() for name, t in tensors.items()}
    write_atomically(path, save(content, metadata))


def load_graph(path: str | Path) -> Graph:
    """Read a graph that :func:`save_graph` wrote, or any safetensors with x and edge_index."""
    path = Path(path)
    if path.suffix in (".pt", ".pth", ".pkl", ".pickle"):
        raise EdgewiseError(
            f"{path} is a pickle, which can run any code when it is read, so it is not; load it "
            "where you trust it, then edgewise.data.graph_files.save_graph(edgewise.from_pyg(data),"
            f" '{path.stem}.safetensors')"
        )
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
        names = {n: parse_json(metadata.get(n, "null"), (None, [str])) for n in _NAMES}
    except (OSError, SafetensorError, ValueError) as error:
        raise EdgewiseError(
            f"{path} is not a whole safetensors file ({str(error).splitlines()[0]}); "
            "write it again with save_graph"
        ) from error
    absent = [name for name in ("x", "edge_index") if name not in tensors]
    if absent:
        raise EdgewiseError(
            f"{path} has no tensor {' and no '.join(absent)}, only {preview(sorted(tensors))}; "
            "a graph needs both"
        )
    _check_tensors(tensors, names, path)
    try:
        fields: dict[str, Any] = {name: tensors.get(name) for name in _TENSORS}
        fields |= {name: value and tuple(value) for name, value in names.items()}
        return Graph(**fields)
    except (EdgewiseError, TypeError) as error:
        raise EdgewiseError(f"{path}: {error}") from error


def _check_tensors(tensors: dict[str, Tensor], names: dict[str, Any], path: Path) -> None:
    if not tensors["x"].numel():
        raise EdgewiseError(f"{path} holds no nodes with features; a graph needs some")
    y = tensors.get("y")
    if y is None or y.is_floating_point() or not y.numel() or names["class_names"]:
        return
    # One name is made for each class up to the last, so a wild number would fill the memory.
    last, most = int(y.max()), max(len(y), _MOST_CLASSES)
    if last >= most:
        raise EdgewiseError(
            f"{path}: y numbers a class {last:,}, but there are {len(y):,} nodes; number the "
            "classes from 0, or save values to be predicted as y.float()"
        )


def tables_from_networkx(graph: "networkx.Graph", path: str = "the graph") -> tuple[Table, Table]:
    """Nodes and edges of a NetworkX graph as tables, every attribute a column.

    The columns of names are ``id``, ``source`` and ``target``; pass ``directed=False`` to
    :func:`edgewise.data.graph_tables.learn_graph_reader` if the graph is undirected.
    """
    nodes = [{**attributes, "id": node} for node, attributes in graph.nodes(data=True)]
    edges = [
        {**attributes, "source": source, "target": target}
        for source, target, attributes in graph.edges(data=True)
    ]
    return _as_table(nodes, ("id",), path), _as_table(edges, ("source", "target"), path)


def read_graphml(path: str | Path) -> tuple[Table, Table, bool]:
    """Nodes and edges of a GraphML file as tables, and whether it is directed."""
    graph = parse_graphml(path)
    nodes, edges = tables_from_networkx(graph, str(path))
    return nodes, edges, graph.is_directed()


def parse_graphml(path: str | Path) -> "networkx.Graph":
    """The graph of a GraphML file."""
    try:
        import networkx
    except ImportError as error:
        raise missing_extra("networkx", "networkx", "a GraphML file") from error
    with open_binary(Path(path)) as stream:
        _check_xml(stream, str(path))
        stream.seek(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what it guesses, such as the type of a key
                graph = networkx.read_graphml(stream)
        except EdgewiseError:
            raise
        # ParseError is a SyntaxError; the others are what networkx stumbles over.
        except (SyntaxError, networkx.NetworkXError, LookupError, ValueError, TypeError) as error:
            raise EdgewiseError(f"{path} is not GraphML ({error}); export it again") from error
    for *_, attributes in graph.edges(data=True):
        attributes.pop("id", None)  # the name of an edge says nothing about it
    return graph


def _check_xml(stream: io.BufferedIOBase, path: str) -> None:
    """Refuse a file that is no XML, whose entities could grow, or that would not fit."""
    parser = expat.ParserCreate()
    depth = 0

    def refused(name: str, *_: Any) -> None:
        raise EdgewiseError(
            f"{path}:{parser.CurrentLineNumber}: the document type {name!r} may declare entities, "
            "which GraphML does not need; remove the DOCTYPE"
        )

    def opened(name: str, _: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise EdgewiseError(
                f"{path}:{parser.CurrentLineNumber}: {name!r} is nested deeper than {_DEEPEST} "
                "elements; this is not GraphML"
            )

    def closed(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = refused
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    size = 0
    try:
        while block := stream.read(2**16):
            size += len(block)
            if size * _GROWTH > memory_limit():
                raise EdgewiseError(
                    f"{path} holds more than {memory_limit() // _GROWTH // 2**20:,} MB of GraphML, "
                    "which would not fit into memory; export it as two CSV tables"
                )
            parser.Parse(block)
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError) as error:  # LookupError: an unknown encoding
        raise EdgewiseError(f"{path} is not GraphML ({error}); export it again") from error


def read_folder(
    folder: str | Path,
    *,
    encoding: str = "utf-8",
    decimal: str = ".",
    missing_values: Sequence[str] = (),
) -> tuple[Table, Table]:
    """The tables ``nodes`` and ``edges`` of a folder, as CSV, TSV or Parquet."""
    read_as: dict[str, Any] = {
        "encoding": encoding, "decimal": decimal, "missing_values": missing_values
    }  # fmt: skip
    nodes, edges = (table_in_folder(folder, name, **read_as) for name in ("nodes", "edges"))
    return nodes, edges


def table_in_folder(folder: str | Path, name: str, **read_as: Any) -> Table:
    """The only table of a name in a folder, as CSV, TSV or Parquet."""
    paths = [p for e in TABLE_ENDINGS if (p := Path(folder) / f"{name}{e}").is_file()]
    if len(paths) != 1:
        many = f"holds {preview([p.name for p in paths])}" if paths else f"holds no {name} table"
        raise EdgewiseError(
            f"{folder} {many}; put one {name}.csv, {name}.tsv or {name}.parquet there"
        )
    return read_table(paths[0], **read_as)


def _as_table(rows: list[dict[str, Any]], first: tuple[str, ...], path: str) -> Table:
    names = list(dict.fromkeys([*first, *(name for row in rows for name in row)]))
    return table_from_columns({n: [row.get(n) for row in rows] for n in names}, path)
