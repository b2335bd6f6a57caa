"""Read a nodes table and an edges table into a checked graph, as it was learnt."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.data import columns
from edgewise.data.columns import Column
from edgewise.data.labels import Labels
from edgewise.data.tables import Table
from edgewise.graphs.graph import Graph

_FORMAT = "edgewise graph reader 1"


@dataclass(frozen=True)
class TableNotes:
    """What a reading left out, merged or did not know."""

    dropped_edges: int  # they name a node that is not in the nodes table
    merged_edges: int  # they repeat another edge
    unseen: dict[str, int]  # by column: cells that are missing or were not learnt
    unlabelled: int  # nodes to be predicted

    @property
    def mended(self) -> bool:
        """Whether the graph is not just what the tables hold."""
        return bool(self.dropped_edges or self.merged_edges or self.unseen)

    def __str__(self) -> str:
        cells = ", ".join(f"{count} in {name}" for name, count in self.unseen.items()) or "none"
        return (
            f"{self.dropped_edges} edges to unknown nodes dropped, {self.merged_edges} repeated "
            f"edges merged, empty or unseen cells: {cells}, {self.unlabelled} nodes unlabelled"
        )


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
        position = _positions(nodes, self.id)
        y = None if self.labels is None else self.labels.encode(nodes)
        pairs, rows = self._edges(edges, position, nodes)
        value = columns.encoded(self.channels, edges) if self.channels else _ones(len(edges))
        edge_index, edge_attr, merged = _merged(
            pairs,
            value[rows],
            len(nodes),
            self.duplicates,
            lambda edge: edges.where(int(rows[edge])),
        )
        graph = Graph(
            x=torch.from_numpy(
                columns.encoded(self.features, nodes) if self.features else _ones(len(nodes))
            ),
            edge_index=torch.from_numpy(edge_index),
            edge_attr=torch.from_numpy(edge_attr),
            y=y,
            node_ids=tuple(position),
            channel_names=self.channel_names,
            class_names=None if self.labels is None else self.labels.classes,
        )
        unseen = {
            column.name: count
            for side, table in ((self.features, nodes), (self.channels, edges))
            for column in side
            if (count := column.unseen(table))
        }
        notes = TableNotes(
            dropped_edges=len(edges) - len(set(rows.tolist())),
            merged_edges=merged,
            unseen=unseen,
            unlabelled=0 if self.labels is None or y is None else self.labels.gaps(y),
        )
        return graph, notes

    def _edges(
        self, edges: Table, position: dict[str, int], nodes: Table
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of node numbers, ``[edges, 2]``, and the row each came from."""
        sources, targets = edges.column(self.source), edges.column(self.target)
        pairs, rows = [], []
        for row, (a, b) in enumerate(zip(sources, targets, strict=True)):
            start, end = position.get(a.strip()), position.get(b.strip())
            if start is not None and end is not None:
                pairs.append((start, end))
                rows.append(row)
            elif self.unknown == "error":
                name = a if start is None else b
                raise EdgewiseError(
                    f"{edges.where(row)}: the edge from {a!r} to {b!r} names {name.strip()!r}, "
                    f"which is not in column {self.id!r} of {nodes.path}; add the node, or pass "
                    "unknown='drop' to leave such edges out"
                )
        if sources and not pairs:
            raise EdgewiseError(
                f"no edge of {edges.path} joins two nodes of {nodes.path}: edges name nodes such "
                f"as {sources[0]!r}, column {self.id!r} names such as "
                f"{next(iter(position), '')!r}; write ids alike"
            )
        kept, source_rows = np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(rows, int)
        if self.directed:
            return kept, source_rows
        apart = kept[:, 0] != kept[:, 1]
        return (
            np.concatenate([kept, kept[apart][:, ::-1]]),
            np.concatenate([source_rows, source_rows[apart]]),
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


def load_graph_reader(path: str | Path) -> GraphReader:
    """Read what :meth:`GraphReader.save` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content.pop("format") != _FORMAT:
            raise ValueError("another format")
        labels = content.pop("labels")
        for side in ("features", "channels"):
            content[side] = tuple(columns.from_json(column) for column in content[side])
        return GraphReader(**content, labels=labels and Labels.from_json(labels))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(
            f"{path} is not a saved graph reader ({error}); give the file that GraphReader.save "
            "wrote"
        ) from error


def _positions(nodes: Table, id: str) -> dict[str, int]:
    position: dict[str, int] = {}
    for row, cell in enumerate(nodes.column(id)):
        name = cell.strip()
        if not name:
            raise EdgewiseError(f"{nodes.where(row)}: the node has no id; give it one")
        if name in position:
            raise EdgewiseError(
                f"{nodes.where(row)}: the id {name!r} stands already at "
                f"{nodes.where(position[name])}; give each node its own"
            )
        position[name] = row
    if not position:
        raise EdgewiseError(f"{nodes.path} has a header but no rows; a graph needs nodes")
    return position


def _merged(
    pairs: np.ndarray,
    value: np.ndarray,
    nodes: int,
    duplicates: str,
    where: Callable[[int], str],
) -> tuple[np.ndarray, np.ndarray, int]:
    """Edges without repeats, in the order in which each first came, and how many were merged."""
    key = pairs[:, 0] * nodes + pairs[:, 1]
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    repeats = len(key) - len(first)
    if not repeats:
        return pairs.T.copy(), value, 0
    if duplicates == "error":
        again = int(np.setdiff1d(np.arange(len(key)), first)[0])
        earlier = int(first[place[again]])
        raise EdgewiseError(
            f"{where(again)}: this edge stands already at {where(earlier)}; {repeats} repeated "
            "edge(s) must be left out, or merged with duplicates='sum' or 'max'"
        )
    combined = np.zeros((len(first), value.shape[1]), dtype=value.dtype)
    merge = np.add if duplicates == "sum" else np.maximum
    merge.at(combined, place, value)
    order = np.argsort(first)
    return pairs[first[order]].T.copy(), combined[order], repeats


def _ones(rows: int) -> np.ndarray:
    return np.ones((rows, 1), dtype=np.float32)
