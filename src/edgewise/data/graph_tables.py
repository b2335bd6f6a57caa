"""Learn how to read a graph that stands in two tables: one of nodes, one of edges."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data import columns
from edgewise.data.column_kinds import guess_kind
from edgewise.data.columns import Column
from edgewise.data.graph_reader import GraphReader, edge_ends, node_ids
from edgewise.data.labels import learn_labels
from edgewise.data.tables import Table

_POLICIES = {
    "missing": ("error", "mean"),
    "unknown": ("error", "drop"),
    "duplicates": ("error", "sum", "max"),
}


@runtime_checkable
class HasColumns(Protocol):
    """A table, as far as the names of its columns go."""

    @property
    def path(self) -> str: ...

    @property
    def columns(self) -> Iterable[str]: ...


def learn_graph_reader(
    nodes: Table,
    edges: Table,
    *,
    id: str = "id",
    label: str | None = None,
    task: str | None = None,
    numbers: Sequence[str] = (),
    categories: Sequence[str] = (),
    text: Sequence[str] = (),
    ignore: Sequence[str] = (),
    source: str = "source",
    target: str = "target",
    directed: bool = True,
    missing: str = "error",
    unknown: str = "error",
    duplicates: str = "error",
    words: int = 1000,
    rows: np.ndarray | None = None,
    edge_rows: np.ndarray | None = None,
) -> GraphReader:
    """Learn from two tables how to read them, and others like them.

    Columns that are not named are read as what they look like: numbers, categories (few
    different values) or text (several words in a cell).

    Args:
        nodes: One row per node.
        edges: One row per edge.
        id: Column of the nodes table that names each node.
        label: Column of the nodes table to be predicted; empty where it is not known.
        task: ``"classification"`` or ``"regression"``, where the label column leaves it open.
        numbers: Columns of either table to read as numbers.
        categories: Columns of either table to read as categories.
        text: Columns of the nodes table to read as text, by TF-IDF.
        ignore: Columns of either table to leave out.
        source: Column of the edges table with the node an edge starts from.
        target: Column of the edges table with the node an edge goes to.
        directed: Whether an edge goes one way only.
        missing: ``"mean"`` fills empty cells among node numbers; on edges they are 0, no edge.
        unknown: ``"drop"`` leaves out edges that name no node of the table.
        duplicates: ``"sum"`` or ``"max"`` merges edges that join the same two nodes.
        words: How many words of a text column are kept, the most frequent.
        rows: Positions of the training nodes. Scales, categories and words are learnt from these
            nodes and from the edges that touch one of them; without it from all.
        edge_rows: Positions of the training edges. Where they are given alone, edges are predicted,
            and nodes are learnt from those at their ends.
    """
    check_policies(missing=missing, unknown=unknown, duplicates=duplicates)
    named = named_kinds(nodes, edges, numbers, categories, text, ignore)
    nodes.require(id)  # named first, if absent
    edges.require(source, target)
    labels = None
    if label is not None:
        labels = learn_labels(nodes, label, task, categories=label in categories)
    if edge_rows is not None and rows is None:
        ends = edge_ends(edges, source, target, node_ids(nodes, id))[edge_rows]
        rows = np.unique(ends[ends >= 0])
    elif rows is not None and edge_rows is None:
        training = np.zeros(len(nodes) + 1, dtype=bool)  # -1, no such node, finds the last
        training[rows] = True
        training[-1] = False
        ends = edge_ends(edges, source, target, node_ids(nodes, id))
        (edge_rows,) = np.nonzero(training[ends].any(axis=1))
    left_out = (id, *ignore) if label is None else (id, label, *ignore)
    features = learn_features(nodes, named, left_out, missing=missing, words=words, rows=rows)
    channels: list[Column] = []
    for name in edges.columns:
        if name in (source, target, *ignore):
            continue
        channels.append(learn_channel(edges, name, edge_rows, kind=named.get(name, "")))
    return GraphReader(
        id, source, target, directed, unknown, duplicates, features, tuple(channels), labels
    )


def check_policies(**policies: str) -> None:
    """Refuse a policy that there is not."""
    for name, value in policies.items():
        if value not in _POLICIES[name]:
            raise EdgewiseError(
                f"{name}={value!r} is not known; choose one of {', '.join(_POLICIES[name])}"
            )


def named_kinds(
    nodes: HasColumns,
    edges: HasColumns,
    numbers: Sequence[str],
    categories: Sequence[str],
    text: Sequence[str],
    ignore: Sequence[str],
) -> dict[str, str]:
    """What each column that was named is to be read as; one of neither table is refused."""
    named = {
        **dict.fromkeys(numbers, "numbers"),
        **dict.fromkeys(categories, "categories"),
        **dict.fromkeys(text, "text"),
    }
    absent = [c for c in (*named, *ignore) if c not in {*nodes.columns, *edges.columns}]
    if absent:
        raise EdgewiseError(
            f"column(s) {preview(absent)} are in neither table; {nodes.path} has "
            f"{preview(list(nodes.columns), limit=12)}, {edges.path} has "
            f"{preview(list(edges.columns), limit=12)}"
        )
    return named


def learn_features(
    nodes: Table,
    named: Mapping[str, str],
    left_out: Collection[str],
    *,
    missing: str = "error",
    words: int = 1000,
    rows: np.ndarray | None = None,
) -> tuple[Column, ...]:
    """Learn how the columns of nodes become features; see :func:`learn_graph_reader`."""
    features: list[Column] = []
    for name in nodes.columns:
        if name in left_out:
            continue
        kind = named.get(name) or guess_kind(nodes, name)
        if kind == "numbers":
            features.append(columns.learn_numbers(nodes, name, fill=missing == "mean", rows=rows))
        elif kind == "categories":
            features.append(columns.learn_categories(nodes, name, rows))
        else:
            features.append(columns.learn_text(nodes, name, words=words, rows=rows))
    return tuple(features)


def learn_channel(
    edges: Table, name: str, rows: np.ndarray | None = None, *, kind: str = ""
) -> Column:
    """Learn how a column of edges becomes channels.

    Args:
        edges: One row per edge.
        name: The column.
        rows: Positions of the edges to learn from; without it all.
        kind: ``"numbers"`` or ``"categories"``; without it what the column looks like.
    """
    kind = kind or guess_kind(edges, name)
    if kind == "text":
        raise text_channel(edges.path, name)
    if kind == "numbers":
        return columns.learn_weights(edges, name, rows)
    return columns.learn_categories(edges, name, rows)


def text_channel(path: str, name: str) -> EdgewiseError:
    """The sentence for a column of edges that holds text."""
    return EdgewiseError(
        f"{path}: column {name!r} holds text, which makes no channel; read it as categories, or "
        "ignore it"
    )
