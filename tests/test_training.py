"""The trainer learns what can be learnt, stops when it should, and repeats itself."""

import pytest
import torch
from torch.testing import assert_close

from edgewise.data.splits import given_split, random_split
from edgewise.data.synthetic import direction_and_kind_graph
from edgewise.errors import EdgewiseError
from edgewise.graph import Graph
from edgewise.models import VARIANTS, Architecture
from edgewise.training import NodeTrainer, Recipe, balanced_weights, fit_nodes


@pytest.fixture(scope="module")
def labelled_graph():
    graph, ceilings = direction_and_kind_graph(300, seed=1)
    return graph, random_split((graph.y >= 0).nonzero()[:, 0], "dense", seed=0), ceilings


def test_the_weights_are_those_of_the_paper():
    weights = balanced_weights(torch.tensor([0, 0, 0, 1]), 2)
    assert_close(weights, torch.tensor([4 / (2 * 3), 4 / (2 * 1)]))


def test_a_class_without_examples_weighs_nothing():
    assert balanced_weights(torch.tensor([0, 0]), 2).tolist() == [0.5, 0.0]


def test_seeing_direction_beats_the_ceiling_of_not_seeing_it(labelled_graph):
    graph, split, ceilings = labelled_graph
    recipe = Recipe(epochs=200, patience=200, learning_rate=0.02)
    architecture = Architecture(normalize="row", hidden=16, dropout=0.2)
    fit = fit_nodes(graph, split, architecture, recipe)
    assert fit.accuracy(graph.y, split.test) > ceilings.without_direction + 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_seed_gives_the_same_scores(labelled_graph, weighted):
    graph, split, _ = labelled_graph
    recipe = Recipe(epochs=5, weighted=weighted, seed=3)
    first, second = (fit_nodes(graph, split, VARIANTS["EGNN(A)"], recipe) for _ in range(2))
    assert torch.equal(first.scores, second.scores)


def test_an_epoch_draws_by_its_number_alone(labelled_graph):
    graph, split, _ = labelled_graph
    one, other = (NodeTrainer(graph, split, VARIANTS["EGNN(C)"], Recipe()) for _ in range(2))
    torch.rand(7)  # whatever else the process draws
    assert one.train_epoch(1) == other.train_epoch(1)


def test_training_stops_when_the_validation_loss_has_not_fallen_for_long(labelled_graph):
    graph, split, _ = labelled_graph
    seen = []
    recipe = Recipe(epochs=400, patience=10, learning_rate=0.1)
    fit = fit_nodes(
        graph, split, VARIANTS["GCN"], recipe, lambda epoch, _, loss: seen.append((loss, epoch))
    )
    assert fit.epochs < 400
    assert fit.epochs == fit.best_epoch + 10
    assert min(seen)[1] == fit.best_epoch


def test_the_best_weights_are_given_back(labelled_graph):
    graph, split, _ = labelled_graph
    losses = []
    recipe = Recipe(epochs=30, patience=30, learning_rate=0.1)
    fit = fit_nodes(graph, split, VARIANTS["GCN"], recipe, lambda *step: losses.append(step[2]))
    rows = split.validation
    again = torch.nn.functional.cross_entropy(fit.scores[rows], graph.y[rows])
    assert float(again) == pytest.approx(min(losses), rel=1e-6)


def test_a_graph_without_classes_is_refused():
    graph = Graph(torch.eye(3), torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(EdgewiseError, match="needs class numbers in y"):
        NodeTrainer(graph, given_split([0], [1], [2]), VARIANTS["GCN"], Recipe())
