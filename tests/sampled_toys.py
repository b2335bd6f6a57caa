"""An asymmetric graph with hubs for tests of sampled neighbours."""

from dataclasses import replace

import torch

from edgewise.graphs.graph import Graph


def hub_graph(nodes=30, *, seed=0, features=3):
    """Weighted, directed, two channels with zeros; two hubs, self-loops, a node on its own."""
    draw = torch.Generator().manual_seed(seed)
    joined = torch.rand(nodes, nodes, generator=draw) < 0.1
    joined[3] = torch.rand(nodes, generator=draw) < 0.8
    joined[:, 7] = torch.rand(nodes, generator=draw) < 0.8
    joined.fill_diagonal_(False)
    joined[3, 3] = joined[5, 5] = True
    joined[9], joined[:, 9] = False, False
    edge_index = joined.nonzero().T
    edge_index = edge_index[:, torch.randperm(edge_index.size(1), generator=draw)]
    attr = torch.rand(edge_index.size(1), 2, generator=draw, dtype=torch.float64)
    attr = attr * (torch.rand(attr.shape, generator=draw) < 0.8)
    x = torch.rand(nodes, features, generator=draw, dtype=torch.float64)
    y = torch.arange(nodes) % 3
    return Graph(x, edge_index, attr, y, class_names=("a", "b", "c"))


def copies(graph, count):
    """The same graph many times over, joined by nothing; draws differ from copy to copy."""
    first = graph.num_nodes * torch.arange(count).repeat_interleave(graph.num_edges)
    return replace(
        graph,
        x=graph.x.repeat(count, 1),
        edge_index=graph.edge_index.repeat(1, count) + first,
        edge_attr=graph.channels.repeat(count, 1),
        y=None,
        class_names=None,
    )
