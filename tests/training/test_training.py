"""The trainer learns what can be learnt, stops when it should, and repeats itself."""

import ctypes
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from commands import python
from torch.testing import assert_close

from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.core.seeds import seed_of
from edgewise.data.chemistry import read_smiles
from edgewise.data.graph_files import save_graph
from edgewise.data.sources import find_source
from edgewise.data.splits import given_split, random_split
from edgewise.data.synthetic import direction_and_kind_graph
from edgewise.graphs.graph import Graph
from edgewise.tasks.base import balanced_weights
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.regression import Regression
from edgewise.training import Fitting, fit_member, make_predictor, make_trainer
from edgewise.units.graph import molecule_problem
from edgewise.units.node import NODE, node_problem

SMILES = (
    *("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N", "CBr"),
    *("COC", "CC=O", "CCS", "Cc1ccccc1", "Oc1ccccc1", "NC(=O)C", "C=C", "C#C", "FC(F)F", "CO"),
)
OVERFIT = {"dropout": 0.0, "weight_decay": 0.0, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def nodes():
    graph, ceilings = direction_and_kind_graph(300, seed=1)
    split = random_split((graph.y >= 0).nonzero()[:, 0], "dense", seed=0)
    return graph, split, ceilings


def of_nodes(nodes, **settings):
    graph, split, _ = nodes
    task = Classification(("kind",), tuple(map(str, range(int(graph.y.max()) + 1))))
    return node_problem(graph, task, graph.y, split, make_settings("node", **settings))[0]


def molecules(task, truth, **settings):
    usual = {"hidden": 8, "epochs": 250, "patience": 250}
    settings = make_settings("graph", directed=False, **{**usual, **settings})
    rows = torch.arange(len(SMILES))
    split = given_split(rows, rows[:0], rows[:0])
    return molecule_problem(read_smiles(SMILES), task, truth, split, settings)


def metrics(problem, rows=None):
    model = fit_member(problem).trainer.model
    predicted = make_predictor(problem, (model,)).predict(problem.data).mean
    rows = problem.split.train if rows is None else rows
    return problem.task.metrics(predicted[rows], problem.truth[rows].numpy())


def test_the_weights_are_those_of_the_paper():
    weights = balanced_weights(torch.tensor([0, 0, 0, 1]), 2)
    assert_close(weights, torch.tensor([4 / (2 * 3), 4 / (2 * 1)]))


def test_a_class_without_examples_weighs_nothing():
    assert balanced_weights(torch.tensor([0, 0]), 2).tolist() == [0.5, 0.0]


def test_binary_labels_are_weighted_each_by_its_own_balance():
    truth = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, math.nan], [0.0, 1.0]])
    weights = Multilabel(("a", "b")).balance(truth)
    assert_close(weights, torch.tensor([[4 / 6, 4 / 2], [3 / 4, 3 / 2]]))


@pytest.mark.slow
def test_seeing_direction_beats_the_ceiling_of_not_seeing_it(nodes):
    shape = {"normalize": "row", "hidden": 16, "dropout": 0.2}
    problem = of_nodes(nodes, **shape, epochs=200, patience=200, learning_rate=0.02)
    accuracy = metrics(problem, problem.split.test)["accuracy"]
    assert accuracy > nodes[2].without_direction + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_a_node_classifier_can_overfit(nodes, layer):
    graph, split, ceilings = nodes
    rows = split.train[:40]
    few = graph, given_split(rows, rows[:0], rows[:0]), ceilings
    problem = of_nodes(few, layer=layer, hidden=16, epochs=150, patience=150, **OVERFIT)
    assert metrics(problem)["accuracy"] > 0.95


@pytest.mark.slow
def test_a_node_regression_can_overfit():
    x = torch.eye(12)
    edge_index = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    y = 15 * torch.randn(12) + 10
    y[3] = math.nan
    shape = {"normalize": "row", "hidden": 32, "epochs": 600, "patience": 600}
    rows, truth = torch.arange(12), y.reshape(-1, 1)
    split, settings = (
        given_split(rows, rows[:0], rows[:0]),
        make_settings("node", **shape, **OVERFIT),
    )
    problem, _ = node_problem(Graph(x, edge_index), Regression(("y",)), truth, split, settings)
    assert len(problem.split.train) == 11
    assert metrics(problem)["rmse"] < 2


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["conv", "attention", "gated"])
def test_a_regression_of_several_targets_with_gaps_can_overfit(layer):
    truth = torch.stack([torch.linspace(-3, 5, 20), torch.linspace(900, 1000, 20).flip(0)], dim=1)
    truth[::3, 0] = math.nan
    problem = molecules(Regression(("a", "b")), truth, layer=layer, **OVERFIT)
    found = metrics(problem)["per_target"]
    assert found["a"]["rmse"] < 0.5
    assert found["b"]["rmse"] < 6


@pytest.mark.slow
def test_binary_labels_with_gaps_can_be_overfitted():
    truth = torch.tensor([[float("O" in s), float("c" in s)] for s in SMILES])
    truth[::4, 1] = math.nan
    problem = molecules(Multilabel(("oxygen", "ring")), truth, **OVERFIT)
    assert metrics(problem)["accuracy"] == 1


@pytest.mark.slow
def test_a_classification_of_molecules_can_overfit():
    truth = torch.tensor([0 if "c" in s else 1 if "O" in s else 2 for s in SMILES])
    problem = molecules(Classification(("x",), ("a", "b", "c")), truth, **OVERFIT)
    assert metrics(problem)["accuracy"] == 1


@pytest.mark.parametrize(("norm", "batches"), [("batch", [9, 9]), ("none", [9, 9, 2])])
def test_batch_norm_does_not_learn_from_a_last_batch_of_few_rows(norm, batches, monkeypatch):
    truth = torch.arange(20.0)[:, None]
    trainer = make_trainer(molecules(Regression(("a",)), truth, norm=norm, batch_size=9))
    seen = []
    step = trainer._step
    monkeypatch.setattr(trainer, "_step", lambda out, y: (seen.append(len(y)), step(out, y))[1])
    assert trainer.train_epoch(1) > 0
    assert seen == batches
    trainer = make_trainer(molecules(Regression(("a",)), truth, norm=norm, batch_size=999))
    assert trainer.train_epoch(1) > 0  # the only batch counts, however small


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_seed_gives_the_same_weights(nodes, weighted):
    problem = of_nodes(nodes, layer="attention", epochs=5, weighted=weighted, seed=3)
    first, second = (fit_member(problem).trainer.outputs() for _ in range(2))
    assert torch.equal(first, second)


def test_members_of_an_ensemble_differ(nodes):
    problem = of_nodes(nodes, epochs=2)
    first, second = (fit_member(problem, member) for member in (0, 1))
    assert not torch.equal(first.trainer.outputs(), second.trainer.outputs())


def test_training_leaves_the_random_numbers_of_others_alone(nodes):
    problem = of_nodes(nodes, epochs=2)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit_member(problem)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.slow
def test_models_trained_in_threads_draw_as_if_alone(nodes):
    problems = [of_nodes(nodes, epochs=3, seed=seed) for seed in range(4)]
    # Both in threads: OMP_NUM_THREADS may give those other sums than the main one.
    with ThreadPoolExecutor(1) as pool:
        alone = [pool.submit(fit_member, problem) for problem in problems]
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(fit_member, problem) for problem in problems]
    for one, fit in zip(alone, fits, strict=True):
        assert torch.equal(one.result().trainer.outputs(), fit.result().trainer.outputs())


def test_a_loss_over_classes_that_training_does_not_have_is_0():
    task = Classification(("x",), ("a", "b", "c"))
    weight = task.balance(torch.tensor([0, 0, 1]))
    outputs = torch.zeros(2, 3)
    assert float(task.loss(outputs, torch.tensor([2, 2]), weight)) == 0
    assert float(task.loss(outputs, torch.tensor([-1, -1]))) == 0


def test_no_two_epochs_share_a_seed():
    seeds = [seed_of(s, m, e) for s in range(6) for m in range(6) for e in range(60)]
    assert len(set(seeds)) == len(seeds)
    assert 0 <= min(seeds) <= max(seeds) < 2**63


def test_an_epoch_draws_by_its_number_alone(nodes):
    problem = of_nodes(nodes)
    one, other = (make_trainer(problem) for _ in range(2))
    torch.rand(7)  # whatever else the process draws
    assert one.train_epoch(1) == other.train_epoch(1)


@pytest.mark.slow
def test_training_stops_when_the_validation_loss_has_not_fallen_for_long(nodes):
    fitting = fit_member(of_nodes(nodes, epochs=400, patience=10, learning_rate=0.1))
    best = min(fitting.history, key=lambda epoch: epoch.validation_loss)
    assert len(fitting.history) < 400
    assert len(fitting.history) == best.number + 10


@pytest.mark.slow
def test_the_best_weights_are_given_back(nodes):
    problem = of_nodes(nodes, epochs=30, patience=30, learning_rate=0.1)
    fitting = fit_member(problem)
    rows = problem.split.validation
    again = problem.task.loss(fitting.trainer.outputs()[rows], problem.truth[rows])
    assert float(again) == min(epoch.validation_loss for epoch in fitting.history)


def test_without_validation_rows_the_last_weights_count(nodes):
    graph, split, ceilings = nodes
    rows = split.train
    whole = graph, given_split(rows, rows[:0], rows[:0]), ceilings
    fitting = fit_member(of_nodes(whole, epochs=3, patience=1))
    assert [epoch.number for epoch in fitting.history] == [1, 2, 3]
    assert math.isnan(fitting.history[0].validation_loss)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["node", "graph"])
def test_what_is_restored_goes_on_bit_for_bit(nodes, unit):
    if unit == "graph":
        truth = torch.arange(20.0).reshape(-1, 1)
        shape = {"hidden": 4, "epochs": 8, "batch_size": 7, "dropout": 0.3}
        problem = molecules(Regression(("a",)), truth, **shape)
    else:
        problem = of_nodes(nodes, layer="attention", hidden=4, epochs=8)
    whole = fit_member(problem)
    first = Fitting(make_trainer(problem))
    for _ in range(3):
        first.step()
    second = Fitting(make_trainer(problem))
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    while not second.done:
        second.step()
    second.restore_best()
    assert repr(second.history) == repr(whole.history)
    assert torch.equal(second.trainer.outputs(), whole.trainer.outputs())


@pytest.mark.slow
@pytest.mark.parametrize("normalize", ["doubly_stochastic", "symmetric", "row"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_sets_too_large_to_keep_their_operator_train_alike(layer, dropout, normalize, monkeypatch):
    truth = torch.arange(20.0).reshape(-1, 1)
    shape = {"layer": layer, "normalize": normalize, "dropout": dropout, "hidden": 4}
    kept, built = (
        molecules(Regression(("a",)), truth, **shape, epochs=8, batch_size=7) for _ in range(2)
    )
    monkeypatch.setattr("edgewise.graphs.graph_set.MOST_ROWS", 0)
    from_batches = fit_member(built).trainer.outputs()
    monkeypatch.undo()
    from_whole = fit_member(kept).trainer.outputs()
    assert "every_edge" in vars(kept.data)
    assert kept.data.every_edge._prepared
    assert not built.data.every_edge._prepared
    assert_close(from_whole, from_batches)


def test_losses_that_leave_the_numbers_end_with_a_sentence(nodes):
    problem = of_nodes(nodes, learning_rate=1e30, epochs=20)
    with pytest.raises(EdgewiseError, match=r"diverged in epoch \d+.*learning_rate"):
        fit_member(problem)


def test_a_regression_cannot_be_weighted():
    task, truth = Regression(("a",)), torch.arange(20.0).reshape(-1, 1)
    with pytest.raises(
        EdgewiseError, match=r"\[weighted\] does not apply here: this is regression"
    ):
        molecules(task, truth, weighted=True)
    with pytest.raises(EdgewiseError, match="no classes to weight"):
        task.balance(truth)


def test_classes_cannot_be_scaled(nodes):
    with pytest.raises(EdgewiseError, match=r"\[scale_targets\] does not apply here"):
        of_nodes(nodes, scale_targets=False)


def test_a_graph_without_labels_is_refused(tmp_path):
    graph = Graph(torch.eye(3), torch.tensor([[0, 1], [1, 2]]))
    save_graph(graph, tmp_path / "mine.safetensors")
    source = find_source([str(tmp_path / "mine.safetensors")])
    with pytest.raises(EdgewiseError, match="no labels"):
        NODE.open(source, make_settings("node"))


def test_a_split_without_a_known_training_row_is_refused():
    graph, y = Graph(torch.eye(3), torch.tensor([[0, 1], [1, 2]])), torch.tensor([-1, 0, 1])
    task = Classification(("y",), ("a", "b"))
    with pytest.raises(EdgewiseError, match="no row with a known target is left for training"):
        node_problem(graph, task, y, given_split([0], [1], [2]), make_settings("node"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not the GNU C library")
def test_a_training_step_works_in_the_memory_of_the_one_before():
    """Pages that are given back and asked for anew took a third of an epoch."""
    code = """
import resource
import torch
from edgewise.kernels.memory import reuse_freed_memory

def faults(arrays):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(arrays):
        torch.ones(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

reuse_freed_memory()
faults(5)
print(faults(20))
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    # One array has 40 MB: 9,766 pages.
    assert int(done.stdout) < 20 * 9766 / 4
