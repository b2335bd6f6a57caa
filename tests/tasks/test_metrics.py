"""Metrics equal scikit-learn's where it has them, and leave out what is not known."""

import math

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from edgewise.tasks.classification import Classification
from edgewise.tasks.metrics import calibration
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.regression import Regression

CLASSES = Classification(("kind",), ("a", "b", "c"))
LABELS = Multilabel(("x", "y"))
VALUES = Regression(("u", "v"), (0.0, 0.0), (1.0, 1.0))


@pytest.fixture
def draw():
    return np.random.default_rng(0)


def test_classification_agrees_with_scikit_learn(draw):
    probability = draw.dirichlet(np.ones(3), 50)
    truth = draw.integers(0, 3, 50)
    found = CLASSES.metrics(probability, truth)
    predicted = probability.argmax(axis=1)
    assert found["accuracy"] == sklearn_metrics.accuracy_score(truth, predicted)
    assert found["macro_f1"] == pytest.approx(
        sklearn_metrics.f1_score(truth, predicted, average="macro")
    )
    assert found["log_loss"] == pytest.approx(sklearn_metrics.log_loss(truth, probability))
    recall = sklearn_metrics.recall_score(truth, predicted, average=None)
    assert [part["recall"] for part in found["per_class"].values()] == pytest.approx(list(recall))


def test_rows_without_truth_change_nothing(draw):
    probability, truth = draw.dirichlet(np.ones(3), 20), draw.integers(0, 3, 20)
    padded = np.concatenate([probability, draw.dirichlet(np.ones(3), 5)])
    assert CLASSES.metrics(padded, np.append(truth, [-1] * 5)) == CLASSES.metrics(
        probability, truth
    )


def test_a_class_that_is_absent_does_not_lower_the_mean():
    found = CLASSES.metrics(np.eye(3)[[0, 1]], np.array([0, 1]))
    assert (found["accuracy"], found["macro_f1"]) == (1, 1)
    assert found["per_class"]["c"]["rows"] == 0


def test_labels_agree_with_scikit_learn_where_they_are_known(draw):
    probability, truth = draw.random((60, 2)), draw.integers(0, 2, (60, 2)).astype(float)
    truth[::4, 0] = math.nan
    found = LABELS.metrics(probability, truth)
    for i, name in enumerate(LABELS.names):
        known = ~np.isnan(truth[:, i])
        expected = sklearn_metrics.roc_auc_score(truth[known, i], probability[known, i])
        assert found["per_target"][name]["roc_auc"] == pytest.approx(expected)
        expected = sklearn_metrics.log_loss(truth[known, i], probability[known, i])
        assert found["per_target"][name]["log_loss"] == pytest.approx(expected)
    parts = [part["roc_auc"] for part in found["per_target"].values()]
    assert found["roc_auc"] == pytest.approx(np.mean(parts))
    assert found["rows"] == 60 + 45


def test_a_label_of_one_kind_has_no_roc_and_does_not_count(draw):
    truth = np.stack([np.ones(10), np.arange(10) % 2], axis=1)
    found = LABELS.metrics(draw.random((10, 2)), truth)
    assert found["per_target"]["x"]["roc_auc"] is None
    assert found["roc_auc"] == found["per_target"]["y"]["roc_auc"]


def test_values_agree_with_scikit_learn(draw):
    value, truth = draw.normal(size=(30, 2)), draw.normal(size=(30, 2))
    truth[:10, 1] = math.nan
    found = VALUES.metrics(value, truth)
    assert found["per_target"]["u"]["rmse"] == pytest.approx(
        sklearn_metrics.root_mean_squared_error(truth[:, 0], value[:, 0])
    )
    assert found["per_target"]["v"]["r2"] == pytest.approx(
        sklearn_metrics.r2_score(truth[10:, 1], value[10:, 1])
    )
    assert found["per_target"]["v"]["mae"] == pytest.approx(
        sklearn_metrics.mean_absolute_error(truth[10:, 1], value[10:, 1])
    )


@pytest.mark.parametrize("task", [CLASSES, LABELS, VALUES])
def test_no_rows_are_no_metrics(task):
    empty = np.zeros((0,), dtype=int) if task is CLASSES else np.zeros((0, 2))
    assert task.metrics(np.zeros((0, task.width)), empty)[task.headline] is None
    assert math.isnan(task.score(np.zeros((0, task.width)), empty))


@pytest.mark.parametrize("task", [CLASSES, LABELS, VALUES])
def test_the_headline_is_the_same_as_among_all(task, draw):
    predicted = draw.random((40, task.width))
    truth = draw.integers(0, 2, 40 if task is CLASSES else (40, 2))
    truth = truth if task is CLASSES else truth.astype(float)
    assert task.score(predicted, truth) == task.metrics(predicted, truth)[task.headline]


def test_calibration_counts_every_row_once(draw):
    probability = np.append(draw.random(100), [0.0, 1.0])
    bins = calibration(probability, draw.random(102) < probability)
    assert sum(count for *_, count in bins) == 102
    assert all(0 <= predicted <= 1 and 0 <= observed <= 1 for predicted, observed, _ in bins)
