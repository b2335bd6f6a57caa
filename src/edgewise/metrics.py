"""How good predictions are: pure functions of them and the truth. What is unknown is left out."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.tasks import Task

Metrics = dict[str, Any]  # a number for each metric, and a dictionary of such for each part


def score(task: Task, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
    """All metrics of a task.

    Args:
        task: What was predicted.
        predicted: Probabilities or values, ``[rows, outputs]``.
        truth: In the form of :class:`~edgewise.tasks.Task`.

    Returns:
        The metrics over all that is known, and under ``per_class`` or ``per_target`` those of
        each part. A metric that cannot be computed, such as the ROC-AUC of a single class, is None.
    """
    if task.kind == "classification":
        known = truth >= 0
        return classification(predicted[known], truth[known], task.classes)
    of_target = multilabel if task.kind == "multilabel" else regression
    per_target = {}
    for i, name in enumerate(task.names):
        known = ~np.isnan(truth[:, i])
        per_target[name] = of_target(predicted[known, i], truth[known, i])
    return {**_mean(list(per_target.values())), "per_target": per_target}


def headline(task: Task, predicted: np.ndarray, truth: np.ndarray) -> float:
    """The one metric of :attr:`~edgewise.tasks.Task.headline`, cheaper than all; NaN for none."""
    if task.kind == "classification":
        known = truth >= 0
        hits = predicted[known].argmax(axis=1) == truth[known]
        return float(hits.mean()) if len(hits) else math.nan
    value = score(task, predicted, truth)[task.headline]
    return math.nan if value is None else float(value)


def classification(probability: np.ndarray, truth: np.ndarray, classes: Sequence[str]) -> Metrics:
    """Accuracy, macro F1, log loss, calibration error; precision, recall and F1 of each class."""
    from sklearn.metrics import precision_recall_fscore_support

    if not len(truth):
        return {"rows": 0, "accuracy": None}
    predicted = probability.argmax(axis=1)
    precision, recall, f1, support = precision_recall_fscore_support(
        truth, predicted, labels=range(len(classes)), zero_division=0
    )
    of_truth = probability[np.arange(len(truth)), truth]
    present = support > 0
    return {
        "rows": len(truth),
        "accuracy": float((predicted == truth).mean()),
        "macro_f1": float(f1[present].mean()),
        "log_loss": float(-np.log(np.maximum(of_truth, 1e-12)).mean()),
        "calibration_error": calibration_error(probability.max(axis=1), predicted == truth),
        "per_class": {
            name: {
                "precision": float(precision[k]),
                "recall": float(recall[k]),
                "f1": float(f1[k]),
                "rows": int(support[k]),
            }
            for k, name in enumerate(classes)
        },
    }


def multilabel(probability: np.ndarray, truth: np.ndarray) -> Metrics:
    """ROC-AUC, average precision, log loss, accuracy at one half, calibration error of a label."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    if not len(truth):
        return {"rows": 0, "roc_auc": None}
    both = len(np.unique(truth)) == 2
    clipped = np.clip(probability, 1e-12, 1 - 1e-12)
    return {
        "rows": len(truth),
        "positives": int(truth.sum()),
        "roc_auc": float(roc_auc_score(truth, probability)) if both else None,
        "average_precision": float(average_precision_score(truth, probability)) if both else None,
        "log_loss": float(-np.where(truth > 0, np.log(clipped), np.log1p(-clipped)).mean()),
        "accuracy": float(((probability > 0.5) == truth).mean()),
        "calibration_error": calibration_error(probability, truth > 0),
    }


def regression(value: np.ndarray, truth: np.ndarray) -> Metrics:
    """Root mean square error, mean absolute error, and the coefficient of determination."""
    if not len(truth):
        return {"rows": 0, "rmse": None}
    error = value.astype(np.float64) - truth
    spread = float(np.square(truth - truth.mean(dtype=np.float64)).sum())
    return {
        "rows": len(truth),
        "rmse": math.sqrt(float(np.square(error).mean())),
        "mae": float(np.abs(error).mean()),
        "r2": 1 - float(np.square(error).sum()) / spread if spread > 0 else None,
    }


def calibration(
    probability: np.ndarray, hit: np.ndarray, bins: int = 10
) -> list[tuple[float, float, int]]:
    """Mean probability, share of hits and count in each of ten equal bins that is not empty."""
    place = np.minimum((probability * bins).astype(int), bins - 1)
    members = [place == b for b in range(bins)]
    return [
        (float(probability[m].mean()), float(hit[m].mean()), int(m.sum()))
        for m in members
        if m.any()
    ]


def calibration_error(probability: np.ndarray, hit: np.ndarray) -> float:
    """Mean distance between promised and met probability over the bins, weighed by their size."""
    bins = calibration(probability, hit)
    return sum(n * abs(promised - met) for promised, met, n in bins) / max(len(hit), 1)


def _mean(parts: list[Metrics]) -> Metrics:
    """The mean of each metric over the parts that have it; counts are summed."""
    names = list(dict.fromkeys(name for part in parts for name in part))
    joined: Metrics = {}
    for name in names:
        values = [part[name] for part in parts if part.get(name) is not None]
        if name in ("rows", "positives"):
            joined[name] = sum(values)
        else:
            joined[name] = sum(values) / len(values) if values else None
    return joined
