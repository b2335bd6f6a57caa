"""A place that data come from, in whatever form: what every form of data answers."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import unit_named
from edgewise.data.edge_store import EdgeStore
from edgewise.data.graph_rows import GraphRows, GraphStretch
from edgewise.data.graph_store import GraphStore
from edgewise.data.store import open_files
from edgewise.data.streams import Stretch
from edgewise.data.tables import Table
from edgewise.graphs.graph import Graph

DIRECTION = frozenset({"directed", "reciprocal"})
COLUMNS = frozenset(
    {"target", "id_column", "source_column", "destination_column", "edges", "text", "categories"}
    | {"numbers", "ignore", "fit_on", "missing", "unknown", "duplicates", "split_column"}
)
# How text files are read.
TEXT = frozenset({"encoding", "decimal", "missing_values"})
MOLECULES = frozenset(
    {"target", "on_invalid", "split_column", "featurizer", "pair_threshold", "descriptors"}
)


@dataclass(frozen=True, eq=False)
class GraphInput:
    """A graph as it came: ready, or tables from which it is still to be learnt."""

    graph: Graph | None = None
    nodes: Table | None = None
    edges: Table | None = None
    directed: bool = True  # whether the form of the tables says so
    label: str = ""  # the name of a ready graph's labels, or the usual target of tables
    notes: tuple[str, ...] = ()
    store: GraphStore | None = None  # a graph that need not fit into memory
    edge_store: EdgeStore | None = None  # the same with rows of edges
    ignore: tuple[str, ...] = ()  # columns that are not learnt from unless a setting names them


def without_rows_of_edges(found: GraphInput) -> GraphInput:
    """The same; refused where edges are kept as rows, and nothing is known of nodes."""
    if found.edge_store is not None:
        raise EdgewiseError(
            f"{found.edge_store.folder} was imported with --predict {found.edge_store.unit}s, to "
            f"predict its {found.edge_store.unit}s; import the tables again without --predict"
        )
    return found


def as_text(settings: DataSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in TEXT}


@dataclass(frozen=True)
class Source:
    """Where data come from: names or paths, and the form they have there."""

    places: tuple[str, ...]

    form: ClassVar[str]
    unit: ClassVar[str] = "node"  # what a row is, unless the user says otherwise
    others: ClassVar[tuple[str, ...]] = ()  # what it may be, too
    described: ClassVar[str]  # for messages
    settings: ClassVar[frozenset[str]] = DIRECTION  # those that are this form's to take
    implied: ClassVar[Mapping[str, Any]] = {}  # settings that follow from the form
    count: ClassVar[int] = 1  # of places
    id_name: ClassVar[str] = ""  # the column that names rows, if not the unit's
    by_rows: ClassVar[bool] = False  # whether it may be read row by row
    row_view: ClassVar[str] = ""  # how a report shows single rows, if not as the unit does

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

    def unit_for(self, predict: str) -> str:
        """The unit that a user asks for, by the setting ``predict``; refused if there is none."""
        wanted = unit_named(predict) or self.unit
        if wanted not in (self.unit, *self.others):
            known = ", ".join(f"{name}s" for name in (self.unit, *self.others))
            raise EdgewiseError(
                f"{self} is {self.described}, which has no {predict} to predict; leave out "
                f"--predict, or choose {known}"
            )
        return wanted

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

    def verify(self) -> None:
        """Refuse data that are not as they were written, where a checksum tells so."""

    def read_graph(self, settings: DataSettings) -> GraphInput:
        raise EdgewiseError(f"{self} is {self.described}, not a graph; give a graph")

    def read_graphs(self, settings: DataSettings, usual: str = "") -> GraphRows:
        """A row for each whole graph; ``usual`` is a name that a column of SMILES may have."""
        raise EdgewiseError(f"{self} is {self.described}, not whole graphs; give some")

    def stream_graphs(self, settings: DataSettings, usual: str = "") -> Iterator[GraphStretch]:
        """The same for prediction, some rows at a time; those that cannot be read are marked."""
        rows = self.read_graphs(settings, usual)
        structures, invalid = rows.structures(on_invalid="skip")
        errors = {entry.row: entry.reason for entry in invalid}
        yield GraphStretch(rows.table, structures, errors, rows.may_be_invalid)

    def stream_rows(self, settings: DataSettings) -> Iterator[Stretch]:
        """The same rows before their structures are read, which :meth:`read_stretch` does."""
        raise EdgewiseError(
            f"{self} is {self.described}, which is not read row by row; --workers and --engine ray "
            "are for files of molecules"
        )

    def read_stretch(self, stretch: Stretch, settings: DataSettings, usual: str) -> GraphStretch:
        """The graphs of some rows."""
        raise NotImplementedError


class NamedSource(Source):
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
