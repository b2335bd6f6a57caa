"""Training and prediction in plain torch, as on a GPU, give what the compiled kernels give."""

import math

import numpy as np
import pytest
import torch
from device_guard import OneDevice
from torch.testing import assert_close

import edgewise as ew
from edgewise.core.presets import make_settings
from edgewise.data.chemistry import read_smiles
from edgewise.data.splits import given_split
from edgewise.data.synthetic import direction_and_kind_graph
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.regression import Regression
from edgewise.training import fit_member, make_predictor, make_trainer
from edgewise.units.graph import molecule_problem
from edgewise.units.node import node_problem

SMILES = (
    "CCO",
    "CCN",
    "c1ccccc1",
    "CC(=O)O",
    "CCCC",
    "C1CCCCC1",
    "CC#N",
    "Oc1ccccc1",
    "[Na+].[Cl-]",
)


def of_nodes(**settings):
    graph, _ = direction_and_kind_graph(30, seed=1)
    rows = torch.arange(30)
    task = Classification(("topic",), graph.class_names)
    split = given_split(rows[:20], rows[20:25], rows[25:])
    settings = make_settings("node", **{"hidden": 4, "epochs": 4, **settings})
    return node_problem(graph, task, graph.y, split, settings)[0]


def of_molecules(task=None, **settings):
    generator = torch.Generator().manual_seed(0)
    task = task or Regression(("a", "b"))
    truth = torch.rand(len(SMILES), 2, generator=generator)
    truth = truth.round() if task.name in TASKS_OF_LABELS else truth
    truth[2, 1] = math.nan
    rows = torch.arange(len(SMILES))
    split = given_split(rows[:6], rows[6:], rows[:0])
    usual = {"hidden": 4, "epochs": 4, "batch_size": 3, "directed": False}
    settings = make_settings("graph", **{**usual, **settings})
    return molecule_problem(read_smiles(SMILES), task, truth, split, settings)


TASKS_OF_LABELS = {Multilabel.name}
PROBLEMS = {
    "nodes, conv": lambda: of_nodes(),
    "nodes, conv without direction": lambda: of_nodes(directed=False, normalize="symmetric"),
    "nodes, attention": lambda: of_nodes(layer="attention", dropout=0.0),
    "nodes, attention of GAT": lambda: of_nodes(
        layer="attention", normalize="row", adapt=False, heads=2, weighted=True
    ),
    # Not batch norm: a bias before it has no gradient but rounding, which Adam makes a step of.
    "nodes, deep": lambda: of_nodes(norm="layer", encoder="linear", head="mlp", depth=3),
    "molecules, conv": lambda: of_molecules(layer="conv", dropout=0.2),
    "molecules, gated": lambda: of_molecules(norm="layer", dropout=0.2),
    "molecules, attention": lambda: of_molecules(layer="attention", pooling="mean"),
    "molecules, labels": lambda: of_molecules(Multilabel(("a", "b")), weighted=True, norm="layer"),
}
EVERY_PROBLEM = pytest.mark.parametrize("name", PROBLEMS)


def results(problem):
    fitting = fit_member(problem)
    predictor = make_predictor(problem, (fitting.trainer.model,))
    return (
        np.array([(epoch.train_loss, epoch.validation_loss) for epoch in fitting.history]),
        predictor.predict(problem.data).mean,
        predictor.embeddings(problem.data),
    )


@pytest.mark.slow
@EVERY_PROBLEM
def test_plain_torch_trains_and_predicts_alike(name):
    expected = results(PROBLEMS[name]())
    with ew.plain_kernels():
        found = results(PROBLEMS[name]())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@EVERY_PROBLEM
def test_a_training_step_does_not_leave_its_device(name):
    problem = PROBLEMS[name]()
    trainer, untouched = make_trainer(problem), make_trainer(problem)
    rows = problem.split.train
    with ew.plain_kernels():
        ((some, batch),) = list(problem.data.training_batches(rows, len(rows)))
        trainer.model(batch)  # operators are prepared once, where that is done
        with OneDevice():
            loss = trainer._step(trainer.model(batch), some)
    assert torch.isfinite(loss)
    moved = [
        not torch.equal(one, other)
        for one, other in zip(trainer.model.parameters(), untouched.model.parameters(), strict=True)
    ]
    assert any(moved)
    assert_close(loss, loss.detach())
