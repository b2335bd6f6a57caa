"""Many NetworkX graphs as tables of graphs, nodes and edges, every attribute a column."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.data.graph_files import parse_graphml
from edgewise.data.graph_set_tables import GraphTables
from edgewise.data.tables import Table, table_from_columns

if TYPE_CHECKING:
    import networkx


def tables_of_graphs(
    graphs: Sequence["networkx.Graph"],
    ids: Sequence[str],
    settings: DataSettings,
    path: str = "the graphs",
    table: Table | None = None,
) -> GraphTables:
    """Three tables of many graphs, which are all directed or all undirected.

    Args:
        graphs: Nodes and edges with attributes.
        ids: The name of each graph.
        settings: How the columns are called.
        path: Where they come from, for messages.
        table: A row for each graph; without it, attributes of the graphs are its columns.
    """
    directed = {graph.is_directed() for graph in graphs}
    if len(directed) > 1:
        odd = next(i for i, g in enumerate(graphs) if g.is_directed() != graphs[0].is_directed())
        raise EdgewiseError(
            f"{path}: graph {ids[0]!r} and graph {ids[odd]!r} are not both directed or both "
            "undirected; write all of them one way"
        )
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    own: list[dict[str, Any]] = []
    at, id_column = settings.graph_column, settings.id_column
    source, target = settings.source_column, settings.destination_column
    for name, graph in zip(ids, graphs, strict=True):
        for node, attributes in graph.nodes(data=True):
            nodes.append(_row(attributes, {at: name, id_column: node}, f"{path}: {name}"))
        for a, b, attributes in graph.edges(data=True):
            edges.append(_row(attributes, {at: name, source: a, target: b}, f"{path}: {name}"))
        own.append(_row(_graph_attributes(graph), {at: name}, f"{path}: {name}"))
    return GraphTables(
        table or _as_table(own, (at,), path),
        _as_table(nodes, (at, id_column), f"{path} (nodes)"),
        _as_table(edges, (at, source, target), f"{path} (edges)"),
        settings,
        directed=directed != {False},
    )


def graphml_files(folder: str | Path) -> list[Path]:
    """The GraphML files of a folder, in the order of their names."""
    found = [p for p in Path(folder).iterdir() if p.name.endswith((".graphml", ".graphml.gz"))]
    return sorted(path for path in found if path.is_file())


def read_graphml_folder(
    folder: str | Path, settings: DataSettings, table: Table | None = None
) -> GraphTables:
    """Every GraphML file of a folder as one graph, called as the file is."""
    files = graphml_files(folder)
    graphs = [parse_graphml(path) for path in files]
    ids = [path.name.removesuffix(".gz").removesuffix(".graphml") for path in files]
    return tables_of_graphs(graphs, ids, settings, str(folder), table)


def _graph_attributes(graph: "networkx.Graph") -> dict[str, Any]:
    # What NetworkX keeps there of its own are dictionaries: defaults of nodes and edges.
    return {name: v for name, v in graph.graph.items() if not isinstance(v, Mapping)}


def _row(attributes: Mapping[Any, Any], names: dict[str, Any], where: str) -> dict[str, Any]:
    row = {str(name): value for name, value in attributes.items()}
    taken = [name for name in names if name in row and str(row[name]) != str(names[name])]
    if taken:
        raise EdgewiseError(
            f"{where}: an attribute is called {taken[0]!r}, which is the column of a name; rename "
            "it, or give the column another name"
        )
    return {**row, **names}


def _as_table(rows: list[dict[str, Any]], first: tuple[str, ...], path: str) -> Table:
    names = dict.fromkeys([*first, *(name for row in rows for name in row)])
    return table_from_columns({n: [row.get(n) for row in rows] for n in names}, path)
