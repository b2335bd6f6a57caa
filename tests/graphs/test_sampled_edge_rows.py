"""Edges predicted along sampled edges: with all of them drawn, what the whole graph gives."""

import pytest
import torch
from torch.testing import assert_close

from edgewise.core.presets import make_settings
from edgewise.graphs import blocks
from edgewise.graphs.batch import computed_rows
from edgewise.graphs.edge_rows import EdgeRows
from edgewise.graphs.graph import MultiGraph
from edgewise.graphs.sampled_edge_rows import SampledEdgeRows
from edgewise.graphs.share import Share
from edgewise.kernels.incident_sampling import sample_incident
from edgewise.kernels.sampling import Numbering
from edgewise.nn.layers.gated import GatedChannelConv
from edgewise.units.edge import EDGE

NODES, EDGES = 12, 60


def a_graph():
    """Parallel edges, edges both ways, self-loops, and a node without any."""
    torch.manual_seed(0)
    ends = torch.randint(NODES - 1, (2, EDGES))
    return MultiGraph(torch.rand(NODES, 3).double(), ends, edge_attr=torch.rand(EDGES, 2).double())


def rows_of(kind, fan_outs=(-1, -1)):
    labels, known = torch.rand(EDGES, 1).double() + 1, torch.arange(EDGES) % 3 > 0
    more = {
        "plain": {},
        "undirected": {"directed": False},
        "labels": {"labels": labels, "known": known},
        "times": {
            **{"labels": labels, "known": known, "time": torch.arange(EDGES) // 4},
            "starts": torch.tensor([-1, 5, 10]),
        },
    }[kind] | {"paths": True}
    return EdgeRows(a_graph(), **more), SampledEdgeRows(a_graph(), **more, fan_outs=fan_outs)


KINDS = ["plain", "undirected", "labels", "times"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["none", "row"])
def test_with_all_edges_drawn_a_batch_is_computed_as_on_the_whole_graph(kind, normalize):
    whole, sampled = rows_of(kind)
    settings = make_settings(
        "edge",
        hidden=6,
        channels=3,
        dropout=0.0,
        normalize=normalize,
        directed=whole.directed,
        paths=True,
    )
    torch.manual_seed(1)
    model = EDGE.network(whole.num_features, 2, whole.num_channels, settings).double().eval()
    some = torch.arange(3, EDGES, 4)
    if kind == "times":
        some = some[whole._stretch[some] == 1]
        expected = whole._stretch_batch(some)
    else:
        expected = whole._batch(some, hidden=some if kind == "labels" else None)
    batch = sampled.sampled(some, some, 0, Numbering(NODES))
    assert_close(model(batch), model(expected), rtol=1e-10, atol=1e-12)


def computed(model, data, rows):
    with torch.no_grad():
        return [computed_rows(data, rows, compute) for compute in (model, model.represent)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["none", "row"])
@pytest.mark.parametrize("depth", [1, 3])
def test_in_blocks_the_outputs_are_those_of_the_whole_graph(kind, normalize, depth, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ROWS", 5)
    monkeypatch.setattr(blocks, "MOST_PAIRS", 20)
    whole, sampled = rows_of(kind, fan_outs=(1,) * depth)
    chosen = {"hidden": 6, "channels": 3, "normalize": normalize, "depth": depth, "paths": True}
    chosen |= {"directed": whole.directed, "residual": True, "norm": "batch"}
    settings = make_settings("edge", **chosen)
    torch.manual_seed(1)
    model = EDGE.network(whole.num_features, 2, whole.num_channels, settings).double().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    for rows in (torch.randperm(EDGES), torch.tensor([17, 3, 41])):
        expected, found = computed(model, whole, rows), computed(model, sampled, rows)
        for ours, true in zip(found, expected, strict=True):
            assert_close(ours, true, rtol=0, atol=1e-10)
        monkeypatch.setenv("EDGEWISE_MEMORY_GB", "1e-9")  # states of nodes go to files
        assert all(map(torch.equal, computed(model, sampled, rows), found))
        monkeypatch.delenv("EDGEWISE_MEMORY_GB")


def test_in_blocks_no_array_has_a_row_for_each_edge_and_each_column_of_a_layer(monkeypatch):
    whole, sampled = rows_of("plain")
    settings = make_settings("edge", hidden=6, channels=3, paths=True)
    model = EDGE.network(whole.num_features, 2, whole.num_channels, settings).double().eval()
    monkeypatch.setattr(blocks, "MOST_ROWS", 2)
    monkeypatch.setattr(blocks, "MOST_PAIRS", 1)
    sizes = []
    kept = GatedChannelConv._states

    def watched(layer, projected, edges):
        gate, state = kept(layer, projected, edges)
        sizes.append(len(state))
        return gate, state

    monkeypatch.setattr(GatedChannelConv, "_states", watched)
    computed(model, sampled, torch.arange(EDGES))
    degree = torch.bincount(whole.graph.edge_index.flatten(), minlength=NODES)
    assert max(sizes) == degree.max() < EDGES  # both ways, a node at a time


def everything_of(batch):
    hops = [t for hop in batch.edges.hops for t in (hop.there, hop.back, hop.weight)]
    return [batch.x, batch.queries.features, *hops]


@pytest.mark.parametrize("kind", ["labels", "times"])
def test_the_labels_of_a_batch_and_what_comes_later_change_nothing(kind):
    _, data = rows_of(kind, fan_outs=(3, 2))
    some = torch.arange(24, 40, 5)  # of one stretch of time
    before = data.sampled(some, some, 7, Numbering(NODES))
    later = data.time >= 5 if kind == "times" else torch.zeros(EDGES).bool()
    later[some] = True
    data.labels[later] = -9.0
    data.__dict__.pop("_labels", None)
    after = data.sampled(some, some, 7, Numbering(NODES))
    assert all(map(torch.equal, everything_of(before), everything_of(after)))


def test_drawn_edges_are_distinct_of_their_node_and_weighted_to_their_number():
    _, data = rows_of("plain")
    nodes, hits, draws = torch.arange(NODES).numpy(), torch.zeros(2 * EDGES), 400
    degree = torch.bincount(data.graph.edge_index.flatten(), minlength=NODES)
    for key in range(draws):
        found = sample_incident(data._lists, data._before(torch.arange(1)), nodes, 3, key)
        for i in range(NODES):
            part = slice(found.start[i], found.start[i + 1])
            drawn = [*zip(found.edge[part], found.leaves[part], strict=True)]
            assert len({*drawn}) == len(drawn) == min(3, int(degree[i]))
            assert all(data._ends[0 if leaves else 1, edge] == i for edge, leaves in drawn)
            for (edge, leaves), weight in zip(drawn, found.weight[part], strict=True):
                hits[edge + EDGES * int(leaves)] += weight
    # The weights of an edge add up to the number of draws; six standard deviations are allowed.
    spread = (degree.max() / 3 * draws) ** 0.5
    assert (hits - draws).abs().max() < 6 * spread


def test_shares_of_a_batch_hide_the_labels_of_all_of_it():
    _, data = rows_of("labels", fan_outs=(2, 2))
    torch.manual_seed(0)
    whole = list(data.training_batches(torch.arange(EDGES)[data.known], 8))
    for rank in range(2):
        torch.manual_seed(0)
        share = Share(rank, 2)
        for (rows, batch), (same, part) in zip(
            whole, data.training_batches(torch.arange(EDGES)[data.known], 8, share), strict=True
        ):
            assert torch.equal(rows, same)
            place = share.of(torch.arange(len(rows)))
            assert_close(part.queries.features, batch.queries.features[place])
