"""The label hangs on direction and kind together, and on nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.synthetic import direction_and_kind_graph

PAPERS = 1500


@pytest.fixture(scope="module")
def graph():
    return direction_and_kind_graph(PAPERS, noise=0.0, seed=1)[0]


def votes(graph, cites: bool | None, kind: int | None) -> np.ndarray:
    """Topics around each paper, counted over the edges that a reader with this sight chooses."""
    source, target = graph.edge_index.numpy()
    topic = graph.x.argmax(1).numpy()
    count = np.zeros((PAPERS, graph.num_features))
    for outgoing in (True, False):
        if cites not in (None, outgoing):
            continue
        paper, other = (source, target) if outgoing else (target, source)
        seen = (paper < PAPERS) & (True if kind is None else graph.edge_attr[:, kind].numpy() > 0)
        np.add.at(count, (paper[seen], topic[other[seen]]), 1)
    return count


def accuracy_of_the_best_guess(count: np.ndarray, y: np.ndarray) -> float:
    """Guess among the most frequent topics; ties are the reader's to break, so blindly."""
    best = count == count.max(axis=1, keepdims=True)
    return float((best[np.arange(PAPERS), y] / best.sum(axis=1)).mean())


@pytest.mark.parametrize(
    ("cites", "kind", "ceiling"),
    [(True, 0, 1.0), (None, 0, 0.5), (True, None, 0.5), (None, None, 0.25)],
)
def test_a_reader_reaches_its_ceiling_and_no_more(graph, cites, kind, ceiling):
    y = graph.y[:PAPERS].numpy()
    assert accuracy_of_the_best_guess(votes(graph, cites, kind), y) == ceiling


def test_without_direction_the_graph_looks_the_same_when_roles_are_exchanged(graph):
    # Turn around the "supports" edges of every paper: its two candidate labels change places,
    # while kinds and neighbours, all that a reader without direction sees, stay.
    supports = graph.edge_attr[:, 0] > 0
    turned = graph.edge_index.clone()
    turned[:, supports] = turned[:, supports].flip(0)

    def undirected(edge_index):
        pairs = edge_index.sort(dim=0).values.T
        return sorted(map(tuple, torch.cat([pairs, graph.edge_attr.long()], 1).tolist()))

    assert undirected(turned) == undirected(graph.edge_index)
    label_there = votes(replace(graph, edge_index=turned), cites=True, kind=0).argmax(1)
    assert not (label_there == graph.y[:PAPERS].numpy()).any()


def test_a_papers_own_features_tell_nothing(graph):
    own = graph.x[:PAPERS].argmax(1)
    share = (own == graph.y[:PAPERS]).double().mean()
    assert abs(share - 1 / 6) < 0.03


def test_background_papers_carry_no_label_and_the_seed_decides_everything(graph):
    assert (graph.y[PAPERS:] == -1).all()
    again = direction_and_kind_graph(PAPERS, noise=0.0, seed=1)[0]
    assert torch.equal(again.edge_index, graph.edge_index)
    assert torch.equal(again.y, graph.y)


def test_settings_that_make_no_graph_are_refused():
    with pytest.raises(EdgewiseError, match="at least 4 topics"):
        direction_and_kind_graph(topics=3)


@pytest.mark.parametrize(
    ("sight", "low", "high"), [("both", 0.95, 1.0), ("direction", 0.4, 0.6), ("kinds", 0.4, 0.6)]
)
def test_a_model_that_learns_reaches_its_ceiling_and_no_more(sight, low, high):
    from sklearn.linear_model import LogisticRegression

    graph, _ = direction_and_kind_graph(PAPERS, seed=2)
    seen = {"both": (True, (0, 1)), "kinds": (None, (0, 1)), "direction": (True, (None,))}
    cites, kinds = seen[sight]
    counts = [votes(graph, way, kind) for way in {cites, None} for kind in kinds]
    features, y = np.concatenate(counts, axis=1), graph.y[:PAPERS].numpy()
    model = LogisticRegression(max_iter=1000).fit(features[:1000], y[:1000])
    assert low <= model.score(features[1000:], y[1000:]) <= high
