"""What a user should know about the columns of a graph before training on them."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from edgewise.data.columns import Categories, Column, Numbers, Text, Weights, raw_values
from edgewise.data.graph_reader import GraphReader, edge_ends, node_ids
from edgewise.data.notices import edge_notices, index_notices, leak_notices
from edgewise.data.tables import Table
from edgewise.graphs.graph import Graph
from edgewise.tasks.base import Task

_LINE = 100  # characters, more or less
_ENDS = ("source", "destination")


def table_notices(
    nodes: Table, edges: Table, reader: GraphReader, task: Task, truth: Tensor
) -> tuple[str, ...]:
    """Sentences on the tables of a graph that a model is about to learn from."""
    features = {column.name: raw_values(nodes, column) for column in reader.features}
    channels = {column.name: raw_values(edges, column) for column in reader.channels}
    targets = target_columns(task, truth)
    for name in targets if truth.is_floating_point() else ():
        exact, word = nodes.parsed_numbers(name)
        if word is None:
            targets[name] = exact  # in double precision; rounding may make two values one
    found = leak_notices(features, targets)
    if channels and len(edges):
        ends = edge_ends(edges, reader.source, reader.target, node_ids(nodes, reader.id))
        for side, end in enumerate(_ENDS):
            found += _channel_leaks(channels, targets, ends[:, side], end)
    found += index_notices(features, "nodes")
    found += index_notices(channels, "edges")
    return (*found, *edge_notices(len(edges), edges.path))


def graph_notices(
    graph: Graph, task: Task, truth: Tensor, features: Sequence[str] = ()
) -> tuple[str, ...]:
    """Sentences on a ready graph, with the names of its features, that a model is to learn from."""
    targets = target_columns(task, truth)
    features = features or tuple(map(str, range(graph.num_features)))
    inputs = dict(zip(features, graph.x.numpy().T, strict=True))
    found = leak_notices(inputs, targets, of="feature")
    names = graph.channel_names or tuple(map(str, range(graph.num_channels)))
    channels = dict(zip(names, graph.channels.numpy().T, strict=True))
    for side, end in enumerate(_ENDS):
        found += _channel_leaks(channels, targets, graph.edge_index[side].numpy(), end)
    return (*found, *edge_notices(graph.num_edges, "the graph"))


def described_columns(reader: GraphReader) -> list[str]:
    """A line for each column."""
    return [
        f"{column.name}: {type(column).__name__.lower()}, {len(column.outputs)} wide"
        for column in (*reader.features, *reader.channels)
    ]


def columns_line(reader: GraphReader) -> str:
    """``columns: size, age numbers; sector categories (3); edges: amount, kind categories (2)``."""
    features, channels = "; ".join(_listed(reader.features)), ", ".join(_listed(reader.channels))
    line = f"columns: {features or 'none'}; edges: {channels or 'no columns'}"
    return line if len(line) <= _LINE else f"{line[: _LINE - 3].rstrip()}..."


def _listed(columns: tuple[Column, ...]) -> list[str]:
    """Columns in their order, those of one kind that follow each other together."""
    said: list[str] = []
    numbers: list[str] = []
    for column in (*columns, None):
        if isinstance(column, Numbers):
            numbers.append(column.name or "''")
            continue
        if numbers:
            said.append(f"{', '.join(numbers)} numbers")
            numbers = []
        if isinstance(column, Categories):
            said.append(f"{column.name} categories ({len(column.values)})")
        elif isinstance(column, Text):
            said.append(f"{column.name} text ({len(column.words)} words)")
        elif isinstance(column, Weights):
            said.append(f"{column.name} +/-" if column.signed else column.name)
    return said


def _channel_leaks(
    channels: dict[str, np.ndarray], targets: dict[str, np.ndarray], ends: np.ndarray, end: str
) -> list[str]:
    """Whether a channel says the target of the node at one end of each edge."""
    known = ends >= 0
    nodes = ends[known]
    return leak_notices(
        {name: column[known] for name, column in channels.items()},
        {name: values[nodes] for name, values in targets.items()},
        of="edge column",
        at=f" at the {end} of each edge",
        units=nodes,
    )


def target_columns(task: Task, truth: Tensor) -> dict[str, np.ndarray]:
    """A column for each target; classes have one."""
    columns = truth.reshape(len(truth), -1).numpy().T
    return dict(zip(task.names, columns, strict=False))
