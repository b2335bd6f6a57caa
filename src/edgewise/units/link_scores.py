"""What a model of links says of pairs: scores of those that are named, and the likeliest ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.tables import Table
from edgewise.graphs.graph import Graph, without_labels
from edgewise.graphs.links import find_links
from edgewise.tasks.base import Columns, cells
from edgewise.tasks.link import ANY, Link
from edgewise.units.base import Predicts
from edgewise.units.link_problem import link_rows, type_flags

_AT_ONCE = 200_000  # pairs that are scored in one pass, or those of a node


@dataclass(frozen=True, eq=False)
class Recommended:
    """The likeliest links of a node, the likeliest first."""

    pairs: Tensor  # [2, top]
    output: np.ndarray  # of the task: 0 for any link, or 1 and more for the types
    probability: np.ndarray


def scores(model: Predicts, graph: Graph, pairs: Tensor, types: Tensor | None = None) -> np.ndarray:
    """The probabilities of an edge, and of one of each type, ``[pairs, outputs]``.

    All edges of the graph are known, but those that a pair asks for are hidden.

    Args:
        model: Of links.
        graph: Nodes and edges.
        pairs: ``[2, pairs]``.
        types: The number of the type of each edge, where the model knows types.
    """
    settings, rows = model.settings, pairs.size(1)
    directed, known = settings.model.directed, len(_task(model).types)
    if types is None and known:
        types = torch.full((graph.num_edges,), -1)
    data = link_rows(settings)(
        without_labels(graph),
        find_links(graph.edge_index, directed=directed).of_edge,
        pairs,
        torch.full((rows,), -1),
        torch.zeros(rows, dtype=torch.bool),
        ~_asked(graph, pairs, directed=directed),
        directed,
        find_device(settings.training.device),
        None if types is None else type_flags(types, known),
    )
    return model.predict(data).mean


def recommended(
    model: Predicts, graph: Graph, nodes: Sequence[int], top: int, types: Tensor | None = None
) -> Iterator[Recommended]:
    """The likeliest links from each node to those that no edge joins it to yet.

    Args:
        model: Of links.
        graph: Nodes and edges.
        nodes: The numbers of the nodes.
        top: How many links each gets; of a model that knows types, of whichever type.
        types: As for :func:`scores`.
    """
    several = max(1, _AT_ONCE // max(graph.num_nodes, 1))
    for first in range(0, len(nodes), several):
        free = [_free(graph, node, model.settings) for node in nodes[first : first + several]]
        found = scores(model, graph, torch.cat(free, dim=1), types)
        begin = 1 if _task(model).types else 0
        of_nodes = np.split(found[:, begin:], np.cumsum([one.size(1) for one in free])[:-1])
        for pairs, probability in zip(free, of_nodes, strict=True):
            order = np.argsort(-probability, axis=None, kind="stable")[:top]
            place, output = np.unravel_index(order, probability.shape)
            best = pairs[:, torch.from_numpy(place)]
            yield Recommended(best, output + begin, probability[place, output])


def pair_columns(
    model: Predicts, graph: Graph, table: Table, types: Tensor | None
) -> tuple[Columns, int]:
    """The columns of a table of pairs with their scores, and how many there are.

    Where the table has the column of the types, each row asks for its own type; an empty cell, and
    a model that knows no types, for any link.
    """
    data, task = model.settings.data, _task(model)
    named = [table.column(name) for name in (data.source_column, data.destination_column)]
    pairs = torch.stack([_places(column, graph, table) for column in named])
    found = scores(model, graph, pairs, types)
    columns = _end_columns(graph, pairs)
    if task.types and task.column in table.columns:
        asked = _asked_outputs(table, task)
        columns[task.column] = ["" if k == 0 else task.types[k - 1] for k in asked]
        columns[f"{ANY}_{task.word}"] = cells(found[np.arange(len(asked)), asked])
    else:
        for name, column in zip(task.names, found.T, strict=True):
            columns[f"{name}_{task.word}"] = cells(column)
    return columns, pairs.size(1)


def recommended_columns(model: Predicts, graph: Graph, best: Recommended) -> Columns:
    """The likeliest links of a node, with their types where the model knows any."""
    columns, task = _end_columns(graph, best.pairs), _task(model)
    if task.types:
        columns[task.column] = [task.types[k - 1] for k in best.output]
    columns[f"{ANY}_{task.word}"] = cells(best.probability)
    return columns


def named_nodes(table: Table | None, settings: Settings, graph: Graph) -> list[int]:
    """The numbers of the nodes that a table names; without one, all."""
    if table is None:
        return list(range(graph.num_nodes))
    names = table.columns
    name = settings.data.id_column if settings.data.id_column in names else next(iter(names))
    found: list[int] = _places(table.column(name), graph, table).tolist()
    return found


def _task(model: Predicts) -> Link:
    assert isinstance(model.task, Link)
    return model.task


def _free(graph: Graph, node: int, settings: Settings) -> Tensor:
    """Pairs of a node with all that no edge joins it to."""
    source, target = graph.edge_index
    there = target[source == node]
    if not settings.model.directed:
        there = torch.cat([there, source[target == node]])
    free = torch.ones(graph.num_nodes, dtype=torch.bool)
    free[there] = False
    free[node] = False
    others = free.nonzero()[:, 0]
    return torch.stack([torch.full_like(others, node), others])


def _asked(graph: Graph, pairs: Tensor, *, directed: bool) -> Tensor:
    both = pairs if directed else torch.cat([pairs, pairs.flip(0)], dim=1)
    keys = both[0] * graph.num_nodes + both[1]
    return torch.isin(graph.edge_index[0] * graph.num_nodes + graph.edge_index[1], keys)


def _end_columns(graph: Graph, pairs: Tensor) -> Columns:
    names = graph.node_ids or tuple(map(str, range(graph.num_nodes)))
    source, target = pairs.tolist()
    return {"source": [names[i] for i in source], "target": [names[i] for i in target]}


def _asked_outputs(table: Table, task: Link) -> np.ndarray:
    """The output that each row asks for."""
    codes, words = table.categories(task.column)
    number = {name: k for k, name in enumerate(task.types, start=1)}
    strange = [word for word in words if word not in number]
    if strange:
        row = int((codes == words.index(strange[0])).argmax())
        raise EdgewiseError(
            f"{table.where(row)}: {strange[0]!r} is no type of links that was learnt; choose one "
            f"of {preview(task.types)}, or leave the cell empty for any"
        )
    return np.array([*(number[word] for word in words), 0])[codes]


def _places(cells: Sequence[str], graph: Graph, table: Table) -> Tensor:
    names = graph.node_ids or tuple(map(str, range(graph.num_nodes)))
    place = {name: row for row, name in enumerate(names)}
    unknown = [cell for cell in cells if cell.strip() not in place]
    if unknown:
        raise EdgewiseError(f"{table.path} names {preview(unknown)}, which the graph does not have")
    return torch.tensor([place[cell.strip()] for cell in cells], dtype=torch.int64)
