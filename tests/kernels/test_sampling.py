"""Neighbours are drawn without replacement, each with the same probability, by node and key."""

import numpy as np
import pytest
import torch
import truth
from sampled_toys import hub_graph

from edgewise.graphs.array_graph import ArrayGraph
from edgewise.graphs.whole_sums import WholeSums
from edgewise.kernels.dropout import key_words
from edgewise.kernels.sampling import FEW, Numbering, mark_neighbors, sample_neighbors

NODES = np.arange(30)


@pytest.fixture
def arrays():
    return ArrayGraph.of(hub_graph())


def sampled(arrays, fan_out, key, nodes=NODES):
    degree = WholeSums(arrays).degree
    return sample_neighbors(arrays.adjacency.lists, degree, nodes, fan_out, key)


def by_node(found, nodes=NODES):
    """What was drawn for each node."""
    parts = (found.node, found.leaving, found.entering, found.weight)
    rows = list(zip(*(part.tolist() for part in parts), strict=True))
    bounds = found.start.tolist()
    return {
        int(node): rows[first:last]
        for node, first, last in zip(nodes, bounds, bounds[1:], strict=False)
    }


def mix(word):
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        word = (word ^ (word >> shift)) * factor % 2**32
    return word ^ (word >> 15)


def plainly_sampled(graph, fan_out, key):
    """The same from lists of Python numbers."""
    low, high = (int(word) for word in key_words(key))
    edges = sorted(zip(*graph.edge_index.tolist(), strict=True))
    number = {edge: k for k, edge in enumerate(edges)}

    def draw(node, count, below):
        word = mix((mix(node ^ low) + high) % 2**32)
        return (mix(mix((word + count) % 2**32) ^ high) * below) >> 32

    def pair(i, j, weight):
        return j, number.get((i, j), -1), number.get((j, i), -1), weight

    result = {}
    for i in range(graph.num_nodes):
        out = [t for s, t in edges if s == i]
        entering = [s for s, t in edges if t == i]
        every = sorted({*out, *entering} - {i})
        wanted = min(fan_out, len(every))
        chosen = []
        if len(every) <= FEW * wanted:
            for seen, j in enumerate(every):
                if draw(i, seen, len(every) - seen) < wanted - len(chosen):
                    chosen.append(j)
        else:
            count = 0
            while len(chosen) < wanted:
                place = draw(i, count, len(out) + len(entering))
                count += 1
                back = place >= len(out)
                j = (out + entering)[place]
                if j != i and j not in chosen and not (back and j in out):
                    chosen.append(j)
        own = [pair(i, i, 1.0)] if (i, i) in number else []
        result[i] = own + [pair(i, j, len(every) / wanted) for j in chosen]
    return result


@pytest.mark.parametrize("fan_out", [1, 2, 5, 12, 40])
def test_a_sample_is_what_a_plain_program_draws(arrays, fan_out):
    for key in range(20):
        assert by_node(sampled(arrays, fan_out, key)) == plainly_sampled(hub_graph(), fan_out, key)


@pytest.mark.parametrize("fan_out", [2, 6])
def test_weights_add_up_to_every_neighbour_once_on_average(arrays, fan_out):
    graph, draws = hub_graph(), 3000
    joined = torch.zeros(30, 30, dtype=torch.bool)
    joined[tuple(graph.edge_index)] = True
    joined = (joined | joined.T).numpy()
    total = np.zeros((30, 30))
    for key in range(draws):
        found = sampled(arrays, fan_out, key)
        near = np.repeat(NODES, np.diff(found.start))
        assert len(set(zip(near, found.node, strict=True))) == len(near)  # without replacement
        total[near, found.node] += found.weight
    degree = (joined & ~np.eye(30, dtype=bool)).sum(1, keepdims=True)
    probability = np.minimum(1, fan_out / np.maximum(degree, 1))
    error = np.sqrt((1 / probability - 1) / draws) * np.ones_like(total)
    distance = np.abs(total / draws - joined)
    assert (distance[~joined] == 0).all()
    assert (distance <= 4.5 * error + 1e-12).all()


def test_draws_of_a_node_do_not_depend_on_the_others_that_are_asked_for(arrays):
    every, some = by_node(sampled(arrays, 3, 11)), np.array([7, 3, 20])
    assert by_node(sampled(arrays, 3, 11, some), some) == {int(i): every[int(i)] for i in some}
    assert by_node(sampled(arrays, 3, 12)) != every


def test_without_a_limit_all_neighbours_are_there(arrays):
    found = sampled(arrays, -1, 0)
    assert (found.weight == 1).all()
    own = (found.node == np.repeat(NODES, np.diff(found.start))).sum()
    assert len(found.node) - own == WholeSums(arrays).degree.sum()


def test_nodes_are_numbered_in_the_order_in_which_they_are_named():
    numbering = Numbering(10)
    assert numbering.extend(np.array([4, 2, 4, 7])).tolist() == [0, 1, 0, 2]
    assert numbering.extend(np.array([2, 9])).tolist() == [1, 3]
    assert numbering.nodes.tolist() == [4, 2, 7, 9]
    numbering.clear()
    assert numbering.extend(np.array([9])).tolist() == [0]


def test_neighbours_are_marked_in_both_directions(arrays):
    graph = hub_graph()
    marked = np.zeros(30, dtype=bool)
    marked[[0, 4]] = True
    expected = {0, 4, *graph.neighbors(0).tolist(), *graph.neighbors(4).tolist()}
    assert set(np.flatnonzero(mark_neighbors(arrays.adjacency.lists, marked))) == expected


@pytest.mark.parametrize("direction", ["directed", "sum", "max"])
def test_sums_of_the_whole_graph_are_those_of_its_dense_channels(direction, arrays):
    raw = truth.dense(*whole(), 30)
    encode = {"directed": truth.directed, "sum": lambda r: r + r.transpose(0, 1)}
    encoded = encode.get(direction, lambda r: torch.maximum(r, r.transpose(0, 1)))(raw)
    entering = truth.add_loops(encoded).transpose(0, 1)  # row i holds the edges to i
    sums, nodes = WholeSums(arrays), np.array([3, 7, 0, 9])
    torch.testing.assert_close(sums.rows(direction, nodes), entering.sum(1)[nodes])
    torch.testing.assert_close(sums.columns(direction, nodes), entering.sum(0)[nodes])
    torch.testing.assert_close(sums.entering(direction, nodes), encoded.sum(0)[nodes])
    balanced = truth.row(entering).sum(0)[nodes]
    torch.testing.assert_close(sums.balances(direction, nodes), balanced)


def whole():
    graph = hub_graph()
    return graph.edge_index, graph.channels
