"""Colour refinement: nodes share a colour if, and only if, their surroundings are equal."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.kernels.colours import grouped, refine


@st.composite
def labelled_graphs(draw, max_nodes=7):
    """Multigraphs whose nodes and edges have one of two features each."""
    nodes = draw(st.integers(1, max_nodes))
    end = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(end, end, st.integers(0, 1)), min_size=1, max_size=3 * nodes))
    x = torch.tensor(draw(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes)))
    ends = torch.tensor([edge[:2] for edge in edges]).T
    features = torch.tensor([edge[2] for edge in edges])
    return torch.eye(2)[x], ends, torch.eye(2)[features]


def trees(x, edge_index, edge_attr, depth):
    """The unfolding of every node and edge to a depth, written out as nested tuples."""
    nodes, edges = [tuple(row) for row in x.tolist()], [tuple(row) for row in edge_attr.tolist()]
    ends = edge_index.T.tolist()
    for _ in range(depth):
        edges = [(nodes[i], nodes[j], edges[e]) for e, (j, i) in enumerate(ends)]
        entering = [
            sorted(edges[e] for e, (_, i) in enumerate(ends) if i == n) for n in range(len(x))
        ]
        nodes = [(own, tuple(around)) for own, around in zip(nodes, entering, strict=True)]
    return nodes, edges


@given(graph=labelled_graphs(), depth=st.integers(1, 3))
def test_nodes_share_a_colour_if_their_unfoldings_are_equal(graph, depth):
    found = refine(*graph, depth)
    nodes, _ = trees(*graph, depth)
    colour = found.colour.tolist()
    for i, tree in enumerate(nodes):
        for j, other in enumerate(nodes):
            assert (colour[i] == colour[j]) == (tree == other)


@given(graph=labelled_graphs(), depth=st.integers(1, 3))
def test_levels_lead_from_colours_to_the_next(graph, depth):
    found = refine(*graph, depth)
    x, _, edge_attr = graph
    nodes = [found.first_node[c].item() for c in range(len(found.first_node))]
    assert len({tuple(x[n].tolist()) for n in nodes}) == len(nodes)
    size, edge_size = len(found.first_node), len(found.first_edge)
    for number, level in enumerate(found.levels, 1):
        true_nodes, true_edges = trees(*graph, number)
        assert (level.num_nodes, level.num_edges) == (size, edge_size)
        size, edge_size = len(level.parent), len(level.target)
        assert (size, edge_size) == (len(set(true_nodes)), len(set(true_edges)))
        assert level.node_count.sum() == len(x)
        assert level.edge_count.sum() == len(edge_attr)
        entering = np.diff(level.entering.start.astype(int))
        assert (entering * level.node_count.numpy()).sum() == len(edge_attr)
        assert len(level.receivers.member) == len(level.entering.member)
    assert found.colour.max() + 1 == size


def test_a_hub_is_sorted_as_other_nodes_are():
    leaves = 40
    ends = torch.tensor([[leaf, 0] for leaf in range(2, leaves + 2)])
    other = torch.tensor([[leaf, 1] for leaf in reversed(range(2, leaves + 2))])
    edge_attr = (ends[:, :1] % 5).float()
    x = torch.zeros(leaves + 2, 1)
    edges = torch.cat([ends, other]).T
    found = refine(x, edges, torch.cat([edge_attr, edge_attr.flip(0)]), 2)
    assert found.colour[0] == found.colour[1]
    assert found.colour[0] != found.colour[2]


def test_groups_list_the_places_of_each_key_in_order():
    found = grouped(np.array([2, 0, 2, 2], dtype=np.uint32), 4)
    assert found.start.tolist() == [0, 1, 1, 4, 4]
    assert found.member.tolist() == [1, 0, 2, 3]
