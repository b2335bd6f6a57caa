"""What a user's words for data mean: a data set's name, tables of a graph, a file of molecules.

Each form that data can have is a class: which settings it takes, and how it is read.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.presets import OF_MOLECULES
from edgewise.core.settings import unit_named
from edgewise.data.bitcoin import read_ratings
from edgewise.data.catalogue import CATALOGUE
from edgewise.data.citation import load_citation
from edgewise.data.edge_store import EdgeStore
from edgewise.data.graph_files import load_graph, read_folder, read_graphml
from edgewise.data.graph_rows import GraphRows
from edgewise.data.graph_sources import GRAPH_FORMS, GraphTablesSource, graph_folder
from edgewise.data.heterophilous import UNDIRECTED, load_heterophilous
from edgewise.data.molecule_rows import MoleculeRows
from edgewise.data.molecule_sources import (
    MoleculeFileSource,
    MoleculePartsSource,
    parts_folder,
)
from edgewise.data.molecule_tables import read_named
from edgewise.data.own_datasets import OWN_DATASETS, OWN_FORMS, own_source
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
from edgewise.data.stores import is_any_store, open_any_store
from edgewise.data.tables import read_table


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
    settings, implied = MOLECULES, OF_MOLECULES
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

    form, others = "store", ("edge", "link")
    described = "a graph store, whose columns were read when it was imported"
    settings = DIRECTION | {"target", "split_column"}

    @property
    def implied(self) -> Mapping[str, Any]:  # type: ignore[override]
        return open_any_store(self.places[0]).implied

    def unit_for(self, predict: str) -> str:
        # What it was imported for, unless the user says otherwise.
        said = unit_named(predict)
        return super().unit_for(predict) if said else open_any_store(self.places[0]).unit

    def checksum(self) -> str:
        return open_any_store(self.places[0]).checksum

    def files(self) -> list[Path]:
        return sorted(Path(self.places[0]).iterdir())

    def verify(self) -> None:
        open_any_store(self.places[0]).verify()

    def read_graph(self, settings: DataSettings) -> GraphInput:
        store = open_any_store(self.places[0])
        if isinstance(store, EdgeStore):
            return GraphInput(edge_store=store)
        return GraphInput(store=store)


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


_ALL: tuple[type[Source], ...] = (
    *(CitationSource, MoleculesSource, GraphFileSource, GraphmlSource, TablesSource),
    *(FolderSource, MoleculeFileSource, HeterophilousSource, EdgeTableSource, RatingsSource),
    *(StoreSource, MoleculePartsSource),
    *GRAPH_FORMS,
    *OWN_FORMS,
)
FORMS: dict[str, type[Source]] = {source.form: source for source in _ALL}
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
        return own_source(place)
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
        if is_any_store(place):
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
