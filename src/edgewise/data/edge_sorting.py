"""The edges of a large table as sorted arrays, in bounded memory; repeated ones are merged."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.data.array_files import ArrayFile
from edgewise.data.external_sort import ExternalSort
from edgewise.data.graph_reader import repeated_edge
from edgewise.data.store_files import array_writer

_MOST_NODES = 3_000_000_000  # whose square fits into 64 bits
_MERGE = {"sum": np.add, "max": np.maximum}


class EdgeSorter:
    """Takes edges in any order, and writes them in both orders of a store.

    Args:
        scratch: A folder for what does not fit into memory.
        nodes: How many there are.
        channels: How many there are.
        directed: Whether an edge goes one way only.
        duplicates: ``"error"``, ``"sum"`` or ``"max"``.
        rows: Of the table of edges.
    """

    def __init__(
        self,
        scratch: Path,
        *,
        nodes: int,
        channels: int,
        directed: bool,
        duplicates: str,
        rows: int,
    ) -> None:
        if nodes > _MOST_NODES:
            raise EdgewiseError(f"{nodes:,} nodes are more than {_MOST_NODES:,}; split the graph")
        self._scratch, self._nodes, self._channels = scratch, nodes, channels
        self._directed, self._duplicates, self._rows = directed, duplicates, rows
        # Which of two edges came first matters where they are told of, or added up.
        ordered = {"order": (np.int64, 0)} if duplicates == "error" or not directed else {}
        fields = {"value": (np.float32, channels), **ordered}
        self._ordered = bool(ordered)
        self._sort = ExternalSort(scratch, "edges", fields)
        self.merged = 0  # repeated edges

    def add(self, pairs: np.ndarray, value: np.ndarray, rows: np.ndarray) -> None:
        """Take edges between known nodes, with their channels and their rows in the table."""
        self._add(pairs[:, 0], pairs[:, 1], value, rows)
        if not self._directed:
            apart = pairs[:, 0] != pairs[:, 1]
            back = pairs[apart]
            self._add(back[:, 1], back[:, 0], value[apart], rows[apart] + self._rows)

    def _add(
        self, source: np.ndarray, target: np.ndarray, value: np.ndarray, order: np.ndarray
    ) -> None:
        key = source.astype(np.int64) * self._nodes + target
        self._sort.add(key=key, value=value, **({"order": order} if self._ordered else {}))

    def write(
        self, folder: Path, where: Callable[[int], str], show: Callable[[int], None]
    ) -> dict[str, ArrayFile]:
        """Write the arrays of the edges.

        Args:
            folder: Of the store.
            where: The place of a row of the table, for a message.
            show: Called with edges that are done, of which each counts twice.
        """
        number = np.int32 if self._nodes < 2**31 else np.int64
        place = np.int32 if len(self._sort) < 2**31 else np.int64
        again = ExternalSort(self._scratch, "again", {"edge": (place, 0)})
        leaving = StartsOfNodes(self._nodes)
        edges = 0
        with (
            array_writer(folder, "target", number) as targets,
            array_writer(folder, "edge_attr", np.float32, width=self._channels) as channels,
        ):
            for key, value in self._without_repeats(where):
                source, target = np.divmod(key, self._nodes)
                leaving.add(source)
                targets.append(target)
                channels.append(value)
                again.add(
                    key=target * self._nodes + source, edge=np.arange(edges, edges + len(key))
                )
                edges += len(key)
                show(len(key))
        entering = StartsOfNodes(self._nodes)
        with (
            array_writer(folder, "source", number) as sources,
            array_writer(folder, "in_edge", place) as numbers,
        ):
            for records in again.merged():
                target, source = np.divmod(records["key"], self._nodes)
                entering.add(target)
                sources.append(source)
                numbers.append(records["edge"])
                show(len(source))
        files = {"target": targets, "edge_attr": channels, "source": sources, "in_edge": numbers}
        for name, counts in (("out_start", leaving), ("in_start", entering)):
            with array_writer(folder, name, np.int64) as starts:
                starts.append(counts.starts())
            files[name] = starts
        return {name: writer.file for name, writer in files.items()}

    def _without_repeats(
        self, where: Callable[[int], str]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Keys and channels of all edges in order, each edge once."""
        first_repeat: tuple[int, int] | None = None  # the row, and that of the same edge before
        for records in self._sort.merged():
            key, value = records["key"], records["value"]
            fresh = np.concatenate([[True], key[1:] != key[:-1]])
            if fresh.all():
                yield key, value
                continue
            self.merged += int((~fresh).sum())
            if self._ordered:
                order = np.lexsort((records["order"], key))
                value, rows = value[order], records["order"][order]
            if self._duplicates == "error":
                repeat = int(np.where(fresh, np.iinfo(np.int64).max, rows).argmin())
                begin = int(np.nonzero(fresh[: repeat + 1])[0][-1])
                found = (int(rows[repeat]), int(rows[begin]))
                first_repeat = min(filter(None, (first_repeat, found)))
                continue
            combined = np.zeros((int(fresh.sum()), value.shape[1]), dtype=np.float32)
            _MERGE[self._duplicates].at(combined, np.cumsum(fresh) - 1, value)
            yield key[fresh], combined
        if first_repeat is not None:
            again, earlier = (where(row % self._rows) for row in first_repeat)
            raise repeated_edge(again, earlier, self.merged)


class StartsOfNodes:
    """How many edges each node has, of edges that come in the order of the nodes."""

    def __init__(self, nodes: int) -> None:
        self._count = np.zeros(nodes + 1, dtype=np.int64)

    def add(self, nodes: np.ndarray) -> None:
        low = int(nodes[0])
        count = np.bincount(nodes - low)
        self._count[low + 1 : low + 1 + len(count)] += count

    def starts(self) -> np.ndarray:
        return np.cumsum(self._count)
