"""Read a nodes table and an edges table into a checked graph, as it was learnt."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.core.schema import mismatch, read_json
from edgewise.data import columns
from edgewise.data.columns import Column
from edgewise.data.labels import Labels
from edgewise.data.tables import Table
from edgewise.graphs.graph import Graph

_FORMAT = "edgewise graph reader 1"
_CHOICES = {"unknown": ("error", "drop"), "duplicates": ("error", "sum", "max")}
READER_SHAPE = {
    **dict.fromkeys(("format", "id", "source", "target", *_CHOICES), str),
    **{"directed": bool, "features": [{"kind": str}], "channels": [{"kind": str}]},
    "labels": (None, {"name": str, "classes": (None, [str])}),
}


@dataclass(frozen=True)
class TableNotes:
    """What a reading left out, merged or did not know."""

    dropped_edges: int  # they name a node that is not in the nodes table
    merged_edges: int  # they repeat another edge
    unseen: dict[str, int]  # by column: cells that are missing or were not learnt
    unlabelled: int  # nodes to be predicted

    @property
    def changed(self) -> bool:
        """Whether the graph is not just what the tables hold."""
        return bool(self.dropped_edges or self.merged_edges or self.unseen)

    @property
    def changes(self) -> str:
        """What was left out, merged or not known, in words."""
        cells = ", ".join(f"{count} in {name}" for name, count in self.unseen.items()) or "none"
        return (
            f"{self.dropped_edges} edges to unknown nodes dropped, {self.merged_edges} repeated "
            f"edges merged, empty or unseen cells: {cells}"
        )

    def __str__(self) -> str:
        return f"{self.changes}, {self.unlabelled} nodes unlabelled"


@dataclass(frozen=True)
class GraphReader:
    """How two tables become a graph; made by :mod:`edgewise.data.graph_tables`."""

    id: str
    source: str
    target: str
    directed: bool
    unknown: str
    duplicates: str
    features: tuple[Column, ...]
    channels: tuple[Column, ...]
    labels: Labels | None

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(name for column in self.features for name in column.outputs) or ("one",)

    @property
    def channel_names(self) -> tuple[str, ...]:
        return tuple(name for column in self.channels for name in column.outputs) or ("edge",)

    def read(self, nodes: Table, edges: Table) -> tuple[Graph, TableNotes]:
        """Read tables with the same columns. The label column may be absent."""
        ids = node_ids(nodes, self.id)
        y = None if self.labels is None else self.labels.encode(nodes)
        pairs, rows = self.known_pairs(edges, ids, nodes)
        x, edge_index, edge_attr, notes = self.encode(nodes, edges, pairs, rows)
        graph = Graph(
            x=torch.from_numpy(x),
            edge_index=torch.from_numpy(edge_index),
            edge_attr=torch.from_numpy(edge_attr),
            y=y,
            node_ids=tuple(ids.to_pylist()),
            channel_names=self.channel_names,
            class_names=None if self.labels is None else self.labels.classes,
        )
        unlabelled = 0 if self.labels is None or y is None else self.labels.gaps(y)
        return graph, replace(notes, unlabelled=unlabelled)

    def encode(
        self, nodes: Table, edges: Table, pairs: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, TableNotes]:
        """Node features, ``edge_index``, channels, and what was left out or merged.

        Args:
            nodes: The nodes.
            edges: The edges.
            pairs: Node numbers of both ends of the edges that are kept, ``[edges, 2]``.
            rows: The row of each of them.
        """
        kept = len(pairs)
        if not self.directed:
            apart = pairs[:, 0] != pairs[:, 1]
            pairs = np.concatenate([pairs, pairs[apart][:, ::-1]])
            rows = np.concatenate([rows, rows[apart]])
        value = columns.encoded(self.channels, edges)
        if len(rows) != len(value) or kept != len(rows):
            value = value[rows]
        edge_index, edge_attr, merged = _merged(
            pairs,
            value,
            len(nodes),
            self.duplicates,
            lambda edge: edges.where(int(rows[edge])),
        )
        unseen = {
            column.name: count
            for side, table in ((self.features, nodes), (self.channels, edges))
            for column in side
            if (count := column.unseen(table))
        }
        notes = TableNotes(
            dropped_edges=len(edges) - kept, merged_edges=merged, unseen=unseen, unlabelled=0
        )
        return columns.encoded(self.features, nodes), edge_index, edge_attr, notes

    def known_pairs(
        self, edges: Table, ids: pa.ChunkedArray, nodes: Table
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of node numbers, ``[edges, 2]``, and the row each came from."""
        pairs = edge_ends(edges, self.source, self.target, ids)
        known = (pairs >= 0).all(axis=1)
        if known.all():
            return pairs, np.arange(len(pairs))
        if self.unknown == "error":
            row = int((~known).argmax())
            raise self.unknown_node(edges, row, pairs[row], nodes.path)
        if not known.any():
            raise self.no_edge(edges, ids[0].as_py(), nodes.path)
        return pairs[known], np.nonzero(known)[0]

    def unknown_node(self, edges: Table, row: int, ends: np.ndarray, nodes: str) -> EdgewiseError:
        """The sentence for an edge that names a node which is not in the table ``nodes``."""
        said = [edges.column(name)[row] for name in (self.source, self.target)]
        name = said[0] if ends[0] < 0 else said[1]
        return EdgewiseError(
            f"{edges.where(row)}: the edge from {said[0]!r} to {said[1]!r} names {name.strip()!r}, "
            f"which is not in column {self.id!r} of {nodes}; add the node, or leave such edges out "
            "with --unknown drop"
        )

    def no_edge(self, edges: Table, id: str, nodes: str) -> EdgewiseError:
        """The sentence for edges none of which joins two nodes of the table ``nodes``."""
        return EdgewiseError(
            f"no edge of {edges.path} joins two nodes of {nodes}: edges name nodes such as "
            f"{edges.column(self.source)[0]!r}, column {self.id!r} names such as {id!r}; write ids "
            "alike"
        )

    def to_json(self) -> dict[str, Any]:
        """Everything that was learnt."""
        return {
            "format": _FORMAT,
            **{k: v for k, v in vars(self).items() if isinstance(v, str | bool)},
            "features": [columns.to_json(column) for column in self.features],
            "channels": [columns.to_json(column) for column in self.channels],
            "labels": None if self.labels is None else vars(self.labels),
        }

    def save(self, path: str | Path) -> None:
        """Write everything that was learnt as JSON."""
        write_atomically(path, json.dumps(self.to_json()))


def graph_reader_from_json(content: Mapping[str, Any]) -> GraphReader:
    """What :meth:`GraphReader.to_json` gave; ValueError, KeyError or TypeError if it is not."""
    fault = mismatch(dict(content), READER_SHAPE)
    if fault:
        raise ValueError(fault)
    fields = dict(content)
    if fields.pop("format") != _FORMAT:
        raise ValueError("another format")
    for name, words in _CHOICES.items():
        if content[name] not in words:
            raise ValueError(f"{name} is {content[name]!r}, not one of {', '.join(words)}")
    labels = fields.pop("labels")
    for side in ("features", "channels"):
        fields[side] = tuple(columns.from_json(column) for column in fields[side])
    return GraphReader(**fields, labels=labels and Labels.from_json(labels))


def load_graph_reader(path: str | Path) -> GraphReader:
    """Read what :meth:`GraphReader.save` wrote."""
    try:
        return graph_reader_from_json(read_json(Path(path), READER_SHAPE))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(
            f"{path} is not a saved graph reader ({error}); give the file that GraphReader.save "
            "wrote"
        ) from error


def node_ids(nodes: Table, id: str) -> pa.ChunkedArray:
    """The name of each node; none is empty, and none stands twice."""
    if not len(nodes):
        raise no_nodes(nodes.path)
    return unique_names(nodes, id, "node")


def no_nodes(path: str) -> EdgewiseError:
    """The sentence for a table of nodes that has none."""
    return EdgewiseError(f"{path} has a header but no rows; a graph needs nodes")


def unique_names(table: Table, column: str, of: str) -> pa.ChunkedArray:
    """The name of each row; none is empty, and none stands twice."""
    names = table.trimmed(column)
    if not len(names):
        return names
    first = pc.index_in(names, pa.concat_arrays(names.chunks)).to_numpy()
    wrong = (first != np.arange(len(names))) | pc.equal(names, "").to_numpy()
    if not wrong.any():
        return names
    row = int(wrong.argmax())
    raise wrong_name(table, row, names[row].as_py(), int(first[row]), of)


def wrong_name(table: Table, row: int, name: str, first: int, of: str) -> EdgewiseError:
    """The sentence for a row without a name, or with that of the row ``first``."""
    if not name:
        return EdgewiseError(f"{table.where(row)}: the {of} has no id; give it one")
    return EdgewiseError(
        f"{table.where(row)}: the id {name!r} stands already at {table.where(first)}; give each "
        f"{of} its own"
    )


def edge_ends(edges: Table, source: str, target: str, ids: pa.ChunkedArray) -> np.ndarray:
    """The node numbers of both ends of each edge, ``[edges, 2]``; -1: no such node."""
    known = pa.concat_arrays(ids.chunks)
    pairs = np.empty((len(edges), 2), dtype=np.int64)
    for side, name in enumerate((source, target)):
        place = pc.index_in(edges.trimmed(name), known).fill_null(-1)
        pairs[:, side] = place.to_numpy()
    return pairs


def _merged(
    pairs: np.ndarray,
    value: np.ndarray,
    nodes: int,
    duplicates: str,
    where: Callable[[int], str],
) -> tuple[np.ndarray, np.ndarray, int]:
    """Edges without repeats, in the order in which each first came, and how many were merged."""
    key = pairs[:, 0] * nodes + pairs[:, 1]
    ordered = np.sort(key)
    if not (ordered[1:] == ordered[:-1]).any():
        return pairs.T.copy(), value, 0
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    repeats = len(key) - len(first)
    if duplicates == "error":
        again = int(np.setdiff1d(np.arange(len(key)), first)[0])
        earlier = int(first[place[again]])
        raise repeated_edge(where(again), where(earlier), repeats)
    combined = np.zeros((len(first), value.shape[1]), dtype=value.dtype)
    merge = np.add if duplicates == "sum" else np.maximum
    merge.at(combined, place, value)
    order = np.argsort(first)
    return pairs[first[order]].T.copy(), combined[order], repeats


def repeated_edge(again: str, earlier: str, repeats: int) -> EdgewiseError:
    """The sentence for an edge that stands at two places."""
    return EdgewiseError(
        f"{again}: this edge stands already at {earlier}; {repeats} repeated edge(s) must be left "
        "out, or merged with --duplicates sum or max"
    )
