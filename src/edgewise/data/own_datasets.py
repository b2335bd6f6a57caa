"""Data sets that a user registered, by name."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import OF_MOLECULES
from edgewise.data.catalogue import CATALOGUE
from edgewise.data.graph_rows import GraphRows
from edgewise.data.graph_sources import GRAPH_COLUMNS
from edgewise.data.graphs_in_memory import checksum_of, rows_in_memory
from edgewise.data.molecule_rows import MoleculeRows
from edgewise.data.molecule_tables import molecule_table
from edgewise.data.source import COLUMNS, MOLECULES, GraphInput, NamedSource, Source
from edgewise.data.tables import table_from_columns
from edgewise.graphs.graph import Graph


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
    settings, implied = MOLECULES | {"smiles_column"}, OF_MOLECULES
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


def own_source(name: str) -> Source:
    """The source of a data set that was registered."""
    return _OWN_UNITS[OWN_DATASETS[name].unit]((name,))


def _own_graphs(places: tuple[str, ...]) -> Source:
    """Molecules are a dictionary of columns; graphs are a list."""
    found = OWN_DATASETS[places[0]].load()
    return (OwnMoleculesSource if isinstance(found, Mapping) else OwnGraphsSource)(places)


OWN_FORMS: tuple[type[Source], ...] = (
    *(OwnGraphSource, OwnMoleculesSource, OwnGraphsSource, OwnEdgesSource),
)
_OWN_UNITS: dict[str, Callable[[tuple[str, ...]], Source]] = {
    "node": OwnGraphSource,
    "edge": OwnEdgesSource,
    "graph": _own_graphs,
}
