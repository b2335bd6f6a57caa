"""A row is a pair of nodes: links are hidden while they are predicted, and ranked fairly."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

import edgewise as ew
from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.data.splits import random_split
from edgewise.graphs.graph import Graph, MultiGraph
from edgewise.graphs.links import find_links
from edgewise.graphs.negatives import NegativeSampler
from edgewise.tasks.link import link_ranks, link_task
from edgewise.training.trainer import make_trainer
from edgewise.units.link_problem import CANDIDATES, link_problem
from edgewise.units.link_scores import scores

NODES = 40


@pytest.fixture(scope="module")
def graph():
    """Nodes point to the next nodes of their half."""
    half = NODES // 2
    pairs = {
        (first + i, first + (i + step) % half)
        for first in (0, half)
        for i in range(half)
        for step in (1, 2, 3)
    }
    edges = torch.tensor(sorted(pairs)).T
    x = torch.zeros(NODES, 2)
    x[:half, 0] = x[half:, 1] = 1
    return Graph(x, edges)


def problem_of(graph, **settings):
    chosen = make_settings("link", **{"hidden": 8, "epochs": 3, **settings})
    links = find_links(graph.edge_index, directed=chosen.model.directed)
    split = random_split(len(links), (0.7, 0.15, 0.15), seed=1)
    return link_problem(graph, links, link_task(), split, chosen)


@pytest.mark.parametrize("directed", [True, False])
def test_pairs_without_an_edge_are_none_and_have_the_source_of_a_link(graph, directed):
    sampler = NegativeSampler(graph.edge_index, NODES, directed=directed)
    torch.manual_seed(0)
    drawn = sampler.draw(graph.edge_index)
    known = {*map(tuple, graph.edge_index.T.tolist())}
    known |= set() if directed else {(b, a) for a, b in known}
    assert not known & {*map(tuple, drawn.T.tolist())}
    assert (drawn[0] != drawn[1]).all()
    turned = (drawn == graph.edge_index.flip(0)).all(dim=0)
    assert ((drawn[0] == graph.edge_index[0]) | turned).all()
    assert turned.float().mean() > 0.1 or not directed


def test_every_ranked_link_is_followed_by_its_candidates(graph):
    problem = problem_of(graph)
    truth, data = problem.truth[:, 0], problem.data
    for part, count in (("train", 1), ("validation", CANDIDATES), ("test", CANDIDATES)):
        rows = problem.split.parts()[part]
        assert truth[rows].reshape(-1, count + 1)[:, 0].eq(1).all()
        assert truth[rows].sum() * (count + 1) == len(rows)
    known = {*map(tuple, graph.edge_index.T.tolist())}
    empty = data.pairs[:, truth == 0].T.tolist()
    assert not known & {*map(tuple, empty)}


def carried(batch):
    return {*map(tuple, batch.edge_index.T.tolist())}


def test_a_link_carries_no_message_while_it_is_predicted(graph):
    problem = problem_of(graph)
    data, parts = problem.data, problem.split.parts()
    held_out = torch.cat([parts["validation"], parts["test"]])
    later = {*map(tuple, data.pairs[:, held_out[data.link_of_row[held_out] >= 0]].T.tolist())}
    seen = set()
    for rows, batch in data.training_batches(parts["train"], 64):
        asked = {*map(tuple, batch.queries.edge_index.T.tolist())}
        assert not carried(batch) & (asked | later)
        assert torch.equal(problem.truth[rows, 0] == 1, data.link_of_row[rows] >= 0)
        seen |= carried(batch)
    assert seen  # or nothing carries anything
    for batch in data.evaluation_batches(torch.arange(len(data))):
        asked = {*map(tuple, data.pairs[:, batch.place].T.tolist())}
        assert not carried(batch) & asked
        assert not carried(batch) & later


def test_parallel_and_undirected_edges_are_one_link():
    edges = torch.tensor([[0, 0, 1, 2], [1, 1, 0, 3]])
    assert find_links(edges, directed=True).pairs.T.tolist() == [[0, 1], [1, 0], [2, 3]]
    assert find_links(edges, directed=False).pairs.T.tolist() == [[0, 1], [2, 3]]
    graph = MultiGraph(torch.eye(4), edges)
    problem = problem_of(graph, directed=False)
    hidden = problem.data.link[1]
    assert problem.data.link.tolist().count(int(hidden)) == 3


def test_ranks_are_those_of_a_sorted_list():
    truth = np.array([1, 0, 0, 0, 1, 0, 1, 0, 0])
    score = np.array([0.5, 0.9, 0.1, 0.5, 0.8, 0.7, 0.1, 0.2, 0.3])
    (ranks,) = link_ranks(score[:, None], truth[:, None])
    assert ranks.tolist() == [2.5, 1.0, 3.0]
    found = link_task().metrics(score[:, None], truth[:, None].astype(np.float32))
    assert found["mrr"] == pytest.approx((1 / 2.5 + 1 + 1 / 3) / 3)
    assert (found["hits_at_1"], found["hits_at_3"]) == (pytest.approx(1 / 3), 1.0)


@pytest.mark.slow
def test_direction_is_told(graph):
    model = ew.LinkPredictor(epochs=40, hidden=16, dropout=0.0).fit(graph)
    forward = graph.edge_index.T.numpy()
    there, back = model.predict_proba(forward), model.predict_proba(forward[:, ::-1])
    assert (there > back).mean() > 0.9
    (best,) = model.recommend([0], top=3)
    assert len(best) == 3
    assert not {*best.tolist()} & {0, 1, 2, 3}
    with pytest.raises(EdgewiseError, match="give pairs of nodes"):
        model.predict([1, 2, 3])


def test_an_edge_is_scored_as_if_it_were_not_there(graph):
    trainer = make_trainer(problem_of(graph))
    model = ew.training.make_predictor(trainer.problem, (trainer.model,))
    pair = graph.edge_index[:, :1]
    without = replace(graph, edge_index=graph.edge_index[:, 1:], edge_attr=graph.channels[1:])
    assert scores(model, graph, pair) == scores(model, without, pair)


@pytest.mark.slow
def test_tables_are_trained_scored_and_recommended(graph, tmp_path):
    edges = [f"n{a},n{b}" for a, b in graph.edge_index.T.tolist()]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    run = ew.train(tmp_path / "edges.csv", tmp_path / "run", predict="links", epochs=2, hidden=8)
    assert {"roc_auc", "mrr", "hits_at_10"} <= set(run.metrics["test"])
    assert runs.evaluate(run.folder)["test"] == run.metrics["test"]
    (tmp_path / "pairs.csv").write_text("source,target\nn0,n1\nn5,n30\n")
    (tmp_path / "ids.csv").write_text("id\nn3\nn4\n")
    out = tmp_path / "out.csv"
    assert runs.predict(run.folder, out=out, pairs=tmp_path / "pairs.csv") == (2, 0)
    with out.open() as stream:
        assert [row["source"] for row in csv.DictReader(stream)] == ["n0", "n5"]
    assert runs.predict(run.folder, out=out, top=4, ids=tmp_path / "ids.csv") == (8, 0)
    (tmp_path / "pairs.csv").write_text("source,target\nn0,nobody\n")
    with pytest.raises(EdgewiseError, match=r"names \[nobody\], which the graph does not have"):
        runs.predict(run.folder, out=out, pairs=tmp_path / "pairs.csv")
    with pytest.raises(EdgewiseError, match="name them with --pairs"):
        runs.predict(run.folder, [str(tmp_path / "edges.csv")], out)
    with pytest.raises(EdgewiseError, match="--for names nodes whose likeliest links --top 10"):
        runs.predict(run.folder, out=out, ids=tmp_path / "ids.csv")
    with pytest.raises(EdgewiseError, match="leave out --pairs, or --top and --for"):
        runs.predict(run.folder, out=out, pairs=tmp_path / "pairs.csv", top=2)
