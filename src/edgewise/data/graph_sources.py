"""Whole graphs that are not molecules: three tables, GraphML files, TUDatasets."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from edgewise.core.declarations import DataSettings
from edgewise.data.graph_files import TABLE_ENDINGS, table_in_folder
from edgewise.data.graph_rows import GraphRows
from edgewise.data.graph_set_tables import GraphTables
from edgewise.data.networkx_graphs import graphml_files, read_graphml_folder
from edgewise.data.source import COLUMNS, DIRECTION, TEXT, NamedSource, Source, as_text
from edgewise.data.store import open_files
from edgewise.data.tables import read_table
from edgewise.data.tu_files import read_tu, read_tu_folder, tu_files

_TABLES = ("graphs", "nodes", "edges")
GRAPH_COLUMNS = COLUMNS | DIRECTION | {"graph_column"}


class GraphTablesSource(Source):
    """A table of graphs, one of their nodes and one of their edges."""

    form, described, unit = "graph tables", "tables of graphs, nodes and edges", "graph"
    settings, count = GRAPH_COLUMNS | TEXT, 3

    @property
    def name(self) -> str:
        first = Path(self.places[0])
        return first.resolve().parent.name or first.stem

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        graphs, nodes, edges = (read_table(place, **as_text(settings)) for place in self.places)
        return GraphTables(graphs, nodes, edges, settings)


class GraphFolderSource(GraphTablesSource):
    """The three tables in a folder."""

    form, described = "graph folder", "a folder with tables of graphs, nodes and edges"
    count = 1

    @property
    def name(self) -> str:
        return Path(self.places[0]).resolve().name.split(".")[0] or "run"

    def files(self) -> list[Path]:
        return tables_in(self.places[0], _TABLES)

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        text = as_text(settings)
        graphs, nodes, edges = (table_in_folder(self.places[0], n, **text) for n in _TABLES)
        return GraphTables(graphs, nodes, edges, settings)


class GraphmlFolderSource(Source):
    """A folder of GraphML files, each a graph, and perhaps a table of graphs."""

    form, described, unit = "graphml folder", "a folder of GraphML files", "graph"
    settings = GRAPH_COLUMNS | TEXT

    def files(self) -> list[Path]:
        return [*tables_in(self.places[0], ("graphs",)), *graphml_files(self.places[0])]

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        table = None
        if tables_in(self.places[0], ("graphs",)):
            table = table_in_folder(self.places[0], "graphs", **as_text(settings))
        return read_graphml_folder(self.places[0], settings, table)


class TUFolderSource(Source):
    """A folder with the text files of a TUDataset."""

    form, described, unit = "tu folder", "the folder of a TUDataset", "graph"
    settings = GRAPH_COLUMNS

    @property
    def implied(self) -> Mapping[str, Any]:  # type: ignore[override]
        # Labels may be 0 and 1 but are classes; both directions of an edge are listed.
        classes = "graph_labels" in tu_files(self.places[0])
        return {"directed": False, **({"task": "classification"} if classes else {})}

    def files(self) -> list[Path]:
        return list(tu_files(self.places[0]).values())

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        return read_tu_folder(self.places[0], settings)


class TUSource(NamedSource):
    """A TUDataset by name."""

    form, described, unit = "tu", "a set of graphs with columns of its own", "graph"
    settings = frozenset({"directed", "reciprocal", "fit_on", "ignore", "numbers", "categories"})
    implied: ClassVar[Mapping[str, Any]] = {"directed": False, "task": "classification"}

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        files = open_files(self.places[0])
        found = {role: (str(file.path), file.data) for role, file in files.items()}
        return read_tu(found, settings)


def tables_in(folder: str | Path, names: Sequence[str]) -> list[Path]:
    """The files of a folder that are tables of these names."""
    found = [Path(folder) / f"{name}{ending}" for name in names for ending in TABLE_ENDINGS]
    return sorted(path for path in found if path.is_file())


def graph_folder(place: str) -> Source | None:
    """The source of a folder of whole graphs; None for one of another kind."""
    if tables_in(place, ("graphs",)) and tables_in(place, ("nodes",)):
        return GraphFolderSource((place,))
    if tables_in(place, ("nodes",)):
        return None
    if graphml_files(place):
        return GraphmlFolderSource((place,))
    return TUFolderSource((place,)) if tu_files(place) else None


GRAPH_FORMS: tuple[type[Source], ...] = (
    *(GraphTablesSource, GraphFolderSource, GraphmlFolderSource, TUFolderSource, TUSource),
)
