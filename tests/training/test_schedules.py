"""The learning rate depends on the number of the step alone; gradients are clipped."""

import pytest
import torch

from edgewise.core.presets import make_settings
from edgewise.data.splits import given_split
from edgewise.data.synthetic import direction_and_kind_graph
from edgewise.tasks.classification import Classification
from edgewise.training import fit_member, make_trainer
from edgewise.training.trainer import SCHEDULES
from edgewise.units.node import node_problem

GATED = {
    "layer": "gated",
    "normalize": "row",
    "encoder": "linear",
    "norm": "batch",
    "activation": "relu",
    "residual": True,
    "feed_forward": 2,
    "hidden": 16,
    "depth": 3,
    "dropout": 0.0,
    "head": "linear",
    "optimizer": "adamw",
    "weight_decay": 0.0,
}


def problem(**settings):
    graph, _ = direction_and_kind_graph(60, seed=1)
    rows = torch.arange(60)
    split = given_split(rows[:40], rows[40:50], rows[50:])
    task = Classification(("topic",), graph.class_names)
    return node_problem(graph, task, graph.y, split, make_settings("node", **settings))[0]


def test_cosine_rises_to_1_then_falls_to_0():
    rates = [SCHEDULES["cosine"](step, 100, 0.1) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == pytest.approx(1.0)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.001
    assert SCHEDULES["constant"](7, 100, 0.1) == 1


def test_the_optimiser_is_given_the_rate_of_its_step():
    trainer = make_trainer(problem(**GATED, schedule="cosine", epochs=10, learning_rate=0.01))
    for epoch in (1, 4, 10):
        trainer.train_epoch(epoch)
        expected = 0.01 * SCHEDULES["cosine"](epoch - 1, 10, 0.05)
        assert [group["lr"] for group in trainer.optimizer.param_groups] == [expected] * 2


def test_a_clipped_step_is_no_longer_than_asked():
    trainer = make_trainer(problem(**GATED, clip=1e-3))
    trainer.train_epoch(1)
    norms = [p.grad.norm() for p in trainer.model.parameters() if p.grad is not None]
    assert torch.stack(norms).norm() <= 1.001e-3


@pytest.mark.slow
def test_a_gated_network_can_overfit_labels_that_hang_on_edges_alone():
    made = problem(**GATED, epochs=80, patience=80, learning_rate=0.01, schedule="cosine", clip=5.0)
    fitting = fit_member(made)
    assert fitting.history[-1].train_loss < 0.1
