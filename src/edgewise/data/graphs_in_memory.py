"""Whole graphs that Python code hands over: NetworkX graphs, PyG data, or Edgewise's own."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import Settings
from edgewise.data.graph_rows import GraphRows, InvalidRow, Progress
from edgewise.data.graph_set_tables import PlacedGraphs
from edgewise.data.networkx_graphs import tables_of_graphs
from edgewise.data.splits import Split
from edgewise.data.tables import Table, table_from_columns
from edgewise.graphs.channels import is_symmetric
from edgewise.graphs.graph import Graph
from edgewise.graphs.graph_set import GraphSet, graph_set
from edgewise.graphs.interop import from_pyg

_NAME, _Y = "graph", "y"


@dataclass(frozen=True, eq=False)
class ReadyGraphs:
    """Graphs whose features and channels are numbers already."""

    graphs: GraphSet

    has_direction = True
    splits: tuple[str, ...] = ()

    @property
    def directed(self) -> bool:
        """Whether some edge goes one way only."""
        edges = self.graphs.every_edge
        return not is_symmetric(edges.edge_index, edges.edge_attr)

    @property
    def rows(self) -> np.ndarray:
        return np.arange(len(self))

    def __len__(self) -> int:
        return len(self.graphs)

    def learn(self, train: np.ndarray, settings: Settings) -> None:
        """Nothing: the numbers are used as they are."""

    def packed(self, encoder: Any) -> tuple[GraphSet, tuple[str, ...]]:
        if encoder is not None:
            raise EdgewiseError(
                "the model was trained on graphs with columns or on molecules, not on graphs of "
                "tensors; give graphs as in training"
            )
        return self.graphs, ()

    def grouped_split(self, name: str, seed: int) -> Split | None:
        return None

    def notices(
        self, encoder: Any, targets: Mapping[str, np.ndarray], parts: Mapping[str, np.ndarray]
    ) -> list[str]:
        return []


@dataclass(frozen=True, eq=False)
class ReadyRows:
    """A row for each ready graph, with its targets."""

    table: Table
    graphs: ReadyGraphs
    targets: tuple[str, ...]

    named_by, may_be_invalid = "the names of graphs", False

    def other_columns(self) -> list[str]:
        return [name for name in self.table.columns if name != _NAME]

    def structures(
        self, *, on_invalid: str = "error", progress: Progress | None = None
    ) -> tuple[ReadyGraphs, tuple[InvalidRow, ...]]:
        return self.graphs, ()


def rows_in_memory(graphs: Iterable[Any], settings: DataSettings, where: str) -> GraphRows:
    """Graphs with targets: the ``y`` of PyG data, the attributes of NetworkX graphs.

    Args:
        graphs: See :func:`graphs_in_memory`.
        settings: How columns are called.
        where: What they are, for messages.
    """
    items = list(graphs)
    found = graphs_in_memory(items, settings, where)
    if isinstance(found, PlacedGraphs):
        return found.tables
    labels = [getattr(item, "y", None) for item in items]
    columns = [[] if y is None else np.asarray(y).reshape(-1).tolist() for y in labels]
    width = max(map(len, columns))
    if not width or any(len(column) not in (0, width) for column in columns):
        raise EdgewiseError(
            f"{where}: the graphs have no y, or some of different lengths; give each graph its own"
        )
    names = [_Y] if width == 1 else [f"{_Y}{number}" for number in range(width)]
    cells = {n: [c[i] if c else None for c in columns] for i, n in enumerate(names)}
    table = table_from_columns({_NAME: found.graphs.ids, **cells}, where)
    return ReadyRows(table, found, tuple(names))


def checksum_of(graphs: Iterable[Any]) -> str:
    """SHA-256 of all that graphs in memory hold."""
    digest = hashlib.sha256()
    for item in graphs:
        if _is_networkx(item):
            parts = (item.graph, list(item.nodes(data=True)), list(item.edges(data=True)))
            digest.update(repr((item.is_directed(), *parts)).encode())
            continue
        for name in ("x", "edge_index", "edge_attr", "edge_weight", "y"):
            tensor = getattr(item, name, None)
            if tensor is not None:
                digest.update(f"{name}{tuple(tensor.shape)}".encode())
                digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def graphs_in_memory(
    graphs: Iterable[Any], settings: DataSettings, where: str = "X"
) -> ReadyGraphs | PlacedGraphs:
    """Graphs of one sort.

    Attributes of NetworkX graphs become columns, which are learnt as those of tables are. The
    tensors of PyG data are taken as they are, but for ``y``.

    Args:
        graphs: :class:`~edgewise.Graph`, PyG ``Data``, or NetworkX graphs.
        settings: How columns are called.
        where: What they are, for messages.
    """
    items = list(graphs)
    if not items:
        raise EdgewiseError(f"{where} holds no graphs; give one or more")
    if all(_is_networkx(item) for item in items):
        names = list(map(str, range(len(items))))
        return PlacedGraphs(tables_of_graphs(items, names, settings, where))
    return ReadyGraphs(
        graph_set([_as_graph(item, f"{where}[{i}]") for i, item in enumerate(items)])
    )


def _as_graph(item: Any, where: str) -> Graph:
    if isinstance(item, Graph):
        return item
    if not hasattr(item, "edge_index") or not hasattr(item, "x"):
        raise EdgewiseError(
            f"{where} is a {type(item).__name__}; give graphs of one sort: edgewise.Graph, PyG "
            "Data, or NetworkX graphs"
        )
    bare = item.clone() if hasattr(item, "clone") else item
    bare.y = None  # of the graph, not of its nodes
    try:
        return from_pyg(bare)
    except EdgewiseError as error:
        raise EdgewiseError(f"{where}: {error}") from error


def _is_networkx(item: Any) -> bool:
    return hasattr(item, "is_multigraph") and hasattr(item, "is_directed") and hasattr(item, "adj")
