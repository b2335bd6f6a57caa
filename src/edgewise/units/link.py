"""A row is a pair of nodes, which an edge joins or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.edge_reader import EdgeReader, implied_nodes, load_edge_reader
from edgewise.data.graph_reader import edge_ends, node_ids
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.source import with_whole_graph
from edgewise.data.sources import GraphInput, Source
from edgewise.data.splits import Split, load_split
from edgewise.data.tables import Table
from edgewise.graphs.edge_rows import edge_name
from edgewise.graphs.graph import Graph, single_precision
from edgewise.graphs.link_rows import PAIR_FEATURES, LinkRows
from edgewise.graphs.negatives import NegativeSampler
from edgewise.nn.network import Network
from edgewise.tasks.base import Columns, Prediction, cells
from edgewise.tasks.link import Link
from edgewise.units.base import Asked, Opened, Predicted, Predicts, Problem, Show, Unit
from edgewise.units.pair_network import pair_network
from edgewise.units.splitting import drawn_split, is_file, split_seed

CANDIDATES = 20  # pairs without an edge that a link of validation or test is ranked among


class LinkUnit(Unit):
    """Pairs of nodes of one graph."""

    name, plural, estimator = "link", "links", "Link"
    settings = frozenset({"head"})
    not_searched = frozenset({"layer"})
    id_column, error_view = "row", "edges"
    encoder_file = "reader.json"

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        found = with_whole_graph(source.read_graph(settings.data))
        if settings.data.target:
            raise EdgewiseError(
                f"links have no column to predict, such as {preview(settings.data.target)}; leave "
                "out --target, or predict edges"
            )
        ends = _ends(found, settings)
        links, link = link_pairs(ends, directed=settings.model.directed)
        truth = torch.ones(links.size(1), 1)
        split = (
            load_split(settings.split.split)
            if is_file(settings.split.split)
            else drawn_split(settings, Link(("link",)), truth)
        )
        graph, reader = _read(found, settings, link, split)
        problem = link_problem(graph, settings, split, reader)
        note = f"{links.size(1):,} pairs of nodes with an edge"
        return Opened(problem, (str(graph), *found.notes, note))

    def network(self, features: int, outputs: int, channels: int, settings: Settings) -> Network:
        return pair_network(features, outputs, channels, PAIR_FEATURES, settings.model)

    def predicted(self, model: Predicts, source: Source, asked: Asked) -> Iterator[Predicted]:
        raise EdgewiseError(
            "a model of links scores pairs; name them with --pairs pairs.csv, or ask for the "
            "likeliest with --top 10 --for ids.csv"
        )

    def evaluated(
        self, model: Predicts, source: Source, asked: Asked
    ) -> tuple[Prediction, np.ndarray]:
        raise EdgewiseError(
            "links of other data would be among what they are predicted from; train on these data"
        )

    def scored(
        self, model: Predicts, source: Source, *, pairs: Table | None, top: int, ids: Table | None
    ) -> Iterator[Predicted]:
        """Scores of pairs, or the likeliest partners of some nodes; all edges carry messages."""
        graph = self._graph(model, source)
        if pairs is not None:
            wanted = _named_pairs(pairs, model.settings, graph)
            yield Predicted(_scores(model, graph, wanted), wanted.size(1))
            return
        nodes = _named_nodes(ids, model.settings, graph)
        for node in nodes:
            best = recommended(model, graph, node, top)
            yield Predicted(_scores(model, graph, best), best.size(1))

    def _graph(self, model: Predicts, source: Source) -> Graph:
        found = with_whole_graph(source.read_graph(model.settings.data))
        if found.graph is not None:
            return single_precision(found.graph)
        if model.encoder is None or found.edges is None:
            raise EdgewiseError(
                f"the model was not trained on tables, so it cannot read {source}; give its graph"
            )
        return model.encoder.read(found.nodes, found.edges).graph

    def load_encoder(self, path: Path) -> EdgeReader | None:
        return load_edge_reader(path) if path.exists() else None

    def as_data(self, value: Any, encoder: Any, device: torch.device) -> LinkRows:
        if not isinstance(value, LinkRows):
            raise EdgewiseError(
                f"the model predicts links of a graph, not {type(value).__name__}; use "
                "LinkPredictor, or name files"
            )
        return replace(value, device=device)

    def row_columns(self, problem: Problem) -> Columns:
        source, target = problem.data.ends  # type: ignore[attr-defined]
        return {"row": list(map(str, range(len(source)))), "source": source, "target": target}

    def row_names(self, cells: Mapping[str, Sequence[str]]) -> Sequence[str]:
        return [edge_name(*ends) for ends in zip(cells["source"], cells["target"], strict=True)]

    def needs_split(self, settings: Settings) -> bool:
        return True

    def rows_of_file(self, problem: Problem, rows: Tensor) -> Tensor:
        """Numbers of the links: the pairs without an edge follow from them."""
        assert isinstance(problem.data, LinkRows)
        links = problem.data.link_of_row[rows]
        return links[links >= 0]


def link_problem(
    graph: Graph, settings: Settings, split: Split, encoder: EdgeReader | None = None
) -> Problem:
    """Links of a graph, with the pairs that they are told from.

    Args:
        graph: Nodes and edges.
        settings: Of the model.
        split: Of the links, in the order of :func:`link_pairs`.
        encoder: How its tables were read.
    """
    if settings.model.head == "layer":
        raise EdgewiseError("head = layer gives outputs for nodes, not for links; set head = mlp")
    directed = settings.model.directed
    links, link = link_pairs(graph.edge_index, directed=directed)
    if not len(split.train):
        raise EdgewiseError("no link is left for training; give more edges, or another split")
    part = torch.full((links.size(1),), -1)
    for number, rows in enumerate(split.parts().values()):
        part[rows] = number
    generator = torch.Generator().manual_seed(split_seed(settings))
    sampler = NegativeSampler(graph.edge_index, graph.num_nodes, directed=directed)
    count = torch.where(part == 0, 1, torch.where(part > 0, CANDIDATES, 0)) + 1
    of_link = torch.arange(links.size(1)).repeat_interleave(count)
    first = torch.ones(len(of_link), dtype=torch.bool)
    first[1:] = of_link[1:] != of_link[:-1]
    # A ranked link has the reverse pair among its candidates about once.
    drawn = sampler.draw(links[:, of_link], reverse=1 / CANDIDATES, generator=generator)
    pairs = torch.where(first, links[:, of_link], drawn)
    data = LinkRows(
        replace(graph, y=None, class_names=None),
        link,
        pairs,
        torch.where(first, of_link, -1),
        part[of_link] == 0,
        (part == 0)[link],
        directed,
        find_device(settings.training.device),
    )
    rows = torch.arange(len(of_link))
    of_part = part[of_link]
    whole = Split(*(rows[of_part == number] for number in range(3)))
    truth = first.float().unsqueeze(1)
    return Problem(LINK, data, Link(("link",)), truth, whole, settings, encoder)


def scores(model: Predicts, graph: Graph, pairs: Tensor) -> np.ndarray:
    """The probability of an edge for each pair, ``[pairs]``; all edges of the graph are known.

    An edge that a pair asks for is hidden while it is scored.
    """
    settings = model.settings
    _, link = link_pairs(graph.edge_index, directed=settings.model.directed)
    rows = pairs.size(1)
    data = LinkRows(
        replace(graph, y=None, class_names=None),
        link,
        pairs,
        torch.full((rows,), -1),
        torch.zeros(rows, dtype=torch.bool),
        ~_asked(graph, pairs, directed=settings.model.directed),
        settings.model.directed,
        find_device(settings.training.device),
    )
    return model.predict(data).mean[:, 0]


def recommended(model: Predicts, graph: Graph, node: int, top: int) -> Tensor:
    """The likeliest edges from a node that are not there yet, ``[2, top]``, the likeliest first."""
    source, target = graph.edge_index
    there = target[source == node]
    if not model.settings.model.directed:
        there = torch.cat([there, source[target == node]])
    free = torch.ones(graph.num_nodes, dtype=torch.bool)
    free[there] = False
    free[node] = False
    others = free.nonzero()[:, 0]
    pairs = torch.stack([torch.full_like(others, node), others])
    order = np.argsort(-scores(model, graph, pairs), kind="stable")[:top]
    return pairs[:, torch.from_numpy(order)]


def _asked(graph: Graph, pairs: Tensor, *, directed: bool) -> Tensor:
    both = pairs if directed else torch.cat([pairs, pairs.flip(0)], dim=1)
    keys = both[0] * graph.num_nodes + both[1]
    return torch.isin(graph.edge_index[0] * graph.num_nodes + graph.edge_index[1], keys)


def _scores(model: Predicts, graph: Graph, pairs: Tensor) -> Columns:
    names = graph.node_ids or tuple(map(str, range(graph.num_nodes)))
    found = scores(model, graph, pairs)
    source, target = pairs.tolist()
    return {
        "source": [names[i] for i in source],
        "target": [names[i] for i in target],
        "link_probability": cells(found),
    }


def link_pairs(edge_index: Tensor, *, directed: bool) -> tuple[Tensor, Tensor]:
    """The different pairs that edges join, ``[2, links]``, and which of them each edge joins."""
    ends = edge_index if directed else edge_index.sort(dim=0).values
    pairs, link = torch.unique(ends, dim=1, return_inverse=True)
    return pairs, link


def _ends(found: GraphInput, settings: Settings) -> Tensor:
    if found.graph is not None:
        return found.graph.edge_index
    data = settings.data
    nodes, edges = _tables(found, settings)
    edges.require(data.source_column, data.destination_column)
    ids = node_ids(nodes, data.id_column)
    ends = edge_ends(edges, data.source_column, data.destination_column, ids)
    return torch.from_numpy(ends[(ends >= 0).all(axis=1)].T.copy())


def _tables(found: GraphInput, settings: Settings) -> tuple[Table, Table]:
    data = settings.data
    assert found.edges is not None
    if found.nodes is not None:
        return found.nodes, found.edges
    columns = (data.source_column, data.destination_column, data.id_column)
    return implied_nodes(found.edges, *columns), found.edges


def _read(
    found: GraphInput, settings: Settings, link: Tensor, split: Split
) -> tuple[Graph, EdgeReader | None]:
    if found.graph is not None:
        return single_precision(found.graph), None
    data = settings.data
    nodes, edges = _tables(found, settings)
    train = torch.isin(link, split.train).nonzero()[:, 0].numpy()
    tables = learn_graph_reader(
        nodes,
        edges,
        id=data.id_column,
        numbers=data.numbers,
        categories=data.categories,
        text=data.text,
        ignore=tuple(dict.fromkeys((*data.ignore, *found.ignore))),
        source=data.source_column,
        target=data.destination_column,
        directed=settings.model.directed,
        missing=data.missing,
        unknown=data.unknown,
        edge_rows=None if data.fit_on == "all" or data.unknown == "drop" else train,
    )
    reader = EdgeReader(tables, found.nodes is not None, False, "", settings.model.directed)
    return reader.read(found.nodes, edges).graph, reader


def _named_pairs(table: Table, settings: Settings, graph: Graph) -> Tensor:
    data = settings.data
    columns = [table.column(name) for name in (data.source_column, data.destination_column)]
    return torch.stack([_places(cells, graph, table) for cells in columns])


def _named_nodes(table: Table | None, settings: Settings, graph: Graph) -> list[int]:
    if table is None:
        return list(range(graph.num_nodes))
    names = table.columns
    name = settings.data.id_column if settings.data.id_column in names else next(iter(names))
    found: list[int] = _places(table.column(name), graph, table).tolist()
    return found


def _places(cells: Sequence[str], graph: Graph, table: Table) -> Tensor:
    names = graph.node_ids or tuple(map(str, range(graph.num_nodes)))
    place = {name: row for row, name in enumerate(names)}
    unknown = [cell for cell in cells if cell.strip() not in place]
    if unknown:
        raise EdgewiseError(f"{table.path} names {preview(unknown)}, which the graph does not have")
    return torch.tensor([place[cell.strip()] for cell in cells], dtype=torch.int64)


LINK = LinkUnit()
