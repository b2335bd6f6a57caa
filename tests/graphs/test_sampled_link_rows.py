"""Links predicted along sampled edges: with all of them drawn, what the whole graph gives."""

from dataclasses import fields, replace

import pytest
import torch
from torch.testing import assert_close

from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.core.seeds import seeded
from edgewise.data.splits import Split
from edgewise.graphs import blocks, sampled_link_rows
from edgewise.graphs.batch import computed_rows
from edgewise.graphs.graph import MultiGraph
from edgewise.graphs.link_rows import LinkRows
from edgewise.graphs.links import find_links
from edgewise.graphs.share import Share
from edgewise.kernels.sampling import Numbering
from edgewise.tasks.link import link_task
from edgewise.training.fitting import Fitting
from edgewise.training.trainer import make_trainer
from edgewise.units.link import LINK
from edgewise.units.link_problem import link_problem

NODES, EDGES = 14, 90
KINDS = {
    "plain": {},
    "undirected": {"directed": False},
    "types": {"types": True},
    "times": {"types": True, "time": True},
}


def problem(kind="plain", **settings):
    """Parallel edges, edges both ways, self-loops, and a node without any."""
    more = {"types": False, "time": False, "directed": True, **KINDS[kind]}
    draw = torch.Generator().manual_seed(0)
    ends = torch.randint(NODES - 1, (2, EDGES), generator=draw)
    graph = MultiGraph(
        torch.rand(NODES, 3, generator=draw), ends, torch.rand(EDGES, 2, generator=draw)
    )
    types = torch.randint(-1, 2, (EDGES,), generator=draw) if more["types"] else None
    time = torch.randint(20, (EDGES,), generator=draw).double() if more["time"] else None
    task = link_task("kind", ("a", "b")) if more["types"] else link_task()
    links = find_links(
        ends, directed=more["directed"], time=time, types=types, num_types=len(task.types)
    )
    order = torch.arange(len(links)) if more["time"] else torch.randperm(len(links), generator=draw)
    cut = [int(share * len(links)) for share in (0.7, 0.85)]
    split = Split(order[: cut[0]], order[cut[0] : cut[1]], order[cut[1] :])
    given = {"hidden": 6, "channels": 3, "dropout": 0.0, "depth": 2, "neighbors": "-1"}
    given |= {"directed": more["directed"], "batch_size": 16, "split": "0.7,0.15,0.15", **settings}
    made = make_settings("link", **given)
    return link_problem(graph, links, task, split, made, time=time, types=types)


def in_double(given):
    """The same rows with samples and on the whole graph, and a model, in double precision."""
    sampled = given.data
    double = replace(
        sampled.graph, x=sampled.graph.x.double(), edge_attr=sampled.graph.channels.double()
    )
    sampled = replace(sampled, graph=double)
    whole = LinkRows(**{field.name: getattr(sampled, field.name) for field in fields(LinkRows)})
    torch.manual_seed(1)
    width = given.task.width
    model = LINK.network(sampled.num_features, width, sampled.num_channels, given.settings)
    return sampled, whole, model.double().eval()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["none", "row"])
def test_with_all_edges_drawn_a_batch_is_computed_as_on_the_whole_graph(kind, normalize):
    given = problem(kind, normalize=normalize)
    sampled, whole, model = in_double(given)
    links = given.split.train[sampled.link_of_row[given.split.train] >= 0][::3]
    if whole.times is not None:
        last = int(whole.times.stretch[links].max())
        links = links[whole.times.stretch[links] == last]
        carries = whole.times.before(last)
    else:
        carries = whole._without(whole.link_of_row[links])
    # Pairs without an edge, and one that is asked for both ways.
    pairs = torch.cat([whole.pairs[:, links], whole.pairs[:, links].flip(0)], dim=1)
    pairs = torch.cat([pairs, torch.randint(NODES, (2, 20))], dim=1)
    expected = whole._batch(pairs, carries)
    batch = sampled.sampled(links, pairs, 0, Numbering(NODES))
    assert_close(batch.queries.features, expected.queries.features)
    assert carries.any()
    assert_close(model(batch), model(expected), rtol=1e-10, atol=1e-12)
    assert not sampled._hidden.any()  # nothing of a batch is left behind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["none", "row"])
def test_in_blocks_the_outputs_are_those_of_the_whole_graph(kind, normalize, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ROWS", 6)
    monkeypatch.setattr(blocks, "MOST_PAIRS", 20)
    monkeypatch.setattr(sampled_link_rows, "MOST_COMMON", 9)
    given = problem(kind, normalize=normalize)
    sampled, whole, model = in_double(given)
    for rows in (torch.randperm(len(whole)), given.split.test[::5]):
        with torch.no_grad():
            for compute in (model, model.represent):
                expected = computed_rows(whole, rows, compute)
                assert_close(computed_rows(sampled, rows, compute), expected, rtol=0, atol=1e-10)


def trained(given, epochs=2):
    fitting = Fitting(make_trainer(given))
    for _ in range(epochs):
        fitting.step()
    return fitting.tensors()


@pytest.mark.parametrize("kind", ["plain", "times"])
def test_training_is_the_same_whether_batches_are_made_ahead_or_when_needed(kind, monkeypatch):
    first = trained(problem(kind, neighbors="3,2"))
    now = lambda make, count: map(make, range(count))  # noqa: E731
    monkeypatch.setattr(sampled_link_rows, "prefetched", now)
    again = trained(problem(kind, neighbors="3,2"))
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())


@pytest.mark.parametrize("kind", ["plain", "times"])
def test_an_epoch_has_every_training_link_once_in_as_many_steps_as_were_said(kind):
    given = problem(kind, neighbors="3,2")
    data, rows = given.data, given.split.train
    with seeded(0, 0, 1):
        parts = [rows for rows, _ in data.training_batches(rows, 16)]
    assert len(parts) == data.steps(len(rows), 16)
    seen = torch.cat(parts)
    links = seen[data.link_of_row[seen] >= 0]
    assert sorted(links.tolist()) == rows[data.link_of_row[rows] >= 0].tolist()


def test_what_a_pair_is_computed_from_does_not_depend_on_the_process_that_computes_it():
    given = problem(neighbors="3,2")
    rows = given.split.train
    torch.manual_seed(1)
    data = given.data
    model = LINK.network(data.num_features, given.task.width, data.num_channels, given.settings)
    model.eval()

    def outputs(share):
        with seeded(0, 0, 1):
            return [model(batch) for _, batch in data.training_batches(rows, 16, share)]

    whole = outputs(Share(0, 1))
    halves = [outputs(Share(rank, 2)) for rank in range(2)]
    for one, *parts in zip(whole, *halves, strict=True):
        assert_close(one.sort(0).values, torch.cat(parts).sort(0).values)


def test_a_layer_that_merges_parallel_edges_is_refused():
    with pytest.raises(EdgewiseError, match=r"merges parallel edges.*set layer = gated"):
        problem(layer="conv", neighbors="3,2")
