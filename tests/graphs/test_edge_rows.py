"""Edges as rows: who carries messages to whom, and which labels are seen on the way."""

import math

import pytest
import torch

from edgewise.graphs.edge_rows import FOLDS, EdgeRows
from edgewise.graphs.graph import MultiGraph
from edgewise.graphs.incident import port_numbers

NODES, EDGES = 7, 60


def made(*, labels=True, time=False, directed=True, seed=0, incident=True, paths=True):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(NODES, (2, EDGES), generator=generator)  # parallel edges and loops
    graph = MultiGraph(
        torch.randn(NODES, 3, generator=generator),
        edge_index,
        torch.rand(EDGES, 2, generator=generator),
    )
    known = torch.rand(EDGES, generator=generator) < 0.6
    when = torch.randint(12, (EDGES,), generator=generator).double()
    return EdgeRows(
        graph,
        labels=torch.rand(EDGES, 2, generator=generator) if labels else None,
        known=known,
        time=when if time else None,
        starts=torch.tensor([-math.inf, 3, 6, 9.0], dtype=torch.float64) if time else None,
        directed=directed,
        incident=incident,
        paths=paths,
    )


def contents(batch):
    """Everything that a network sees."""
    parts = (batch.x, batch.edge_index, batch.edge_attr, batch.queries.edge_index)
    return (*parts, batch.queries.features)


def batches_of(data, rows):
    """For each row what is seen when it is evaluated."""
    found = {}
    for batch in data.evaluation_batches(rows):
        for number, place in enumerate(batch.place.tolist()):
            own = tuple(part[:, number] if part.dim() == 2 and part.size(0) == 2 else part[number]
                        for part in contents(batch)[3:])  # fmt: skip
            found[int(rows[place])] = (*contents(batch)[:3], *own)
    return found


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def with_labels(data, rows, value=5.0):
    labels = data.labels.clone()
    labels[rows] = value
    return EdgeRows(**{**vars_of(data), "labels": labels})


def vars_of(data):
    names = ("graph", "labels", "known", "time", "starts", "directed", "incident", "paths")
    return {name: getattr(data, name) for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("time", [False, True])
def test_the_label_of_an_edge_is_no_part_of_what_it_is_predicted_from(time):
    data, every = made(time=time), torch.arange(EDGES)
    before = batches_of(data, every)
    seen_by_others = 0
    for row in range(EDGES):
        after = batches_of(with_labels(data, [row]), every)
        assert same(before[row], after[row])
        seen_by_others += any(not same(before[r], after[r]) for r in range(EDGES))
    assert seen_by_others > 10  # or nothing is shown at all


@pytest.mark.parametrize("time", [False, True])
def test_labels_that_are_not_of_training_are_never_seen(time):
    data, every = made(time=time), torch.arange(EDGES)
    hidden = (~data.known).nonzero()[:, 0]
    noisy = with_labels(data, hidden)
    before, after = batches_of(data, every), batches_of(noisy, every)
    assert all(same(before[row], after[row]) for row in range(EDGES))


@pytest.mark.parametrize("time", [False, True])
def test_in_training_too_an_edge_does_not_see_its_own_label(time):
    data = made(time=time)
    train = data.known.nonzero()[:, 0]
    torch.manual_seed(1)
    before = list(data.training_batches(train, 1000))
    assert torch.equal(torch.cat([rows for rows, _ in before]).sort().values, train)
    for number, (rows, batch) in enumerate(before):
        torch.manual_seed(1)
        again = list(with_labels(data, rows).training_batches(train, 1000))[number]
        assert torch.equal(again[0], rows)
        assert same(contents(again[1]), contents(batch))
    seen = [batch.edge_attr[:, 2].sum() for _, batch in before]
    assert max(seen) > 0
    if not time:
        hidden = [len(train) - int(n) for n in seen]
        assert hidden == [len(rows) for rows, _ in before]


def test_an_epoch_has_as_many_batches_as_it_says():
    for time in (False, True):
        data = made(time=time)
        train = data.known.nonzero()[:, 0]
        assert len(list(data.training_batches(train, 1000))) == data.steps(len(train), 1000)
    plain, rows = made(labels=False), torch.arange(EDGES)
    assert [len(rows) for rows, _ in plain.training_batches(rows, 25)] == [20, 20, 20]


def test_with_times_messages_come_from_edges_before_the_stretch_alone():
    data = made(time=True)
    for batch in data.evaluation_batches(torch.arange(EDGES)):
        rows = batch.place
        start = data.starts[data.starts <= data.time[rows].min()].max()
        earlier = data.graph.edge_index[:, data.time < start]
        assert torch.equal(batch.edge_index, earlier)
        assert (data.time[rows] >= start).all()


def test_nothing_that_happens_later_changes_a_prediction():
    data = made(time=True)
    row = int((data.time == 6).nonzero()[0, 0])
    later = (data.time > 6).nonzero()[:, 0]
    channels = data.graph.channels.clone()
    channels[later] = 9.0
    graph = MultiGraph(data.graph.x, data.graph.edge_index, channels)
    changed = EdgeRows(**{**vars_of(with_labels(data, later)), "graph": graph})
    every = torch.arange(EDGES)
    assert same(batches_of(data, every)[row], batches_of(changed, every)[row])


def test_a_prediction_does_not_depend_on_who_else_is_asked_for():
    data = made()
    every = batches_of(data, torch.arange(EDGES))
    some = torch.tensor([41, 3, 17])
    assert all(same(every[row], batches_of(data, some)[row]) for row in some.tolist())
    assert all(same(every[r], batches_of(data, torch.tensor([r]))[r]) for r in some.tolist())


def slow_means(data, around, visible):
    """Numbers and means of some edges, one after the other."""
    channels = data.graph.channels
    parts = [math.log1p(len(around))]
    parts += [sum(float(channels[e, c]) for e in around) / max(len(around), 1) for c in range(2)]
    shown = [e for e in around if visible[e]]
    parts.append(math.log1p(len(shown)))
    parts += [sum(float(data.labels[e, c]) for e in shown) / max(len(shown), 1) for c in range(2)]
    return parts


@pytest.mark.parametrize("directed", [True, False])
def test_what_nodes_and_pairs_know_of_edges_equals_a_count_by_hand(directed):
    data = made(directed=directed, paths=False)
    source, target = data.graph.edge_index.tolist()
    row = int((~data.known).nonzero()[3, 0])
    (batch,) = data.evaluation_batches(torch.tensor([row]))
    visible = data.known.tolist()
    for node in range(NODES):
        leaving = [e for e in range(EDGES) if source[e] == node]
        entering = [e for e in range(EDGES) if target[e] == node]
        sides = [leaving, entering] if directed else [leaving + entering]
        expected = [x for side in sides for x in slow_means(data, side, visible)]
        assert batch.x[node, 3:].tolist() == pytest.approx(expected, abs=1e-5)
    ends = (source[row], target[row])
    there = [e for e in range(EDGES) if (source[e], target[e]) == ends and e != row]
    back = [e for e in range(EDGES) if (target[e], source[e]) == ends]
    sides = [there, back] if directed else [sorted({*there, *back} - {row})]
    expected = [*data.graph.channels[row].tolist(), 0, 0, 0]
    expected += [x for side in sides for x in slow_means(data, side, visible)]
    assert batch.queries.features[0].tolist() == pytest.approx(expected, abs=1e-5)
    assert data.num_features == batch.x.size(1)
    assert data.num_channels == batch.edge_attr.size(1)


def test_ports_count_earlier_parallel_edges():
    edge_index = torch.tensor([[0, 1, 0, 0, 2], [1, 0, 1, 1, 2]])
    assert port_numbers(edge_index, 3).tolist() == [0, 0, 1, 2, 0]
    assert port_numbers(edge_index, 3, directed=False).tolist() == [0, 1, 2, 3, 0]
    when = torch.tensor([9.0, 8.0, 7.0, 7.0, 0.0])
    assert port_numbers(edge_index, 3, time=when).tolist() == [2, 0, 0, 1, 0]


def test_without_labels_and_times_all_edges_share_one_batch_of_messages():
    data = made(labels=False)
    (batch,) = data.evaluation_batches(torch.arange(EDGES))
    (again,) = data.evaluation_batches(torch.arange(5))
    assert batch.edges is again.edges
    assert len(list(made().evaluation_batches(torch.arange(EDGES)))) == FOLDS + 1
