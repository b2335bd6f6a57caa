"""The checked graph: nodes, edges, channels, labels. Everything else may trust it."""

from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview


@dataclass(frozen=True, eq=False)
class Graph:
    """One graph, or several as a block-diagonal batch, checked when it is made.

    Direction is kept: edge ``k`` runs from node ``edge_index[0, k]`` to node
    ``edge_index[1, k]`` (it *cites* it, *pays* it, *follows* it), and an undirected edge is
    two directed ones. Edge channels are non-negative, and zero means "no edge in this
    channel"; :mod:`edgewise.graphs.channels` turns signed, categorical and real values into them.

    Args:
        x: Node features, ``[nodes, features]``.
        edge_index: Source and target of each edge, ``[2, edges]``. No edge twice.
        edge_attr: Edge channels, ``[edges, channels]``; without it one channel of ones.
        y: One label per node: class numbers with -1 for unknown, or real targets with NaN
            for unknown.
        node_ids: The name of each node in its file.
        channel_names: The name of each edge channel.
        class_names: The name of each class in ``y``.

    Example:
        >>> graph = Graph(torch.eye(3), torch.tensor([[0, 1], [1, 2]]))
        >>> graph
        Graph(nodes=3, edges=2, channels=1, features=3)
    """

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None = None
    y: Tensor | None = None
    node_ids: tuple[str, ...] | None = None
    channel_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None

    parallel: ClassVar[bool] = False  # whether two edges may join the same two nodes

    def __post_init__(self) -> None:
        check_features(self.x)
        check_edges(self.edge_index, self.num_nodes, parallel=self.parallel)
        if self.edge_attr is None:
            ones = self.x.new_ones(self.edge_index.size(1), 1)
            object.__setattr__(self, "edge_attr", ones)
        check_channels(self.edge_attr, self.edge_index)
        _check_labels(self.y, self.num_nodes, self.class_names)
        _check_length("node_ids", self.node_ids, self.num_nodes, "nodes")
        _check_length("channel_names", self.channel_names, self.num_channels, "channels")
        if self.node_ids is not None and len(set(self.node_ids)) < self.num_nodes:
            twice = sorted(name for name, count in Counter(self.node_ids).items() if count > 1)
            raise EdgewiseError(f"node id(s) {preview(twice)} stand twice; give each node its own")

    @classmethod
    def unchecked(cls, **parts: Any) -> "Graph":
        """A graph of parts that were checked before they were stored, which is not done again."""
        graph = object.__new__(cls)
        for one in fields(cls):
            object.__setattr__(graph, one.name, parts.get(one.name))
        return graph

    @property
    def num_nodes(self) -> int:
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    @property
    def num_features(self) -> int:
        return self.x.size(1)

    @property
    def num_channels(self) -> int:
        return self.channels.size(1)

    @property
    def channels(self) -> Tensor:
        """``edge_attr``, which is never missing once the graph is made."""
        assert self.edge_attr is not None
        return self.edge_attr

    def neighbors(self, node: int) -> np.ndarray:
        """The other nodes that an edge joins a node with, in either direction, ascending."""
        source, target = self.edge_index.numpy()
        near = np.concatenate([target[source == node], source[target == node]])
        return np.unique(near[near != node])

    def __repr__(self) -> str:
        classes = f", classes={len(self.class_names)}" if self.class_names is not None else ""
        return (
            f"{type(self).__name__}(nodes={self.num_nodes}, edges={self.num_edges}, "
            f"channels={self.num_channels}, features={self.num_features}{classes})"
        )


class MultiGraph(Graph):
    """A graph in which several edges may join the same two nodes: payments, ratings, calls.

    Its edges are the rows of a model that predicts edges; see :class:`~edgewise.EdgeClassifier`.

    Example:
        >>> MultiGraph(torch.eye(3), torch.tensor([[0, 0, 1], [1, 1, 2]]))
        MultiGraph(nodes=3, edges=3, channels=1, features=3)
    """

    parallel = True


def without_labels(graph: Graph) -> Graph:
    """The graph without labels; itself if it has none, so that it is not checked once more."""
    return graph if graph.y is None else replace(graph, y=None, class_names=None)


def single_precision(graph: Graph) -> Graph:
    """The graph with its numbers as float32, which is what models learn from; itself if they are.

    Example:
        >>> graph = Graph(torch.eye(3).double(), torch.tensor([[0, 1], [1, 2]]))
        >>> single_precision(graph).x.dtype
        torch.float32
    """
    real = {name: getattr(graph, name) for name in ("x", "edge_attr", "y")}
    real = {name: t for name, t in real.items() if t is not None and t.is_floating_point()}
    if all(tensor.dtype == torch.float32 for tensor in real.values()):
        return graph
    return replace(graph, **{name: tensor.float() for name, tensor in real.items()})


def check_features(x: Tensor) -> None:
    """``x`` is ``[nodes, features]``, real and finite."""
    if x.dim() != 2 or not x.is_floating_point():
        raise EdgewiseError(
            f"x is {_described(x)}, expected real numbers of shape [nodes, features]; "
            "try x.float() or x.unsqueeze(1)"
        )
    finite = torch.isfinite(x).all(dim=1)
    if not finite.all():
        nodes = (~finite).nonzero()[:, 0].tolist()
        raise EdgewiseError(
            f"x has NaN or infinite values at node(s) {preview(nodes)}; fill or drop them first"
        )


def check_edges(edge_index: Tensor, num_nodes: int, *, parallel: bool = False) -> None:
    """``edge_index`` is ``[2, edges]``, within the nodes, and names no edge twice.

    Args:
        edge_index: Source and target of each edge.
        num_nodes: Number of nodes.
        parallel: Whether several edges may join the same two nodes.
    """
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise EdgewiseError(
            f"edge_index is {_described(edge_index)}, expected [2, edges]; "
            "a list of pairs is transposed by edge_index.T"
        )
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise EdgewiseError(
            f"edge_index is {_described(edge_index)}, expected integers; use edge_index.long()"
        )
    outside = ((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0).nonzero()[:, 0]
    if len(outside):
        edge = int(outside[0])
        raise EdgewiseError(
            f"edge {edge} joins nodes {tuple(edge_index[:, edge].tolist())}, but the nodes are "
            f"numbered 0 to {num_nodes - 1}; {len(outside)} such edge(s) must be renumbered or "
            "left out"
        )
    if parallel:
        return
    key, order = (edge_index[0].long() * num_nodes + edge_index[1]).sort(stable=True)
    again = (key[1:] == key[:-1]).nonzero()[:, 0] + 1
    if len(again):
        first, second = int(order[again[0] - 1]), int(order[again[0]])
        raise EdgewiseError(
            f"edges {first} and {second} both join nodes {tuple(edge_index[:, second].tolist())}; "
            f"merge the {len(again)} repeated edge(s) first (torch_geometric.utils.coalesce, or "
            "one channel each)"
        )


def check_channels(edge_attr: Tensor | None, edge_index: Tensor) -> None:
    """``edge_attr`` is ``[edges, channels]``, finite and non-negative."""
    edges = edge_index.size(1)
    if (
        edge_attr is None
        or edge_attr.dim() != 2
        or edge_attr.size(0) != edges
        or not edge_attr.is_floating_point()
    ):
        raise EdgewiseError(
            f"edge_attr is {_described(edge_attr)}, expected real numbers of shape "
            f"[{edges} edges, channels]; one number per edge is edge_attr.unsqueeze(1)"
        )
    if edge_attr.size(1) == 0:
        raise EdgewiseError("edge_attr has no channel; leave it out for one channel of ones")
    bad = ~torch.isfinite(edge_attr)
    if bad.any():
        edge, channel = bad.nonzero()[0].tolist()
        raise EdgewiseError(
            f"edge {edge} has the value {edge_attr[edge, channel].item()} in channel {channel}; "
            f"{int(bad.any(1).sum())} such edge(s) need a finite number, or 0 for no edge"
        )
    bad = edge_attr < 0
    if bad.any():
        edge, channel = bad.nonzero()[0].tolist()
        raise EdgewiseError(
            f"edge {edge} has the negative value {edge_attr[edge, channel].item():g} in channel "
            f"{channel}; split signed values into two channels (edgewise.signed_channels)"
        )


def _check_labels(y: Tensor | None, num_nodes: int, class_names: tuple[str, ...] | None) -> None:
    if y is None:
        return
    if y.shape != (num_nodes,):
        raise EdgewiseError(
            f"y is {_described(y)}, but there are {num_nodes} nodes; give one label per node "
            f"([{num_nodes}]), -1 (or NaN for real targets) where it is not known"
        )
    if y.is_floating_point():
        return
    if y.dtype != torch.int64:
        raise EdgewiseError(f"y is {_described(y)}; give class numbers as y.long()")
    low, high = (int(y.min()), int(y.max())) if len(y) else (0, 0)
    if low < -1 or (class_names is not None and high >= len(class_names)):
        classes = "" if class_names is None else f" for {len(class_names)} class names"
        raise EdgewiseError(
            f"y runs from {low} to {high}{classes}; number the classes from 0, with -1 for unknown"
        )


def _check_length(name: str, names: tuple[str, ...] | None, expected: int, of: str) -> None:
    if names is not None and len(names) != expected:
        raise EdgewiseError(f"{name} has {len(names)} names for {expected} {of}; give one each")


def _described(value: Tensor | None) -> str:
    if value is None:
        return "missing"
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
