"""Whole graphs in one place: safetensors files, GraphML, NetworkX, a folder with two tables."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.core.errors import EdgewiseError, missing_extra, preview
from edgewise.core.files import write_atomically
from edgewise.data.tables import Table, read_table, table_from_columns
from edgewise.graphs.graph import Graph

if TYPE_CHECKING:
    import networkx

_TABLE_ENDINGS = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")
_NAMES = ("node_ids", "channel_names", "class_names")
_TENSORS = ("x", "edge_index", "edge_attr", "y")


def save_graph(graph: Graph, path: str | Path) -> None:
    """Write a graph as safetensors: plain numbers and names, nothing that could run.

    A PyG ``Data`` is kept with ``save_graph(from_pyg(data), path)``, and had back with
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
        names = {name: json.loads(metadata.get(name, "null")) for name in _NAMES}
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
    try:
        fields: dict[str, Any] = {name: tensors.get(name) for name in _TENSORS}
        fields |= {name: value and tuple(value) for name, value in names.items()}
        return Graph(**fields)
    except (EdgewiseError, TypeError) as error:
        raise EdgewiseError(f"{path}: {error}") from error


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
    try:
        import networkx
    except ImportError as error:
        raise missing_extra("networkx", "networkx", "a GraphML file") from error
    from xml.etree.ElementTree import ParseError

    try:
        graph = networkx.read_graphml(path)
    except (OSError, ParseError, networkx.NetworkXError, KeyError, ValueError) as error:
        raise EdgewiseError(f"{path} is not GraphML ({error}); export it again") from error
    for *_, attributes in graph.edges(data=True):
        attributes.pop("id", None)  # the name of an edge says nothing about it
    nodes, edges = tables_from_networkx(graph, str(path))
    return nodes, edges, graph.is_directed()


def read_folder(folder: str | Path, *, encoding: str = "utf-8") -> tuple[Table, Table]:
    """The tables ``nodes`` and ``edges`` of a folder, as CSV, TSV or Parquet."""
    found = []
    for name in ("nodes", "edges"):
        paths = [p for e in _TABLE_ENDINGS if (p := Path(folder) / f"{name}{e}").is_file()]
        if len(paths) != 1:
            many = (
                f"holds {preview([p.name for p in paths])}" if paths else f"holds no {name} table"
            )
            raise EdgewiseError(
                f"{folder} {many}; put one {name}.csv, {name}.tsv or {name}.parquet there"
            )
        found.append(read_table(paths[0], encoding=encoding))
    return found[0], found[1]


def _as_table(rows: list[dict[str, Any]], first: tuple[str, ...], path: str) -> Table:
    names = list(dict.fromkeys([*first, *(name for row in rows for name in row)]))
    return table_from_columns({n: [row.get(n) for row in rows] for n in names}, path)
