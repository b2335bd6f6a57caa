"""A numbering of nodes by which neighbours stand near each other in memory."""

import numpy as np
import torch
from jaxtyping import Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from edgewise.graphs.graph import Graph

# Two to this power runs of nodes are dealt out to threads.
RUN_BITS = 5


def renumbered(graph: Graph) -> tuple[Graph, Int[Tensor, " nodes"]]:
    """Features and edges of a graph with its nodes in :func:`near_order`; where each now stands."""
    order = near_order(graph.edge_index, graph.num_nodes)
    place = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order)))
    edge_index = place[graph.edge_index]
    by_source = torch.argsort(edge_index[0] * graph.num_nodes + edge_index[1], stable=True)
    parts = {"edge_index": edge_index[:, by_source], "edge_attr": graph.channels[by_source]}
    return type(graph).unchecked(x=graph.x[order], **parts), place


def near_order(edge_index: Int[Tensor, "2 edges"], num_nodes: int) -> Int[Tensor, " nodes"]:
    """The nodes from neighbour to neighbour (reverse Cuthill-McKee), in runs.

    A node gathers the rows of its neighbours: where those of the node before it were much the same,
    a cache still holds them. Hubs come late in this order, and each of several threads takes a
    stretch of nodes: runs are taken by the reversed bits of their numbers, so that every half,
    quarter and so on has its share of hubs.
    """
    row, column = edge_index.numpy()
    ones, shape = np.ones(len(row), bool), (num_nodes, num_nodes)
    joined = coo_array((ones, (row, column)), shape).tocsr()
    order = reverse_cuthill_mckee((joined + joined.T).tocsr(), symmetric_mode=True)
    runs = np.array_split(order, 2**RUN_BITS)
    dealt = [int(f"{run:0{RUN_BITS}b}"[::-1], 2) for run in range(len(runs))]
    return torch.from_numpy(np.concatenate([runs[run] for run in dealt])).long()
