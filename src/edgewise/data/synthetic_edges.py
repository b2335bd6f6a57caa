"""A synthetic graph whose edges have labels: by direction, kind and order of parallel edges."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.graphs.graph import MultiGraph

KINDS = ("cash", "card")


@dataclass(frozen=True)
class EdgeCeilings:
    """The best accuracy that any model can expect, by what it does not see of the edges."""

    all: float = 1.0
    without_direction: float = 0.5
    without_kinds: float = 0.5
    without_order: float = 0.5


@dataclass(frozen=True, eq=False)
class LabelledEdges:
    """A graph and the labels of its edges."""

    graph: MultiGraph
    y: Tensor  # [edges], 0 or 1
    pair: Tensor  # [edges], the two nodes that an edge joins, as one number
    ceilings: EdgeCeilings = EdgeCeilings()


def direction_kind_and_order_graph(
    pairs: int = 1000, *, nodes: int = 300, noise: float = 0.1, seed: int = 0
) -> LabelledEdges:
    """Payments between shops and people, two for each pair, whose label needs all three to be seen.

    Every pair joins a person (feature 0) and a shop (feature 1) by two parallel edges, both
    in the same, random direction, each of a random kind. The label of an edge is the exclusive or
    of three bits: whether it goes from shop to person, whether its kind is the second, and whether
    it is the later one of the two, by the order of the rows.

    Why the ceilings hold: direction, kinds and order of a pair are fair and independent draws.
    Whoever does not see one of them cannot tell the graph from the one with that draw turned
    around, which is as likely, and in which the labels of the edge are the opposite ones. The
    labels of other pairs say nothing about it, so edges of one pair must stand in one subset.

    Args:
        pairs: How many pairs; there are twice as many edges.
        nodes: How many persons and shops, half of them each.
        noise: Standard deviation of what is added to the feature.
        seed: The same seed gives the same graph.
    """
    half = nodes // 2
    if pairs < 1 or half < 1 or pairs > half * half:
        raise EdgewiseError(
            f"pairs={pairs}, nodes={nodes} make no graph; give at least 2 nodes, and at most as "
            "many pairs as persons times shops"
        )
    generator = np.random.default_rng(seed)
    chosen = generator.choice(half * half, size=pairs, replace=False)
    person, shop = chosen // half, half + chosen % half
    from_shop = generator.integers(2, size=pairs)
    source, target = np.where(from_shop, shop, person), np.where(from_shop, person, shop)
    kind = generator.integers(len(KINDS), size=(pairs, 2))
    rows = generator.permutation(2 * pairs).reshape(pairs, 2)  # where the two edges stand
    later = (rows > rows[:, ::-1]).astype(int)
    label = from_shop[:, None] ^ kind ^ later
    order = np.argsort(rows.ravel())
    edge_index = np.stack([np.repeat(source, 2), np.repeat(target, 2)])[:, order]
    feature = (np.arange(2 * half) >= half) + noise * generator.standard_normal(2 * half)
    graph = MultiGraph(
        x=torch.from_numpy(feature).float().unsqueeze(1),
        edge_index=torch.from_numpy(edge_index),
        edge_attr=torch.from_numpy(np.eye(len(KINDS))[kind.ravel()[order]]).float(),
        channel_names=KINDS,
    )
    pair = torch.from_numpy(np.repeat(np.arange(pairs), 2)[order])
    return LabelledEdges(graph, torch.from_numpy(label.ravel()[order]), pair)
