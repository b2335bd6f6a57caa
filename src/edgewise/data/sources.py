"""What a user's words for data mean: a data set's name, tables of a graph, a file of molecules.

Each form that data can have is a class: which settings it takes, and how it is read.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import DataSettings
from edgewise.data.catalogue import CATALOGUE
from edgewise.data.citation import load_citation
from edgewise.data.graph_files import load_graph, read_folder, read_graphml
from edgewise.data.molecule_tables import MoleculeTable, molecule_table, read_molecules, read_named
from edgewise.data.store import open_files
from edgewise.data.tables import Table, read_table, table_from_columns
from edgewise.graphs.graph import Graph

_DIRECTION = frozenset({"directed", "reciprocal"})
_COLUMNS = frozenset(
    {"target", "id_column", "source_column", "destination_column", "edges", "text", "categories"}
    | {"numbers", "ignore", "fit_on", "missing", "unknown", "duplicates", "split_column"}
)
# How text files are read.
_TEXT = frozenset({"encoding", "decimal", "missing_values"})
_MOLECULES = frozenset(
    {"target", "on_invalid", "split_column", "featurizer", "pair_threshold", "descriptors"}
)


@dataclass(frozen=True, eq=False)
class GraphInput:
    """A graph as it came: ready, or two tables from which it is still to be learnt."""

    graph: Graph | None = None
    nodes: Table | None = None
    edges: Table | None = None
    directed: bool = True  # whether the form of the tables says so
    label: str = ""  # the name of a ready graph's labels
    notes: tuple[str, ...] = ()


def _as_text(settings: DataSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in _TEXT}


@dataclass(frozen=True)
class Source:
    """Where data come from: names or paths, and the form they have there."""

    places: tuple[str, ...]

    form: ClassVar[str]
    unit: ClassVar[str] = "node"  # what a row is, unless the user says otherwise
    described: ClassVar[str]  # for messages
    settings: ClassVar[frozenset[str]] = _DIRECTION  # those that are this form's to take
    implied: ClassVar[Mapping[str, Any]] = {}  # settings that follow from the form

    @property
    def name(self) -> str:
        """A short name for a run."""
        return Path(self.places[0]).resolve().name.split(".")[0] or "run"

    def __str__(self) -> str:
        return " and ".join(self.places)

    def checksum(self) -> str:
        """SHA-256 of the bytes the data are read from."""
        digest = hashlib.sha256()
        try:
            for path in self.files():
                with path.open("rb") as stream:
                    while block := stream.read(2**20):
                        digest.update(block)
        except (OSError, ValueError) as error:  # ValueError: a name with a null character
            reason = getattr(error, "strerror", None) or error
            raise EdgewiseError(f"{self} cannot be read ({reason}); put the data back") from error
        return digest.hexdigest()

    def absolute(self) -> "Source":
        """The same source, findable from any folder."""
        return type(self)(tuple(str(Path(place).resolve()) for place in self.places))

    def files(self) -> list[Path]:
        """The user's own files that are read; none for a data set by name."""
        return [Path(place) for place in self.places]

    def check_there(self) -> None:
        """Refuse data that are gone."""
        if not all(Path(place).exists() for place in self.places):
            raise EdgewiseError(f"{self} is not there any more; name the data after the run")

    def check_not_written(self, out: str | Path, flag: str) -> None:
        """Refuse an output that would take the place of a file that is read."""
        if Path(out).resolve() in [path.resolve() for path in self.files()]:
            raise EdgewiseError(f"{out} is the input itself; choose another {flag}")

    def read_graph(self, settings: DataSettings) -> GraphInput:
        raise EdgewiseError(f"{self} is {self.described}, not a graph; give a graph")

    def read_molecules(self, settings: DataSettings, usual: str = "") -> MoleculeTable:
        """The rows of molecules; ``usual`` is a name that the SMILES column may have."""
        raise EdgewiseError(f"{self} is {self.described}, not molecules; give molecules")


class _Named(Source):
    """A data set by name."""

    def checksum(self) -> str:
        digest = hashlib.sha256()
        for _, file in sorted(open_files(self.places[0]).items()):
            digest.update(file.data)
        return digest.hexdigest()

    def absolute(self) -> Source:
        return self

    def files(self) -> list[Path]:
        return []

    def check_there(self) -> None:
        """Fetched when it is read."""


class CitationSource(_Named):
    """A citation network by name."""

    form, described = "citation", "a citation network with features and classes of its own"

    def read_graph(self, settings: DataSettings) -> GraphInput:
        graph, found = load_citation(self.places[0])
        return GraphInput(graph, label="class", notes=(str(found),))


class MoleculesSource(_Named):
    """A set of molecules by name."""

    form, described, unit = "molecules", "a set of molecules with columns of its own", "graph"
    settings, implied = _MOLECULES, {"directed": False}

    def read_molecules(self, settings: DataSettings, usual: str = "") -> MoleculeTable:
        return read_named(self.places[0])


class GraphFileSource(Source):
    """A graph as safetensors."""

    form, described = "graph", "a ready graph without columns"

    def read_graph(self, settings: DataSettings) -> GraphInput:
        return GraphInput(load_graph(self.places[0]), label="y")


class GraphmlSource(Source):
    """A graph as GraphML."""

    form, described = "graphml", "a GraphML file"
    settings = _COLUMNS | _DIRECTION

    def read_graph(self, settings: DataSettings) -> GraphInput:
        nodes, edges, directed = read_graphml(self.places[0])
        return GraphInput(nodes=nodes, edges=edges, directed=directed)


class TablesSource(Source):
    """A table of nodes and one of edges."""

    form, described = "tables", "a table of nodes and a table of edges"
    settings = _COLUMNS | _DIRECTION | _TEXT

    @property
    def name(self) -> str:
        first = Path(self.places[0])
        return first.resolve().parent.name or first.stem

    def read_graph(self, settings: DataSettings) -> GraphInput:
        nodes, edges = (read_table(place, **_as_text(settings)) for place in self.places)
        return GraphInput(nodes=nodes, edges=edges)


class FolderSource(TablesSource):
    """Both tables in a folder."""

    form, described = "folder", "a folder with tables of nodes and edges"

    @property
    def name(self) -> str:
        return Path(self.places[0]).resolve().name.split(".")[0] or "run"

    def files(self) -> list[Path]:
        folder = Path(self.places[0])
        tables = [p for p in folder.iterdir() if p.name.split(".")[0] in ("nodes", "edges")]
        return sorted(p for p in tables if p.is_file())

    def read_graph(self, settings: DataSettings) -> GraphInput:
        nodes, edges = read_folder(self.places[0], **_as_text(settings))
        return GraphInput(nodes=nodes, edges=edges)


class MoleculeFileSource(Source):
    """Molecules in a table or an SDF."""

    form, described, unit = "molecule file", "a file of molecules", "graph"
    settings = _MOLECULES | _TEXT | {"smiles_column", "categories"}
    implied: ClassVar[Mapping[str, Any]] = {"directed": False}

    def read_molecules(self, settings: DataSettings, usual: str = "") -> MoleculeTable:
        return read_molecules(
            self.places[0],
            smiles=settings.smiles_column or None,
            usual=usual,
            **_as_text(settings),
        )


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
            :class:`~edgewise.Graph` with ``y``; for ``graph`` a dictionary of columns, one of which
            is called ``smiles``. Without it, a decorator for such a function is returned.
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


class _Own(_Named):
    def _load(self) -> Any:
        if self.places[0] not in OWN_DATASETS:
            raise EdgewiseError(
                f"the data set {self.places[0]!r} is not registered; name the Python file that "
                "does so with --plugin"
            )
        return OWN_DATASETS[self.places[0]].load()


class OwnGraphSource(_Own):
    """A graph that the user registered."""

    form, described = "own graph", "a ready graph without columns"

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
    settings, implied = _MOLECULES | {"smiles_column"}, {"directed": False}

    def checksum(self) -> str:
        return hashlib.sha256(repr(dict(self._load())).encode()).hexdigest()

    def read_molecules(self, settings: DataSettings, usual: str = "") -> MoleculeTable:
        columns = {str(name): list(values) for name, values in dict(self._load()).items()}
        table = table_from_columns(columns, self.places[0])
        return molecule_table(table, smiles=settings.smiles_column, usual=usual)


FORMS: dict[str, type[Source]] = {
    source.form: source
    for source in (
        *(CitationSource, MoleculesSource, GraphFileSource, GraphmlSource, TablesSource),
        *(FolderSource, MoleculeFileSource, OwnGraphSource, OwnMoleculesSource),
    )
}
_OWN_UNITS = {"node": OwnGraphSource, "graph": OwnMoleculesSource}


def find_source(places: Sequence[str]) -> Source:
    """The source of what a user names: a data set, a folder, two tables, or one file."""
    if len(places) == 2:
        for place in places:
            if not _is(place, Path.is_file):
                raise EdgewiseError(
                    f"{place} is not a file; give a nodes table and an edges table, or one name"
                )
        return TablesSource(tuple(places))
    if len(places) != 1:
        raise EdgewiseError(
            f"data come from one place or two, not from {preview(list(places))}; give a data set's "
            "name, a folder, a nodes table and an edges table, or one file of molecules"
        )
    place = places[0]
    if place in OWN_DATASETS:
        return _OWN_UNITS[OWN_DATASETS[place].unit]((place,))
    if place in CATALOGUE:
        return FORMS[CATALOGUE[place].kind]((place,))
    path = Path(place)
    if _is(place, Path.is_dir):
        return FolderSource((place,))
    if _is(place, Path.is_file):
        # A pickle is no graph either, but the reader of graphs says what to do with it.
        graphs = dict.fromkeys((".safetensors", ".pt", ".pth", ".pkl", ".pickle"), GraphFileSource)
        form = {".graphml": GraphmlSource, **graphs}.get(path.suffix.lower())
        return (form or MoleculeFileSource)((place,))
    names = ", ".join((*CATALOGUE, *OWN_DATASETS))
    raise EdgewiseError(
        f"{place} is neither a data set nor a file or folder; the data sets are {names}, a graph "
        "is a folder with nodes.csv and edges.csv or those two files, molecules are one file"
    )


def _is(place: str, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(Path(place))
    except (OSError, ValueError):  # longer than a name can be, or with a null character
        return False


def stored_source(form: str, places: Sequence[str]) -> Source:
    """The source that a run folder names."""
    if form not in FORMS:
        raise EdgewiseError(f"data of the form {form!r} are unknown to this version")
    count = 2 if form == TablesSource.form else 1
    if len(places) != count:
        raise EdgewiseError(f"data of the form {form!r} come from {count} place(s)")
    return FORMS[form](tuple(places))
