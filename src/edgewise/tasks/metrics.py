"""How good predictions are: pure functions of them and the truth. What is unknown is left out."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Metrics = dict[str, Any]  # a number for each metric, and a dictionary of such for each part


def classification_metrics(
    probability: np.ndarray, truth: np.ndarray, classes: Sequence[str]
) -> Metrics:
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


def binary_metrics(probability: np.ndarray, truth: np.ndarray) -> Metrics:
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


def roc_auc(probability: np.ndarray, truth: np.ndarray) -> float:
    """The area under the ROC curve; NaN where only one of the two labels occurs."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, probability)) if len(np.unique(truth)) == 2 else math.nan


def regression_metrics(value: np.ndarray, truth: np.ndarray) -> Metrics:
    """Root mean square error, mean absolute error, and the coefficient of determination."""
    if not len(truth):
        return {"rows": 0, "rmse": None}
    error = value.astype(np.float64) - truth
    total_squares = float(np.square(truth - truth.mean(dtype=np.float64)).sum())
    return {
        "rows": len(truth),
        "rmse": math.sqrt(float(np.square(error).mean())),
        "mae": float(np.abs(error).mean()),
        "r2": 1 - float(np.square(error).sum()) / total_squares if total_squares > 0 else None,
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
    """Mean distance between predicted and observed probability over the bins, weighted by size."""
    bins = calibration(probability, hit)
    return sum(n * abs(predicted - observed) for predicted, observed, n in bins) / max(len(hit), 1)
