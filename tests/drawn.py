"""Graphs that hypothesis draws: hubs, empty rows, isolated nodes, zeros, batches."""

from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor


class Drawn(NamedTuple):
    edge_index: Tensor
    edge_attr: Tensor
    num_nodes: int


@st.composite
def graphs(draw, max_nodes=6, min_channels=1, max_channels=4, zeros=True):
    """Directed graphs without repeated edges, values in float64, edges in any order."""
    nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.sets(st.tuples(node, node), max_size=2 * nodes))
    if draw(st.booleans()):  # a hub, pointed at by all
        pairs |= {(i, 0) for i in range(nodes)}
    if draw(st.booleans()):  # an empty row
        pairs = {(i, j) for i, j in pairs if i != nodes - 1}
    if draw(st.booleans()):  # a batch: the graph again, beside itself
        pairs |= {(i + nodes, j + nodes) for i, j in pairs}
        nodes *= 2
    nodes += draw(st.integers(0, 1))  # an isolated node
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    edge_index = torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2).T
    edge_index = edge_index[:, torch.randperm(len(pairs), generator=generator)]
    shape = len(pairs), draw(st.integers(min_channels, max_channels))
    edge_attr = 0.1 + 2 * torch.rand(shape, generator=generator, dtype=torch.float64)
    if zeros:
        edge_attr *= torch.rand(shape, generator=generator) > 0.25
    return Drawn(edge_index, edge_attr, nodes)


def noise(*shape, seed=0, dtype=torch.float64):
    """Normal numbers that do not hang on what was drawn before."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def alike(max_size):
    """Lists of graphs with the same number of channels."""
    several = st.integers(1, 3).map(lambda c: graphs(min_channels=c, max_channels=c))
    return several.flatmap(lambda graph: st.lists(graph, min_size=1, max_size=max_size))
