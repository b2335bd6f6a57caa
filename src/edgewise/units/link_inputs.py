"""Where links to predict come from: tables, which are learnt from, or a store of edges."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.edge_reader import EdgeReader
from edgewise.data.edge_store import EdgeStore
from edgewise.data.sources import GraphInput
from edgewise.data.splits import Split
from edgewise.data.store_files import as_tensor
from edgewise.data.tables import Table
from edgewise.data.times import read_times
from edgewise.graphs.graph import Graph
from edgewise.graphs.links import Links, find_links
from edgewise.tasks.classification import Classification
from edgewise.tasks.link import Link, link_task
from edgewise.units.base import known_rows
from edgewise.units.edge_notices import late_notices, time_notices
from edgewise.units.edge_tables import known_ends, learnt_reader, split_of_edges, table_ends
from edgewise.units.stored_columns import learnt_notices, refuse_imported_otherwise


@dataclass(frozen=True, eq=False)
class FoundLinks:
    """The links of some edges, and which of them are for training."""

    links: Links
    task: Link
    split: Split  # of the links
    time: Tensor | None  # when each edge happens
    types: Tensor | None  # the number of the type of each edge, -1 where it is unknown
    learnt_rows: np.ndarray | None  # rows of the table that columns are learnt from; None: all

    @property
    def row_times(self) -> np.ndarray | None:
        """When each link happens."""
        return None if self.links.time is None else self.links.time.numpy()


def find_link_rows(
    ends: Tensor,
    rows: np.ndarray,
    times: np.ndarray | None,
    table: Table | None,
    target: tuple[str, ...],
    settings: Settings,
) -> FoundLinks:
    """The links of a table of edges, and their split.

    Args:
        ends: Of the edges between known nodes, ``[2, edges]``.
        rows: Of the table, of each of these edges.
        times: When each row of the table happens.
        table: With the column of types, where there is one.
        target: That column, or nothing.
        settings: How links are split, and whether they have a direction.
    """
    task, types = _task_and_types(table, target)
    types = None if types is None else types[rows]
    when = None if times is None else torch.from_numpy(times[rows])
    links = find_links(
        ends,
        directed=settings.model.directed,
        time=when,
        types=types,
        num_types=len(task.types),
    )
    row_times = None if links.time is None else links.time.numpy()
    split = split_of_edges(settings, task, links.truth, None, row_times)
    split = known_rows(split, task, links.truth)
    learnt = _trained_rows(links, split.train, rows, when, settings)
    return FoundLinks(links, task, split, when, types, learnt)


class LinksOfTables:
    """Links of tables.

    Args:
        found: The tables.
        table: That of edges.
        settings: How they are read.
    """

    def __init__(self, found: GraphInput, table: Table, settings: Settings) -> None:
        self.table, self._found, self._settings = table, found, settings
        ends = table_ends(found, settings)
        self.rows = np.flatnonzero((ends >= 0).all(axis=1))
        self.ends, self.target = known_ends(ends), settings.data.target
        time = settings.split.time_column
        self.times = read_times(table, time) if time else None

    def read(self, links: FoundLinks) -> tuple[Graph, EdgeReader]:
        """The graph, and how its tables were read."""
        reader = learnt_reader(
            self._found, self._settings, links.learnt_rows, categories=self.target
        )
        return reader.read(self._found.nodes, self.table).graph, reader

    def notices(self, links: FoundLinks) -> list[str]:
        """Sentences on what may make the scores mean less."""
        return time_notices(self.table, links.row_times, links.split, self.target, "links")


class LinksOfStore:
    """Links of a store, whose columns were read when it was imported.

    Args:
        store: That was opened.
        settings: Of the model.
    """

    def __init__(self, store: EdgeStore, settings: Settings) -> None:
        self._store = store
        self.target = settings.data.target or store.info.targets
        imported = {
            "target": (self.target, store.info.targets),
            "time_column": (settings.split.time_column, store.info.reader.time),
            "directed": (settings.model.directed, store.info.reader.directed),
        }
        refuse_imported_otherwise(store.folder, imported)

    @property
    def table(self) -> Table:
        return self._store.edges

    @property
    def rows(self) -> np.ndarray:
        return self._store.rows

    @property
    def ends(self) -> Tensor:
        return self._store.graph.edge_index

    @property
    def times(self) -> np.ndarray | None:
        return self._store.times

    def read(self, links: FoundLinks) -> tuple[Graph, EdgeReader]:
        return self._store.graph, self._store.info.reader

    def notices(self, links: FoundLinks) -> list[str]:
        times = links.row_times
        notices = [] if times is None else late_notices(times, links.split, "links")
        return notices + learnt_notices(self._store, links.learnt_rows)


def stored_links(store: EdgeStore, task: Link) -> tuple[Graph, Tensor | None]:
    """The graph of a store that is read as a model was trained, and the types of its edges."""
    if not task.types:
        return store.graph, None
    if task.column not in store.info.targets:
        raise EdgewiseError(
            f"{store.folder} has no column {task.column!r} with the types of edges; import the "
            "tables again with --like RUN"
        )
    return store.graph, types_of_edges(store.edges, task)[as_tensor(store.rows)]


def types_of_edges(table: Table, task: Link) -> Tensor:
    """The number of the type of each row, -1 for types that a model does not know."""
    codes, words = table.categories(task.column)
    number = {name: k for k, name in enumerate(task.types)}
    return torch.from_numpy(np.array([*(number.get(word, -1) for word in words), -1])[codes])


def refuse_target(target: tuple[str, ...], ends: Sequence[str]) -> None:
    """Refuse columns that cannot be the types of links, such as those of their ends."""
    if len(target) > 1:
        raise EdgewiseError(
            f"one column names the types of links, not {preview(target)}; name one, or none"
        )
    if {*ends} & {*target}:
        raise EdgewiseError(
            f"{preview(target)} names ends of edges, not their type; name another column with "
            "--target, or none"
        )


def without_times(reader: EdgeReader) -> EdgeReader:
    """The same for what is asked now: it comes after all that is there, so times say nothing."""
    return replace(reader, time="")


def _task_and_types(edges: Table | None, target: tuple[str, ...]) -> tuple[Link, Tensor | None]:
    """The task, and the number of the type of each row of the edges table."""
    if edges is None or not target:
        return link_task(), None
    (column,) = target
    classes = Classification.learn(edges, (column,), (column,))
    return link_task(column, classes.classes), classes.read(edges)


def _trained_rows(
    links: Links, train: Tensor, rows: np.ndarray, when: Tensor | None, settings: Settings
) -> np.ndarray | None:
    """The rows of the edges table that scales and categories are learnt from."""
    if settings.data.fit_on == "all":
        return None
    if when is None or links.time is None:
        return rows[torch.isin(links.of_edge, train).numpy()]
    # A repeated edge is no link of its own: what is not later than training links is known.
    latest = links.time[train].max() if len(train) else -torch.inf
    return rows[(when <= latest).numpy()]
