"""Tables of edges, for units whose rows are edges or pairs of nodes: ends, splits and readers."""

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import SETTINGS, Settings
from edgewise.data.columns import Column
from edgewise.data.edge_reader import EdgeReader, implied_nodes
from edgewise.data.graph_reader import edge_ends, node_ids
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.molecule_splits import split_by_column
from edgewise.data.sources import GraphInput
from edgewise.data.splits import Split, load_split
from edgewise.data.tables import Table
from edgewise.data.times import split_by_time
from edgewise.tasks.base import Task
from edgewise.units.splitting import drawn_split, is_file


def node_table(found: GraphInput, settings: Settings) -> Table:
    """The table of nodes, or one of the ids that the edges name."""
    data = settings.data
    assert found.edges is not None
    if found.nodes is not None:
        return found.nodes
    return implied_nodes(found.edges, data.source_column, data.destination_column, data.id_column)


def table_ends(found: GraphInput, settings: Settings) -> np.ndarray:
    """The numbers of both ends of each row of the edges table, -1 for no node of the table."""
    data = settings.data
    assert found.edges is not None
    found.edges.require(data.source_column, data.destination_column)
    ids = node_ids(node_table(found, settings), data.id_column)
    return edge_ends(found.edges, data.source_column, data.destination_column, ids)


def without_unknown_ends(truth: Tensor, task: Task, unknown: Tensor) -> Tensor:
    """The truth, not known of edges that are dropped because they name no node.

    Args:
        truth: Of each row of the table.
        task: What is predicted.
        unknown: Whether a row names a node that there is not.
    """
    truth = truth.clone()
    truth[unknown] = task.unknown_truth(int(unknown.sum())).to(truth.dtype)
    return truth


def refuse_merging(settings: Settings, what: str) -> None:
    """Refuse settings that merge edges, where they are kept apart.

    Args:
        settings: As they were given.
        what: What edges are, for the sentence.
    """
    merging = {"duplicates": settings.data.duplicates, "reciprocal": settings.model.reciprocal}
    for name, value in merging.items():
        if value != SETTINGS[name].default:
            raise EdgewiseError(
                f"{name} = {value} merges edges, which are {what}; leave it out: parallel edges "
                "are kept apart"
            )


def split_of_edges(
    settings: Settings, task: Task, truth: Tensor, table: Table | None, times: np.ndarray | None
) -> Split:
    """The split of rows: by a column, a file, time, or drawn.

    Args:
        settings: Which split.
        task: What is predicted.
        truth: Its truth.
        table: Of the same rows, where a column may say which part each is in.
        times: When each row happens.
    """
    chosen = settings.split
    if chosen.split_column and table is not None:
        return split_by_column(table, chosen.split_column)
    if is_file(chosen.split):
        return load_split(chosen.split)
    if times is None:
        return drawn_split(settings, task, truth)
    if chosen.stratify:
        raise EdgewiseError("a split by time cannot be balanced; set stratify = false")
    return split_by_time(times, task.labelled_rows(truth), chosen.split)


def learnt_reader(
    found: GraphInput,
    settings: Settings,
    rows: np.ndarray | None,
    *,
    left_out: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    ports: bool = False,
    shown: tuple[Column, ...] = (),
) -> EdgeReader:
    """How the tables are read, learnt from some of their rows.

    Args:
        found: The tables.
        settings: What is said of their columns.
        rows: Of the edges table, to learn from; without it all.
        left_out: Columns that are no features, beside those that the settings leave out.
        categories: Columns that hold categories, beside those that the settings name.
        ports: Whether parallel edges are numbered.
        shown: Columns that are known only together with the label.
    """
    data, time = settings.data, settings.split.time_column
    assert found.edges is not None
    left_out = (*data.ignore, *found.ignore, *left_out, settings.split.split_column, time)
    tables = learn_graph_reader(
        node_table(found, settings),
        found.edges,
        id=data.id_column,
        numbers=data.numbers,
        categories=(*data.categories, *categories),
        text=data.text,
        ignore=tuple(dict.fromkeys(filter(None, left_out))),
        source=data.source_column,
        target=data.destination_column,
        directed=settings.model.directed,
        missing=data.missing,
        unknown=data.unknown,
        edge_rows=rows,
    )
    has_nodes = found.nodes is not None
    return EdgeReader(tables, has_nodes, ports, time, settings.model.directed, shown)


def time_notes(time: str, word: str, labels: str = "") -> list[str]:
    """A line on what rows are predicted from, where there are times.

    Args:
        time: The column; empty: there are none.
        word: What the rows are called.
        labels: What else is seen of earlier edges.
    """
    if not time:
        return []
    return [
        f"by time ({time}): {word} are predicted along edges that are earlier than their stretch "
        f"of time{labels}, and never along later ones"
    ]


def known_ends(ends: np.ndarray) -> Tensor:
    """The ends of the edges whose nodes are known, ``[2, edges]``."""
    return torch.from_numpy(ends[(ends >= 0).all(axis=1)].T.copy())
