"""Paths of two edges between two nodes, against a loop over all nodes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_edge_rows import EDGES, NODES, made
from torch.testing import assert_close

from edgewise.graphs import two_paths
from edgewise.graphs.edge_rows import EdgeRows, query_width
from edgewise.kernels.common_neighbors import (
    NeighborLists,
    common_neighbors,
    count_common_neighbors,
)


def edge_between(data, carries, seen, a, b):
    """Whether an edge goes from a to b, its mean channels, and the same of labels that are seen."""
    source, target = data.graph.edge_index.tolist()
    channels = data.graph.channels.double().numpy()
    ways = {(a, b)} if data.directed else {(a, b), (b, a)}
    some = [e for e in range(EDGES) if (source[e], target[e]) in ways and carries[e]]
    told = [float(bool(some)), *(np.mean(channels[some], axis=0) if some else [0, 0])]
    if data.labels is not None:
        some = [e for e in some if seen[e]]
        labels = data.labels.double().numpy()
        told += [float(bool(some)), *(np.mean(labels[some], axis=0) if some else [0, 0])]
    return np.array(told)


def slow_paths(data, carries, seen, a, b):
    """The same as the features of an edge from a to b, by the definition."""

    def told(values):
        total = np.sum(values, axis=0)
        found = []
        for part in (total[:3], total[3:]):
            if len(part):
                found += [math.log1p(part[0]), *(part[1:] / max(part[0], 1))]
        return found

    found = []
    others = [w for w in range(NODES) if w not in (a, b)]
    for first in [(lambda w: (a, w)), (lambda w: (w, a))][: 1 + data.directed]:
        for second in [(lambda w: (w, b)), (lambda w: (b, w))][: 1 + data.directed]:
            pairs = [
                [edge_between(data, carries, seen, *way(w)) for way in (first, second)]
                for w in others
            ]
            pairs = [(x, y, x[0] * y[0]) for x, y in pairs]
            found += told([x * y for x, y, _ in pairs])
            ends = [[x * whole for x, _, whole in pairs], [y * whole for _, y, whole in pairs]]
            found += [*told(ends[0]), *told(ends[1])] if data.directed else told(ends[0] + ends[1])
    return found


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("time", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_paths_are_those_of_the_definition(labels, time, directed, monkeypatch):
    monkeypatch.setattr(two_paths, "MOST_COMMON", 7)  # several stretches
    data = replace(made(labels=labels, time=time, directed=directed), paths=True)
    known = ~data.known if time else data.known
    rows = known.nonzero()[:, 0]  # that see one another
    for batch in data.evaluation_batches(rows):
        asked = rows[batch.place]
        carries, seen = torch.ones(EDGES, dtype=torch.bool), data.known.clone()
        if time:
            carries = data.time < data.starts[data._stretch[asked[0]]]
        elif labels:
            seen &= torch.arange(EDGES) % 10 != asked[0] % 10
        width = query_width(data.num_channels, directed=directed, paths=True)
        assert batch.queries.features.size(1) == width
        without = query_width(data.num_channels, directed=directed)
        for features, row in zip(batch.queries.features[:, without:], asked.tolist(), strict=True):
            a, b = data.graph.edge_index[:, row].tolist()
            truth = slow_paths(data, carries.tolist(), seen.tolist(), a, b)
            assert_close(features.double(), torch.tensor(truth).double(), rtol=1e-5, atol=1e-6)


def test_without_direction_exchanging_the_ends_changes_nothing():
    data = replace(made(directed=False), paths=True)
    turned = replace(data, graph=replace(data.graph, edge_index=data.graph.edge_index.flip(0)))
    rows = torch.arange(EDGES)
    for one, other in zip(
        data.evaluation_batches(rows), turned.evaluation_batches(rows), strict=True
    ):
        assert torch.equal(one.queries.features, other.queries.features)


def test_common_neighbours_are_those_of_sets():
    generator = np.random.default_rng(0)
    ends = generator.integers(30, size=(2, 200))
    there = np.arange(200)
    lists = NeighborLists.of(ends, there, there + 200, 30)
    near = [set() for _ in range(30)]
    for a, b in ends.T.tolist():
        if a != b:
            near[a].add(b)
            near[b].add(a)
    pairs = generator.integers(30, size=(2, 100))
    counts = count_common_neighbors(lists, pairs)
    found = common_neighbors(lists, pairs, counts)
    for number, (a, b) in enumerate(pairs.T.tolist()):
        places = slice(found.start[number], found.start[number + 1])
        first, second = lists.neighbor[found.first[places]], lists.neighbor[found.second[places]]
        assert first.tolist() == second.tolist() == sorted(near[a] & near[b])
        assert (found.first[places] >= lists.start[a]).all()
        assert (found.first[places] < lists.start[a + 1]).all()


def test_an_edge_whose_ends_share_no_neighbour_has_no_paths():
    data = made(labels=False)
    index = torch.tensor([[0, 1], [1, 2]])
    graph = replace(data.graph, edge_index=index, edge_attr=torch.ones(2, 2))
    lonely = EdgeRows(graph, paths=True)
    (batch,) = lonely.evaluation_batches(torch.arange(2))
    assert not batch.queries.features[:, query_width(2, directed=True) :].any()
