"""What a user's words for data mean: a data set's name, tables of a graph, a file of molecules.

Each form that data can have is a class: which settings it takes, and how it is read.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import DataSettings
from edgewise.data.bitcoin import read_ratings
from edgewise.data.catalogue import CATALOGUE
from edgewise.data.citation import load_citation
from edgewise.data.graph_files import load_graph, read_folder, read_graphml
from edgewise.data.graph_rows import GraphRows
from edgewise.data.graph_sources import (
    GRAPH_COLUMNS,
    GRAPH_FORMS,
    GraphTablesSource,
    graph_folder,
)
from edgewise.data.graph_store import is_store, open_store
from edgewise.data.graphs_in_memory import checksum_of, rows_in_memory
from edgewise.data.heterophilous import UNDIRECTED, load_heterophilous
from edgewise.data.molecule_rows import MoleculeRows
from edgewise.data.molecule_sources import (
    MoleculeFileSource,
    MoleculePartsSource,
    parts_folder,
)
from edgewise.data.molecule_tables import molecule_table, read_named
from edgewise.data.source import (
    COLUMNS,
    DIRECTION,
    MOLECULES,
    TEXT,
    GraphInput,
    NamedSource,
    Source,
    as_text,
)
from edgewise.data.tables import read_table, table_from_columns
from edgewise.graphs.graph import Graph


class CitationSource(NamedSource):
    """A citation network by name."""

    form, described = "citation", "a citation network with features and classes of its own"
    others = ("link",)

    def read_graph(self, settings: DataSettings) -> GraphInput:
        graph, found = load_citation(self.places[0])
        return GraphInput(graph, label="class", notes=(str(found),))


class HeterophilousSource(NamedSource):
    """A graph whose neighbours differ, by name."""

    form, described = "heterophilous", "a ready graph without columns"

    @property
    def implied(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"directed": False} if self.places[0] in UNDIRECTED else {}

    def read_graph(self, settings: DataSettings) -> GraphInput:
        return GraphInput(load_heterophilous(self.places[0]), label="class")


class MoleculesSource(NamedSource):
    """A set of molecules by name."""

    form, described, unit = "molecules", "a set of molecules with columns of its own", "graph"
    settings, implied = MOLECULES, {"directed": False}
    id_name, row_view = "smiles", "structures"

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        return MoleculeRows(read_named(self.places[0]))


class GraphFileSource(Source):
    """A graph as safetensors."""

    form, described, others = "graph", "a ready graph without columns", ("link",)

    def read_graph(self, settings: DataSettings) -> GraphInput:
        return GraphInput(load_graph(self.places[0]), label="y")


class StoreSource(Source):
    """A graph store."""

    form, others = "store", ("link",)
    described = "a graph store, whose columns were read when it was imported"
    settings = DIRECTION | {"target", "split_column"}

    @property
    def implied(self) -> Mapping[str, Any]:  # type: ignore[override]
        info = open_store(self.places[0]).info
        undirected = info.reader is not None and not info.reader.directed
        return {**info.split, **({"directed": False} if undirected else {})}

    def checksum(self) -> str:
        return open_store(self.places[0]).checksum

    def files(self) -> list[Path]:
        return sorted(Path(self.places[0]).iterdir())

    def verify(self) -> None:
        open_store(self.places[0]).verify()

    def read_graph(self, settings: DataSettings) -> GraphInput:
        return GraphInput(store=open_store(self.places[0]))


class GraphmlSource(Source):
    """A graph as GraphML."""

    form, described, others = "graphml", "a GraphML file", ("edge", "link")
    settings = COLUMNS | DIRECTION

    def read_graph(self, settings: DataSettings) -> GraphInput:
        nodes, edges, directed = read_graphml(self.places[0])
        return GraphInput(nodes=nodes, edges=edges, directed=directed)


class TablesSource(Source):
    """A table of nodes and one of edges."""

    form, described = "tables", "a table of nodes and a table of edges"
    others = ("edge", "link")
    settings, count = COLUMNS | DIRECTION | TEXT, 2

    @property
    def name(self) -> str:
        first = Path(self.places[0])
        return first.resolve().parent.name or first.stem

    def read_graph(self, settings: DataSettings) -> GraphInput:
        nodes, edges = (read_table(place, **as_text(settings)) for place in self.places)
        return GraphInput(nodes=nodes, edges=edges)


class FolderSource(TablesSource):
    """Both tables in a folder."""

    form, described = "folder", "a folder with tables of nodes and edges"
    count = 1

    @property
    def name(self) -> str:
        return Path(self.places[0]).resolve().name.split(".")[0] or "run"

    def files(self) -> list[Path]:
        folder = Path(self.places[0])
        tables = [p for p in folder.iterdir() if p.name.split(".")[0] in ("nodes", "edges")]
        return sorted(p for p in tables if p.is_file())

    def read_graph(self, settings: DataSettings) -> GraphInput:
        nodes, edges = read_folder(self.places[0], **as_text(settings))
        return GraphInput(nodes=nodes, edges=edges)


class EdgeTableSource(Source):
    """A table of edges alone, whose nodes are what it names."""

    form, described, unit, others = "edges", "a table of edges", "edge", ("link",)
    settings = (COLUMNS - {"id_column"}) | {"directed"} | TEXT

    def read_graph(self, settings: DataSettings) -> GraphInput:
        return GraphInput(edges=read_table(self.places[0], **as_text(settings)))


class RatingsSource(NamedSource):
    """A network of ratings by name."""

    form, described, unit = "ratings", "a network of ratings with columns of its own", "edge"
    others = ("link",)
    settings = frozenset({"target", "directed"})

    def read_graph(self, settings: DataSettings) -> GraphInput:
        table, label, note = read_ratings(self.places[0], settings.target, settings.label_columns)
        return GraphInput(edges=table, label=label, notes=(note,), ignore=("when",))


@dataclass(frozen=True)
class OwnDataset:
    """A data set that was registered with :func:`register_dataset`."""

    load: Callable[[], Any]  # remembers what it gave
    original: Callable[[], Any]
    unit: str
    summary: str


OWN_DATASETS: dict[str, OwnDataset] = {}


def register_dataset(
    name: str, load: Callable[[], Any] | None = None, *, unit: str = "node", summary: str = ""
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Make a data set of your own known by a name, for the command line as well.

    Args:
        name: What ``edgewise train NAME`` is to find.
        load: Called when the data are needed, once. For the unit ``node`` it gives a
            :class:`~edgewise.Graph` with ``y``; for ``edge`` a dictionary of the columns of edges;
            for ``graph`` a dictionary of columns, one of which is called ``smiles``, or a list of
            graphs: PyG data with ``y``, or NetworkX graphs whose attributes are the targets.
            Without it, a decorator for such a function is returned.
        unit: What a row is.
        summary: A line for ``edgewise datasets``.
    """
    if name in CATALOGUE:
        raise EdgewiseError(f"there is a data set named {name!r} already; choose another name")
    if unit not in _OWN_UNITS:
        raise EdgewiseError(
            f"the data set {name!r} has the unit {unit!r}; choose one of {', '.join(_OWN_UNITS)}"
        )

    def register(load: Callable[[], Any]) -> Callable[[], Any]:
        known = OWN_DATASETS.get(name)
        if known is not None and known.original is not load:
            raise EdgewiseError(f"there is a data set named {name!r} already; choose another name")
        OWN_DATASETS[name] = OwnDataset(cache(load), load, unit, summary)
        return load

    if load is not None:
        register(load)
    return register


class _Own(NamedSource):
    def _load(self) -> Any:
        if self.places[0] not in OWN_DATASETS:
            raise EdgewiseError(
                f"the data set {self.places[0]!r} is not registered; name the Python file that "
                "does so with --plugin"
            )
        return OWN_DATASETS[self.places[0]].load()


class OwnGraphSource(_Own):
    """A graph that the user registered."""

    form, described, others = "own graph", "a ready graph without columns", ("link",)

    def checksum(self) -> str:
        graph: Graph = self._load()
        digest = hashlib.sha256()
        for tensor in (graph.x, graph.edge_index, graph.channels, graph.y):
            if tensor is not None:
                digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def read_graph(self, settings: DataSettings) -> GraphInput:
        graph = self._load()
        if not isinstance(graph, Graph):
            raise EdgewiseError(
                f"the data set {self.places[0]!r} gives a {type(graph).__name__}; give an "
                "edgewise.Graph with y"
            )
        return GraphInput(graph, label="y")


class OwnMoleculesSource(_Own):
    """Molecules that the user registered."""

    form, described, unit = "own molecules", "a set of molecules with columns of its own", "graph"
    settings, implied = MOLECULES | {"smiles_column"}, {"directed": False}
    id_name, row_view = "smiles", "structures"

    def checksum(self) -> str:
        return hashlib.sha256(repr(dict(self._load())).encode()).hexdigest()

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        columns = {str(name): list(values) for name, values in dict(self._load()).items()}
        table = table_from_columns(columns, self.places[0])
        return MoleculeRows(molecule_table(table, smiles=settings.smiles_column, usual=usual))


class OwnEdgesSource(_Own):
    """Edges that the user registered."""

    form, described, unit, others = "own edges", "a table of edges", "edge", ("link",)
    settings = (COLUMNS - {"id_column"}) | {"directed"}

    def checksum(self) -> str:
        return hashlib.sha256(repr(dict(self._load())).encode()).hexdigest()

    def read_graph(self, settings: DataSettings) -> GraphInput:
        columns = {str(name): list(values) for name, values in dict(self._load()).items()}
        return GraphInput(edges=table_from_columns(columns, self.places[0]))


class OwnGraphsSource(_Own):
    """Whole graphs that the user registered."""

    form, described, unit = "own graphs", "a list of graphs with columns of their own", "graph"
    settings = GRAPH_COLUMNS

    def checksum(self) -> str:
        return checksum_of(self._load())

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        return rows_in_memory(self._load(), settings, self.places[0])


def _own_graphs(places: tuple[str, ...]) -> Source:
    """Molecules are a dictionary of columns; graphs are a list."""
    found = OWN_DATASETS[places[0]].load()
    return (OwnMoleculesSource if isinstance(found, Mapping) else OwnGraphsSource)(places)


_ALL: tuple[type[Source], ...] = (
    *(CitationSource, MoleculesSource, GraphFileSource, GraphmlSource, TablesSource),
    *(FolderSource, MoleculeFileSource, OwnGraphSource, OwnMoleculesSource, OwnGraphsSource),
    *(HeterophilousSource, EdgeTableSource, RatingsSource, OwnEdgesSource, StoreSource),
    MoleculePartsSource,
    *GRAPH_FORMS,
)
FORMS: dict[str, type[Source]] = {source.form: source for source in _ALL}
_OWN_UNITS: dict[str, Callable[[tuple[str, ...]], Source]] = {
    "node": OwnGraphSource,
    "edge": OwnEdgesSource,
    "graph": _own_graphs,
}
# What a single table holds, by the unit that is asked for; molecules unless it is asked.
_ONE_TABLE: dict[str, type[Source]] = {"edge": EdgeTableSource, "link": EdgeTableSource}
# What the parts of a table in a folder hold, by the unit that is asked for.
_PARTS: dict[str, Callable[[str], Source | None]] = {"graph": parts_folder}


def find_source(places: Sequence[str], unit: str = "") -> Source:
    """The source of what a user names: a data set, a folder, two tables, or one file.

    Args:
        places: Names, folders, files.
        unit: What a row is to be, if the user says so.
    """
    if len(places) == 2:
        for place in places:
            if not _is(place, Path.is_file):
                raise EdgewiseError(
                    f"{place} is not a file; give a nodes table and an edges table, or one name"
                )
        return TablesSource(tuple(places))
    if len(places) == 3:
        absent = [place for place in places if not _is(place, Path.is_file)]
        if absent:
            raise EdgewiseError(
                f"{absent[0]} is not a file; give a table of graphs, one of nodes and one of "
                "edges, in this order"
            )
        return GraphTablesSource(tuple(places))
    if len(places) != 1:
        raise EdgewiseError(
            f"data come from one place, two or three, not from {preview(list(places))}; give a "
            "data set's name, a folder, a nodes table and an edges table (behind a table of "
            "graphs, where there are many), or one file of molecules"
        )
    place = places[0]
    if place in OWN_DATASETS:
        return _OWN_UNITS[OWN_DATASETS[place].unit]((place,))
    if place in CATALOGUE:
        return FORMS[CATALOGUE[place].kind]((place,))
    path = Path(place)
    if _is(place, Path.is_dir):
        return _folder_source(place, unit)
    if _is(place, Path.is_file):
        # A pickle is no graph either, but the reader of graphs says what to do with it.
        graphs = dict.fromkeys((".safetensors", ".pt", ".pth", ".pkl", ".pickle"), GraphFileSource)
        form = {".graphml": GraphmlSource, **graphs}.get(path.suffix.lower())
        return (form or _ONE_TABLE.get(unit, MoleculeFileSource))((place,))
    names = ", ".join((*CATALOGUE, *OWN_DATASETS))
    raise EdgewiseError(
        f"{place} is neither a data set nor a file or folder; the data sets are {names}, a graph "
        "is a store, a folder with nodes.csv and edges.csv or those two files (many graphs have a "
        "graphs.csv, too), molecules are one file, and so are edges with --predict edges"
    )


def _folder_source(place: str, unit: str) -> Source:
    try:
        if is_store(place):
            return StoreSource((place,))
        parts = _PARTS[unit](place) if unit in _PARTS else None
        return graph_folder(place) or parts or FolderSource((place,))
    except OSError as error:
        raise EdgewiseError(
            f"{place} cannot be read ({error.strerror}); check its permissions"
        ) from error


def _is(place: str, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(Path(place))
    except (OSError, ValueError):  # longer than a name can be, or with a null character
        return False


def stored_source(form: str, places: Sequence[str]) -> Source:
    """The source that a run folder names."""
    if form not in FORMS:
        raise EdgewiseError(f"data of the form {form!r} are unknown to this version")
    count = FORMS[form].count
    if len(places) != count:
        raise EdgewiseError(f"data of the form {form!r} come from {count} place(s)")
    return FORMS[form](tuple(places))
