"""The trainer learns what can be learnt, stops when it should, and repeats itself."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.testing import assert_close

from edgewise.core.errors import EdgewiseError
from edgewise.core.recipe import Recipe, make_recipe
from edgewise.core.seeds import seed_of
from edgewise.data.chemistry import read_smiles
from edgewise.data.splits import given_split, random_split
from edgewise.data.synthetic import direction_and_kind_graph
from edgewise.fitted import fitted
from edgewise.graphs.graph import Graph
from edgewise.metrics import score
from edgewise.problems import molecule_problem, node_problem
from edgewise.tasks import Task, balanced_weights
from edgewise.training import (
    Fitting,
    MoleculeTrainer,
    build_model,
    fit_member,
    graph_inputs,
    make_trainer,
)

SMILES = (
    *("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N", "CBr"),
    *("COC", "CC=O", "CCS", "Cc1ccccc1", "Oc1ccccc1", "NC(=O)C", "C=C", "C#C", "FC(F)F", "CO"),
)
OVERFIT = {"dropout": 0.0, "weight_decay": 0.0, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def nodes():
    graph, ceilings = direction_and_kind_graph(300, seed=1)
    split = random_split((graph.y >= 0).nonzero()[:, 0], "dense", seed=0)
    classes = tuple(map(str, range(int(graph.y.max()) + 1)))
    task = Task("classification", ("kind",), classes)
    return node_problem(graph, task, split, Recipe()), ceilings


def molecules(task, truth, **settings):
    recipe = make_recipe("molecules", hidden=8, epochs=250, patience=250, **settings)
    rows = torch.arange(len(SMILES))
    return molecule_problem(
        read_smiles(SMILES), task, truth, given_split(rows, rows[:0], rows[:0]), recipe
    ), recipe


def metrics(problem, recipe):
    model = fit_member(problem, recipe).trainer.model
    predicted = fitted(problem, recipe, (model,)).predict_problem(problem).mean
    rows = problem.split.train
    return score(problem.task, predicted[rows], problem.truth[rows].numpy())


def test_the_weights_are_those_of_the_paper():
    weights = balanced_weights(torch.tensor([0, 0, 0, 1]), 2)
    assert_close(weights, torch.tensor([4 / (2 * 3), 4 / (2 * 1)]))


def test_a_class_without_examples_weighs_nothing():
    assert balanced_weights(torch.tensor([0, 0]), 2).tolist() == [0.5, 0.0]


def test_yes_or_no_labels_are_weighed_each_by_its_own_balance():
    truth = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, math.nan], [0.0, 1.0]])
    weights = Task("multilabel", ("a", "b")).balance(truth)
    assert_close(weights, torch.tensor([[4 / 6, 4 / 2], [3 / 4, 3 / 2]]))


def test_seeing_direction_beats_the_ceiling_of_not_seeing_it(nodes):
    problem, ceilings = nodes
    recipe = Recipe(
        normalize="row", hidden=16, dropout=0.2, epochs=200, patience=200, learning_rate=0.02
    )
    model = fit_member(problem, recipe).trainer.model
    predicted = fitted(problem, recipe, (model,)).predict_problem(problem).mean
    test = problem.split.test
    accuracy = score(problem.task, predicted[test], problem.truth[test].numpy())["accuracy"]
    assert accuracy > ceilings.without_direction + 0.1


@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_a_node_classifier_can_overfit(nodes, layer):
    problem, _ = nodes
    recipe = Recipe(layer=layer, hidden=16, epochs=150, patience=150, **OVERFIT)
    rows = problem.split.train[:40]
    small = node_problem(problem.graph, problem.task, given_split(rows, rows[:0], rows[:0]), recipe)
    assert metrics(small, recipe)["accuracy"] > 0.95


def test_a_node_regression_can_overfit():
    x = torch.eye(12)
    edge_index = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    y = 15 * torch.randn(12) + 10
    y[3] = math.nan
    graph = Graph(x, edge_index, y=y)
    recipe = Recipe(normalize="row", hidden=32, epochs=600, patience=600, **OVERFIT)
    rows = torch.arange(12)
    problem = node_problem(
        graph, Task("regression", ("y",)), given_split(rows, rows[:0], rows[:0]), recipe
    )
    assert len(problem.split.train) == 11
    assert metrics(problem, recipe)["rmse"] < 2


@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_a_regression_of_several_targets_with_gaps_can_overfit(layer):
    truth = torch.stack([torch.linspace(-3, 5, 20), torch.linspace(900, 1000, 20).flip(0)], dim=1)
    truth[::3, 0] = math.nan
    problem, recipe = molecules(Task("regression", ("a", "b")), truth, layer=layer, **OVERFIT)
    found = metrics(problem, recipe)["per_target"]
    assert found["a"]["rmse"] < 0.5
    assert found["b"]["rmse"] < 6


def test_yes_or_no_labels_with_gaps_can_be_overfitted():
    truth = torch.tensor([[float("O" in s), float("c" in s)] for s in SMILES])
    truth[::4, 1] = math.nan
    problem, recipe = molecules(Task("multilabel", ("oxygen", "ring")), truth, **OVERFIT)
    assert metrics(problem, recipe)["accuracy"] == 1


def test_a_classification_of_molecules_can_overfit():
    truth = torch.tensor([0 if "c" in s else 1 if "O" in s else 2 for s in SMILES])
    problem, recipe = molecules(Task("classification", ("x",), ("a", "b", "c")), truth, **OVERFIT)
    assert metrics(problem, recipe)["accuracy"] == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_seed_gives_the_same_weights(nodes, weighted):
    problem, _ = nodes
    recipe = Recipe(layer="attention", epochs=5, weighted=weighted, seed=3)
    first, second = (fit_member(problem, recipe).trainer.outputs() for _ in range(2))
    assert torch.equal(first, second)


def test_members_of_an_ensemble_differ(nodes):
    problem, _ = nodes
    first, second = (fit_member(problem, Recipe(epochs=2), member) for member in (0, 1))
    assert not torch.equal(first.trainer.outputs(), second.trainer.outputs())


def test_training_leaves_the_random_numbers_of_others_alone(nodes):
    problem, _ = nodes
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit_member(problem, Recipe(epochs=2))
    assert torch.equal(torch.rand(3), expected)


def test_models_trained_in_threads_draw_as_if_alone(nodes):
    problem, _ = nodes
    alone = [fit_member(problem, Recipe(epochs=3, seed=s)).trainer.outputs() for s in range(4)]
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(fit_member, problem, Recipe(epochs=3, seed=s)) for s in range(4)]
    for one, fit in zip(alone, fits, strict=True):
        assert torch.equal(one, fit.result().trainer.outputs())


def test_a_loss_over_classes_that_training_does_not_have_is_0():
    task = Task("classification", ("x",), ("a", "b", "c"))
    weight = task.balance(torch.tensor([0, 0, 1]))
    outputs = torch.zeros(2, 3)
    assert float(task.loss(outputs, torch.tensor([2, 2]), weight)) == 0
    assert float(task.loss(outputs, torch.tensor([-1, -1]))) == 0


def test_no_two_epochs_share_a_seed():
    seeds = [seed_of(s, m, e) for s in range(6) for m in range(6) for e in range(60)]
    assert len(set(seeds)) == len(seeds)
    assert 0 <= min(seeds) <= max(seeds) < 2**63


def test_an_epoch_draws_by_its_number_alone(nodes):
    problem, _ = nodes
    one, other = (make_trainer(problem, Recipe()) for _ in range(2))
    torch.rand(7)  # whatever else the process draws
    assert one.train_epoch(1) == other.train_epoch(1)


def test_training_stops_when_the_validation_loss_has_not_fallen_for_long(nodes):
    problem, _ = nodes
    fitting = fit_member(problem, Recipe(epochs=400, patience=10, learning_rate=0.1))
    best = min(fitting.history, key=lambda epoch: epoch.validation_loss)
    assert len(fitting.history) < 400
    assert len(fitting.history) == best.number + 10


def test_the_best_weights_are_given_back(nodes):
    problem, _ = nodes
    fitting = fit_member(problem, Recipe(epochs=30, patience=30, learning_rate=0.1))
    rows = problem.split.validation
    again = problem.task.loss(fitting.trainer.outputs()[rows], problem.truth[rows])
    assert float(again) == min(epoch.validation_loss for epoch in fitting.history)


def test_without_validation_rows_the_last_weights_count(nodes):
    problem, _ = nodes
    rows = problem.split.train
    recipe = Recipe(epochs=3, patience=1)
    whole = node_problem(problem.graph, problem.task, given_split(rows, rows[:0], rows[:0]), recipe)
    fitting = fit_member(whole, recipe)
    assert [epoch.number for epoch in fitting.history] == [1, 2, 3]
    assert math.isnan(fitting.history[0].validation_loss)


@pytest.mark.parametrize("kind", ["nodes", "molecules"])
def test_what_is_restored_goes_on_bit_for_bit(nodes, kind):
    problem, recipe = nodes[0], Recipe(layer="attention", hidden=4, epochs=8)
    if kind == "molecules":
        truth = torch.arange(20.0).reshape(-1, 1)
        problem, _ = molecules(Task("regression", ("a",)), truth)
        recipe = make_recipe("molecules", hidden=4, epochs=8, batch_size=7, dropout=0.3)
    whole = fit_member(problem, recipe)
    first = Fitting(make_trainer(problem, recipe))
    for _ in range(3):
        first.step()
    second = Fitting(make_trainer(problem, recipe))
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    while not second.done:
        second.step()
    second.restore_best()
    assert repr(second.history) == repr(whole.history)
    assert torch.equal(second.trainer.outputs(), whole.trainer.outputs())


@pytest.mark.parametrize("normalize", ["doubly_stochastic", "symmetric", "row"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_sets_too_large_to_keep_their_operator_train_alike(layer, dropout, normalize, monkeypatch):
    truth = torch.arange(20.0).reshape(-1, 1)
    problem, _ = molecules(Task("regression", ("a",)), truth)
    shape = {"layer": layer, "normalize": normalize, "dropout": dropout, "hidden": 4}
    recipe = make_recipe("molecules", **shape, epochs=8, batch_size=7)
    kept = fit_member(problem, recipe).trainer
    monkeypatch.setattr("edgewise.training.inputs.MOST_ROWS", 0)
    built = fit_member(problem, recipe).trainer
    assert isinstance(kept, MoleculeTrainer)
    assert isinstance(built, MoleculeTrainer)
    assert kept.operator
    assert not built.operator
    assert_close(kept.outputs(), built.outputs())


def undirected_edges(edge_index, edge_attr=None):
    graph = Graph(torch.eye(4), edge_index, edge_attr)
    recipe = Recipe(normalize="row", directed=False)
    _, operators = graph_inputs(graph, recipe, build_model("nodes", 4, 2, 1, recipe))
    return operators[0].to_dense()[..., 0]


def test_without_direction_an_edge_weighs_the_same_written_once_or_both_ways():
    once, values = torch.tensor([[0, 1, 3], [1, 2, 0]]), torch.tensor([[1.0], [0.5], [0.2]])
    twice = torch.cat([once, once.flip(0)], dim=1)
    assert_close(undirected_edges(twice, values.repeat(2, 1)), undirected_edges(once, values))


def test_without_direction_a_pair_that_is_joined_both_ways_among_others_weighs_the_sum():
    edges = undirected_edges(torch.tensor([[0, 3, 2], [3, 0, 3]]))
    assert edges[3].tolist() == [0.5, 0.0, 0.25, 0.25]  # two ways, none, one way, the self-loop


def test_losses_that_leave_the_numbers_end_with_a_sentence(nodes):
    problem, _ = nodes
    with pytest.raises(EdgewiseError, match=r"went astray in epoch \d+.*learning_rate"):
        fit_member(problem, Recipe(learning_rate=1e30, epochs=20))


def test_a_regression_cannot_be_weighed():
    task = Task("regression", ("a",))
    problem, recipe = molecules(task, torch.arange(20.0).reshape(-1, 1), weighted=True)
    with pytest.raises(EdgewiseError, match="no classes to weigh"):
        make_trainer(problem, recipe)


def test_a_graph_without_labels_is_refused():
    graph = Graph(torch.eye(3), torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(EdgewiseError, match="no labels"):
        node_problem(
            graph, Task("classification", ("y",), ("a",)), given_split([0], [1], [2]), Recipe()
        )


def test_a_split_without_a_known_training_row_is_refused():
    graph = Graph(torch.eye(3), torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([-1, 0, 1]))
    task = Task("classification", ("y",), ("a", "b"))
    with pytest.raises(EdgewiseError, match="no row with a known target is left for training"):
        node_problem(graph, task, given_split([0], [1], [2]), Recipe())
