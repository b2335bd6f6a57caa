"""Several processes divide each training batch: their parts make up the whole one."""

import pytest
import torch

import edgewise as ew
from edgewise.core.presets import make_settings
from edgewise.data.splits import random_split
from edgewise.graphs.edge_rows import EdgeRows
from edgewise.graphs.graph_set import graph_set
from edgewise.graphs.links import find_links
from edgewise.graphs.share import Share
from edgewise.graphs.whole_graph import WholeGraph
from edgewise.tasks.link import link_task
from edgewise.units.link_problem import link_problem

NODES = 12


def a_graph(seed=0):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.rand(NODES, NODES, generator=generator) < 0.4
    edge_index = pairs.fill_diagonal_(False).nonzero().T.contiguous()
    attr = torch.rand(edge_index.size(1), 2, generator=generator)
    return ew.Graph(torch.rand(NODES, 3, generator=generator), edge_index, edge_attr=attr)


def of_links():
    graph, settings = a_graph(), make_settings("link")
    links = find_links(graph.edge_index, directed=settings.model.directed)
    split = random_split(len(links), (0.7, 0.15, 0.15), seed=1)
    return link_problem(graph, links, link_task(), split, settings).data


MADE = {
    "graphs": lambda: graph_set([a_graph(seed) for seed in range(11)]),
    "nodes": lambda: WholeGraph(a_graph()),
    "edges": lambda: EdgeRows(a_graph()),
    "edges with labels": lambda: EdgeRows(
        a_graph(), labels=(label := torch.rand(a_graph().num_edges, 1)), known=label[:, 0] > 0.3
    ),
    "links": of_links,
}


def asked(batch):
    """What a batch is to predict, a row each."""
    if batch.queries is not None:
        return torch.cat([batch.queries.edge_index.T.float(), batch.queries.features], dim=1)
    return batch.x.reshape(batch.num_graphs, -1) if batch.rows is None else batch.rows


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("workers", [2, 3])
def test_the_shares_of_a_batch_make_up_the_batch(name, workers):
    data = MADE[name]()
    rows = data.trained.nonzero()[:, 0] if name == "links" else torch.arange(len(data))

    def batches(*share):
        torch.manual_seed(0)
        return list(data.training_batches(rows, 4, *share))

    shares = [batches(Share(rank, workers)) for rank in range(workers)]
    for (whole, batch), *parts in zip(batches(), *shares, strict=True):
        order = parts[0][0]
        assert all(torch.equal(order, same) for same, _ in parts)
        assert torch.equal(order.sort().values, whole.sort().values)
        wanted = asked(batch)
        if name == "graphs":  # in another order, in which all shares cost the same
            wanted = wanted[(whole == order[:, None]).nonzero()[:, 1]]
        else:
            assert torch.equal(order, whole)
        if len(whole) < workers:  # each computes all of it
            assert all(torch.equal(asked(part), wanted) for _, part in parts)
        else:
            assert torch.equal(torch.cat([asked(part) for _, part in parts]), wanted)


@pytest.mark.parametrize(("rows", "workers"), [(64, 2), (63, 2), (50, 4), (3, 2), (1, 2)])
def test_balanced_shares_cost_the_same_up_to_one_row(rows, workers):
    cost = torch.rand(rows, generator=torch.Generator().manual_seed(rows))
    whole = torch.arange(rows)
    order = Share(workers=workers).balanced(whole, cost)
    assert torch.equal(order.sort().values, whole)
    of_each = torch.stack([cost[part].sum() for part in order.tensor_split(workers)])
    assert of_each.max() - of_each.min() <= cost.max()


def test_a_process_alone_keeps_the_order_of_its_rows():
    assert Share().balanced(torch.arange(3), torch.tensor([1, 2, 3])).tolist() == [0, 1, 2]
