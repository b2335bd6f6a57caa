"""Graphs to and from PyTorch Geometric, NetworkX and SciPy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, missing_extra
from edgewise.core.missing import is_missing
from edgewise.graphs.graph import Graph

if TYPE_CHECKING:
    import networkx
    import torch_geometric.data


def from_pyg(data: "torch_geometric.data.Data") -> Graph:
    """Take a PyG ``Data``: its ``x``, ``edge_index``, ``edge_attr`` (or ``edge_weight``), ``y``.

    A single number per edge may have the shape ``[edges]``, as PyG allows.
    """
    if data.x is None:
        raise EdgewiseError("the PyG data has no x; give its nodes features (torch.eye will do)")
    attr = data.get("edge_attr")
    if attr is None:
        attr = data.get("edge_weight")
    if attr is not None:
        attr = attr.to(data.x.dtype)
        attr = attr.unsqueeze(1) if attr.dim() == 1 else attr
    return Graph(data.x, data.edge_index, attr, data.y)


def to_pyg(graph: Graph) -> "torch_geometric.data.Data":
    """Give a PyG ``Data``. Names of nodes, channels and classes stay behind."""
    try:
        from torch_geometric.data import Data
    except ImportError as error:
        raise missing_extra("torch_geometric", "pyg", "a PyG Data object") from error
    return Data(x=graph.x, edge_index=graph.edge_index, edge_attr=graph.edge_attr, y=graph.y)


def from_networkx(
    graph: "networkx.Graph",
    *,
    features: Sequence[str] = (),
    channels: Sequence[str] = (),
    label: str | None = None,
) -> Graph:
    """Read numbers off a NetworkX graph. An undirected edge becomes two directed ones.

    Args:
        graph: A ``Graph`` or ``DiGraph``; several edges between two nodes are refused.
        features: Node attributes that make ``x``, numbers or lists of numbers; without any,
            each node gets the single feature 1.
        channels: Edge attributes that make ``edge_attr``; without any, one channel of ones. An
            edge that lacks an attribute gets 0, no edge in that channel.
        label: Node attribute that holds the class, of any type; nodes without it get -1.
    """
    if graph.is_multigraph():
        raise EdgewiseError(
            "a multigraph joins two nodes more than once; merge its edges first, "
            "for example one channel per kind of edge"
        )
    nodes = list(graph.nodes)
    position = {node: i for i, node in enumerate(nodes)}
    directed = graph.to_directed()
    pairs = [(position[a], position[b]) for a, b in directed.edges]
    attr = [
        _numbers([d.get(name, 0.0) for name in channels], f"edge {a!r} -> {b!r}")
        for a, b, d in directed.edges(data=True)
    ]
    rows = [_feature_row(graph.nodes[node], node, features) for node in nodes]
    for node, row in zip(nodes, rows, strict=True):
        if len(row) != len(rows[0]):
            raise EdgewiseError(
                f"node {node!r} has {len(row)} features, but node {nodes[0]!r} has "
                f"{len(rows[0])}; give every node as many"
            )
    names: tuple[str, ...] | None = None
    y = None
    if label is not None:
        raw = [graph.nodes[node].get(label) for node in nodes]
        kinds = sorted({value for value in raw if not is_missing(value)}, key=str)
        number = {value: i for i, value in enumerate(kinds)}
        y = torch.tensor([-1 if is_missing(value) else number[value] for value in raw])
        names = tuple(str(kind) for kind in kinds)
    return Graph(
        x=_matrix(rows, len(rows[0]) if rows else max(len(features), 1)),
        edge_index=torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T,
        edge_attr=_matrix(attr, len(channels)) if channels else None,
        y=y,
        node_ids=tuple(str(node) for node in nodes),
        channel_names=tuple(channels) or None,
        class_names=names,
    )


def to_networkx(graph: Graph) -> "networkx.DiGraph":
    """Give a ``DiGraph``: ``x`` and ``y`` on its nodes, one attribute per channel on its edges."""
    try:
        import networkx
    except ImportError as error:
        raise missing_extra("networkx", "networkx", "a NetworkX graph") from error
    out = networkx.DiGraph()
    ids: Sequence[Any] = graph.node_ids or range(graph.num_nodes)
    for i, node in enumerate(ids):
        label = {} if graph.y is None else {"y": graph.y[i].tolist()}
        out.add_node(node, x=graph.x[i].tolist(), **label)
    names = graph.channel_names or [f"channel_{p}" for p in range(graph.num_channels)]
    for (a, b), row in zip(graph.edge_index.T.tolist(), graph.channels.tolist(), strict=True):
        out.add_edge(ids[a], ids[b], **dict(zip(names, row, strict=True)))
    return out


def from_scipy(
    adjacency: Any,
    x: Tensor,
    *,
    y: Tensor | None = None,
) -> Graph:
    """Take one sparse adjacency matrix, or a list of one per channel.

    Entry ``[i, j]`` is the edge from ``i`` to ``j``.
    """
    matrices = [adjacency] if scipy.sparse.issparse(adjacency) else list(adjacency)
    if not matrices:
        raise EdgewiseError("no adjacency matrix was given; give at least one, each a channel")
    nodes = x.size(0)
    for p, matrix in enumerate(matrices):
        if matrix.shape != (nodes, nodes):
            raise EdgewiseError(
                f"adjacency matrix {p} is {list(matrix.shape)}, but x has {nodes} nodes; "
                f"every channel needs [{nodes}, {nodes}]"
            )
    coo = [scipy.sparse.coo_array(matrix) for matrix in matrices]
    keys = [m.row.astype(np.int64) * nodes + m.col for m in coo]
    union, place = np.unique(np.concatenate(keys), return_inverse=True)
    attr = np.zeros((len(union), len(coo)))
    channel = np.repeat(np.arange(len(coo)), [len(key) for key in keys])
    np.add.at(attr, (place, channel), np.concatenate([m.data for m in coo]))
    edge_index = np.stack([union // max(nodes, 1), union % max(nodes, 1)])
    return Graph(x, torch.from_numpy(edge_index), torch.from_numpy(attr).to(x.dtype), y)


def to_scipy(graph: Graph) -> list["scipy.sparse.csr_array"]:
    """Give one CSR adjacency matrix per channel, without its zeros."""
    source, target = graph.edge_index.cpu().numpy()
    shape = (graph.num_nodes, graph.num_nodes)
    matrices = []
    for value in graph.channels.detach().cpu().numpy().T:
        kept = value != 0
        entries = (value[kept], (source[kept], target[kept]))
        matrices.append(scipy.sparse.csr_array(entries, shape=shape))
    return matrices


def _feature_row(attributes: dict, node: Any, features: Sequence[str]) -> list[float]:
    row: list[float] = []
    for name in features:
        if name not in attributes:
            raise EdgewiseError(f"node {node!r} has no attribute {name!r}; give it one")
        row += _numbers(attributes[name], f"attribute {name!r} of node {node!r}")
    return row if features else [1.0]


def _numbers(value: Any, place: str) -> list[float]:
    try:
        return np.asarray(value, dtype=float).reshape(-1).tolist()
    except (TypeError, ValueError) as error:
        raise EdgewiseError(
            f"{place} is {value!r}, which is no number; turn it into numbers first "
            "(edgewise.one_hot_channels for kinds of edges)"
        ) from error


def _matrix(rows: list[list[float]], width: int) -> Tensor:
    return torch.tensor(rows, dtype=torch.get_default_dtype()).reshape(len(rows), width)
