"""The lists in which edges are found by their nodes and times, sorted in bounded memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from edgewise.data.array_files import ArrayFile
from edgewise.data.edge_sorting import StartsOfNodes
from edgewise.data.external_sort import ExternalSort
from edgewise.data.store_files import array_writer
from edgewise.data.table_parts import ROWS
from edgewise.graphs.edge_lookup import pair_keys

STEPS = 4  # how often each edge is told of


@dataclass(frozen=True, eq=False)
class KeptEdges:
    """The edges of a table whose nodes are known, in the order of their rows.

    Args:
        ends: The numbers of both ends of each row, -1 for no node.
        nodes: How many there are.
        time: When each row happens.
    """

    ends: Int[np.ndarray, "rows 2"]
    nodes: int
    time: Float[np.ndarray, " rows"] | None = None

    def stretches(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some rows at a time, and their ends."""
        for first in range(0, len(self.ends), ROWS):
            pairs = self.ends[first : first + ROWS]
            (known,) = np.nonzero((pairs >= 0).all(axis=1))
            yield known + first, pairs[known]

    def records(self) -> Iterator[dict[str, np.ndarray]]:
        """The number of each edge, its ends, and its time if there are any."""
        count = 0
        for rows, pairs in self.stretches():
            edge = np.arange(count, count + len(rows))
            count += len(rows)
            time = {} if self.time is None else {"time": self.time[rows]}
            yield {"edge": edge, "source": pairs[:, 0], "target": pairs[:, 1], **time}


class ListWriter:
    """Writes the arrays of an :class:`~edgewise.graphs.edge_lookup.EdgeLookup`.

    Args:
        folder: Of the store.
        scratch: A folder for what does not fit into memory.
        edges: Those that are kept.
        directed: Whether edges the other way are others.
        show: Called with edges that are done, of which each counts :data:`STEPS` times.
    """

    def __init__(
        self,
        folder: Path,
        scratch: Path,
        edges: KeptEdges,
        *,
        directed: bool,
        show: Callable[[int], None],
    ) -> None:
        self._folder, self._scratch, self._edges = folder, scratch, edges
        self._directed, self._show = directed, show
        most = max(len(edges.ends), edges.nodes)
        self._number: Any = np.int32 if most < 2**31 else np.int64
        self.ports = np.zeros(0, dtype=np.int64)  # of each edge, once the lists are written

    def write(self) -> dict[str, ArrayFile]:
        """Write the lists."""
        files = self._write_pairs()
        timed = {} if self._edges.time is None else {"time": (np.float64, 0)}
        leaving = self._sort("out", edge=self._number, **timed)
        entering = self._sort("in", edge=self._number, **timed)
        pairs = self._sort("ports", edge=self._number)
        for records in self._in_time():
            source, target = records["source"].astype(np.int64), records["target"].astype(np.int64)
            kept = {name: records[name] for name in ("edge", *timed)}
            leaving.add(key=source, **kept)
            entering.add(key=target, **kept)
            if timed:
                pairs.add(key=self._keys(source, target), edge=records["edge"])
            self._show(len(source))
        if timed:
            for records in pairs.merged():
                self._number_parallel(records)
        for name, sort in (("out", leaving), ("in", entering)):
            files |= self._write_list(name, sort, timed=bool(timed))
        return files

    def _write_pairs(self) -> dict[str, ArrayFile]:
        """The groups of edges between two nodes, and their numbers where there are no times."""
        count = sum(len(rows) for rows, _ in self._edges.stretches())
        path = self._scratch / "port"
        path.write_bytes(b"")
        self.ports = np.memmap(path, np.int64, "w+", shape=(count,)) if count else self.ports
        sort, done = self._sort("pairs", edge=self._number), 0
        for records in self._edges.records():
            sort.add(key=self._keys(records["source"], records["target"]), edge=records["edge"])
        with (
            array_writer(self._folder, "pair_key", np.int64) as keys,
            array_writer(self._folder, "pair_start", np.int64) as starts,
            array_writer(self._folder, "pair_edge", self._number) as numbers,
        ):
            for records in sort.merged():
                first = _beginnings(records["key"])
                keys.append(records["key"][first])
                starts.append(first + done)
                numbers.append(records["edge"])
                done += len(records["edge"])
                if self._edges.time is None:
                    self._number_parallel(records)
                self._show(len(records["edge"]))
            # Behind all others stands the group of pairs without an edge.
            starts.append(np.array([done, done]))
        return {"pair_key": keys.file, "pair_start": starts.file, "pair_edge": numbers.file}

    def _number_parallel(self, records: dict[str, np.ndarray]) -> None:
        """Number edges between the same two nodes, which come one after the other."""
        first = _beginnings(records["key"])
        size = np.diff(np.append(first, len(records["key"])))
        self.ports[records["edge"]] = np.arange(len(records["key"])) - np.repeat(first, size)

    def _in_time(self) -> Iterator[dict[str, np.ndarray]]:
        """All edges in the order of their times, those of one time in that of their rows."""
        if self._edges.time is None:
            yield from self._edges.records()
            return
        fields = dict.fromkeys(("edge", "source", "target"), (self._number, 0))
        sort = ExternalSort(self._scratch, "time", {**fields, "time": (np.float64, 0)})
        for records in self._edges.records():
            sort.add(key=_ascending(records["time"]), **records)
        yield from sort.merged()

    def _write_list(self, name: str, sort: ExternalSort, *, timed: bool) -> dict[str, ArrayFile]:
        """The edges at one of their ends, by nodes."""
        starts, done = StartsOfNodes(self._edges.nodes), 0
        times: Any = array_writer(self._folder, f"{name}_time", np.float64 if timed else np.int8)
        with array_writer(self._folder, f"{name}_edge", self._number) as edges, times:
            for records in sort.merged():
                starts.add(records["key"])
                edges.append(records["edge"])
                # Without times, every edge is before the time 1.
                times.append(records["time"] if timed else np.zeros(len(records["edge"])))
                done += len(records["edge"])
                self._show(len(records["edge"]))
        with array_writer(self._folder, f"{name}_start", np.int64) as start:
            start.append(starts.starts())
        found = {"start": start.file, "edge": edges.file, "time": times.file}
        return {f"{name}_{part}": file for part, file in found.items()}

    def _keys(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        return pair_keys(source, target, self._edges.nodes, directed=self._directed)

    def _sort(self, name: str, **fields: Any) -> ExternalSort:
        kinds = {k: kind if isinstance(kind, tuple) else (kind, 0) for k, kind in fields.items()}
        return ExternalSort(self._scratch, name, kinds)


def _beginnings(key: np.ndarray) -> np.ndarray:
    """Where another key begins, of keys in their order."""
    return np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))


def _ascending(time: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of real ones; minus zero is zero."""
    bits = (time + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
