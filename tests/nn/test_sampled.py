"""Sampled products are unbiased; with all neighbours, and in blocks, networks are those of the
whole graph.
"""

import pytest
import torch
import truth
from sampled_toys import copies, hub_graph
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import LAYERS
from edgewise.graphs import blocks
from edgewise.graphs.array_graph import ArrayGraph
from edgewise.graphs.sampled_graph import SampledGraph
from edgewise.graphs.whole_graph import WholeGraph
from edgewise.kernels.backend import plain_kernels
from edgewise.kernels.sampling import Numbering
from edgewise.nn.sampled import sampled_hop

DEEP = {
    **{"encoder": "linear", "incident": True, "residual": True, "norm": "batch"},
    **{"activation": "relu", "head": "linear", "feed_forward": 2},
}
NETWORKS = [
    *({"normalize": name} for name in ("row", "symmetric", "gcn", "doubly_stochastic")),
    {"normalize": "row", "depth": 3, "root_weight": True, **DEEP},
    {"normalize": "doubly_stochastic", "depth": 1, "head": "mlp", "root_weight": True},
    {"normalize": "symmetric", "directed": False, "reciprocal": "sum"},
    {"normalize": "doubly_stochastic", "directed": False, "reciprocal": "max"},
    {"layer": "attention", "normalize": "row", "depth": 3},
    {"layer": "attention", "normalize": "row", "adapt": False, "heads": 2, **DEEP},
    {"layer": "gated", "normalize": "none", "channels": 3, "depth": 3},
    {"layer": "gated", "normalize": "row", "depth": 3, **DEEP},
]
EVERY_NETWORK = pytest.mark.parametrize(
    "chosen", NETWORKS, ids=lambda s: "-".join(str(v) for v in s.values())[:40]
)


def network(chosen):
    settings = ew.ModelSettings(**{"hidden": 6, "dropout": 0.0, **chosen})
    model = ew.ChannelNetwork(3, 2, 2, settings).double().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model


def sampled_graph(model, fan_out, graph=None):
    hops = LAYERS[model.settings.layer].hops(model.settings) * model.settings.depth
    return SampledGraph(ArrayGraph.of(graph or hub_graph()), (fan_out,) * hops)


@EVERY_NETWORK
def test_with_all_neighbours_a_batch_gives_what_the_whole_graph_gives(chosen):
    graph, model = hub_graph(), network(chosen)
    for rows, batch in sampled_graph(model, -1).training_batches(torch.arange(30), 8):
        whole = model(WholeGraph(graph).batch(rows))
        assert_close(model(batch), whole, rtol=0, atol=1e-10)
        parameters = [p for p in model.parameters() if p.requires_grad]
        both = (torch.autograd.grad(out.square().sum(), parameters, allow_unused=True)
                for out in (model(batch), whole))  # fmt: skip
        for ours, true in zip(*both, strict=True):
            assert (ours is None) == (true is None)
            assert ours is None or torch.allclose(ours, true, rtol=0, atol=1e-10)


@EVERY_NETWORK
def test_in_blocks_the_outputs_are_those_of_the_whole_graph(chosen, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ROWS", 7)
    monkeypatch.setattr(blocks, "MOST_PAIRS", 40)
    graph, model = hub_graph(), network(chosen)
    rows = torch.randperm(30)[:11]
    (batch,) = sampled_graph(model, 1).evaluation_batches(rows)
    with torch.no_grad():
        for compute in (model, model.represent):
            whole = compute(WholeGraph(graph).batch(rows))
            assert_close(compute(batch), whole, rtol=0, atol=1e-10)


def test_states_that_do_not_fit_into_memory_are_kept_in_a_file(monkeypatch):
    model, rows = network({"normalize": "row"}), torch.arange(30)
    (batch,) = sampled_graph(model, 1).evaluation_batches(rows)
    with torch.no_grad():
        expected = model(batch)
        monkeypatch.setenv("EDGEWISE_MEMORY_GB", "1e-9")
        assert torch.equal(model(batch), expected)


def dense_operator(graph, normalize, direction):
    raw = truth.dense(graph.edge_index, graph.channels, graph.num_nodes)
    raw = truth.directed(raw) if direction == "directed" else raw + raw.transpose(0, 1)
    return truth.NORMALIZATIONS[normalize](truth.add_loops(raw).transpose(0, 1))


@pytest.mark.parametrize("normalize", truth.NORMALIZATIONS)
@pytest.mark.parametrize("direction", ["directed", "sum", "max"])
def test_compiled_hops_are_those_of_plain_torch(normalize, direction):
    hops = LAYERS["conv"].hops(ew.ModelSettings(normalize=normalize))
    data = SampledGraph(ArrayGraph.of(hub_graph()), (3,) * hops)
    batch = data._sampled(torch.tensor([3, 7, 5, 9]).numpy(), 1, Numbering(30))
    edges = batch.edges.encoded(direction).of_layer(0, 1)
    for number in range(hops):
        fast = sampled_hop(edges, normalize, number, torch.float64)
        with plain_kernels():
            slow = sampled_hop(edges, normalize, number, torch.float64)
        assert fast.rows == slow.rows
        assert_close(fast.to_dense(), slow.to_dense())


def drawn(data, seeds, count):
    """A batch of the seeds in all copies of a graph of 30 nodes."""
    every = (30 * torch.arange(count).unsqueeze(1) + seeds).flatten()
    return data._sampled(every.numpy(), 5, Numbering(len(data)))


def check_unbiased(found, exact):
    """Draws of a result, and what its mean should be."""
    error = found.std(0) / len(found) ** 0.5
    assert ((found.mean(0) - exact).abs() <= 4.5 * error + 1e-10).all()
    assert (error > 1e-4).any()  # something was drawn


@pytest.mark.parametrize("direction", ["directed", "sum"])
@pytest.mark.parametrize("normalize", truth.NORMALIZATIONS)
def test_the_mean_over_draws_of_a_sampled_product_is_the_product_of_the_whole_graph(
    normalize, direction
):
    graph, count, seeds = hub_graph(), 4000, torch.tensor([3, 7, 5, 9, 0, 21])
    width = 6 if direction == "directed" else 2
    layer = ew.ChannelConv(3, 2, edge_channels=width, normalize=normalize).double()
    hops = LAYERS["conv"].hops(ew.ModelSettings(normalize=normalize))
    batch = drawn(SampledGraph(ArrayGraph.of(copies(graph, count)), (3,) * hops), seeds, count)
    operator = batch.edges.encoded(direction).of_layer(0, 1).prepared(layer)
    found = (operator @ batch.x).unflatten(0, (count, len(seeds)))
    exact = torch.einsum("ijp,jf->ipf", dense_operator(graph, normalize, direction), graph.x)
    check_unbiased(found, exact[seeds])


def test_the_mean_over_draws_of_gated_messages_is_their_sum_over_the_whole_graph():
    graph, count, seeds = hub_graph(), 2000, torch.tensor([3, 7, 5, 9, 0])
    model = network({"layer": "gated", "normalize": "none", "depth": 1, "head": "linear"})
    model.readout.activation = ""  # what follows the sum is not linear
    data = sampled_graph(model, 3, copies(graph, count))
    with torch.no_grad():
        found = model.represent(drawn(data, seeds, count)).unflatten(0, (count, len(seeds)))
        check_unbiased(found, model.represent(WholeGraph(graph).batch(seeds)))


def test_layers_that_divide_by_unknown_sums_are_refused():
    for layer, normalize in [
        ("attention", "doubly_stochastic"),
        ("attention", "symmetric"),
        ("gated", "symmetric"),
        ("gated", "doubly_stochastic"),
    ]:
        with pytest.raises(EdgewiseError, match=r"not sampled; set normalize = row"):
            LAYERS[layer].hops(ew.ModelSettings(layer=layer, normalize=normalize))
