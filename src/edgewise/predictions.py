"""Predictions as columns of a table, with the truth beside them where it is known."""

import math
from collections.abc import Sequence

import numpy as np

from edgewise.fitted import Prediction
from edgewise.tasks import Task

Columns = dict[str, list[str]]


def predicted_columns(task: Task, prediction: Prediction) -> Columns:
    """What a model says: classes and probabilities, or values, and the spread of an ensemble."""
    mean, spread = prediction.mean, prediction.spread
    if task.kind == "classification":
        best = mean.argmax(axis=1)
        columns = {"predicted": [task.classes[k] for k in best]}
        if spread is not None:
            columns["spread"] = _cells(spread[np.arange(len(best)), best])
        return columns | {f"p_{name}": _cells(mean[:, k]) for k, name in enumerate(task.classes)}
    word = "probability" if task.kind == "multilabel" else "predicted"
    columns = {}
    for i, name in enumerate(task.names):
        columns[f"{name}_{word}"] = _cells(mean[:, i])
        if spread is not None:
            columns[f"{name}_spread"] = _cells(spread[:, i])
    return columns


def true_columns(task: Task, truth: np.ndarray) -> Columns:
    """The truth, empty where it is not known."""
    if task.kind == "classification":
        return {"true": [task.classes[k] if k >= 0 else "" for k in truth]}
    return {f"{name}_true": _cells(truth[:, i]) for i, name in enumerate(task.names)}


def side_by_side(task: Task, prediction: Prediction, truth: np.ndarray) -> Columns:
    """Truth and prediction of each output next to each other."""
    true, predicted = true_columns(task, truth), predicted_columns(task, prediction)
    if task.kind == "classification":
        return true | predicted
    columns: Columns = {}
    for name in task.names:
        columns[f"{name}_true"] = true[f"{name}_true"]
        columns |= {
            f"{name}_{word}": predicted[f"{name}_{word}"]
            for word in ("predicted", "probability", "spread")
            if f"{name}_{word}" in predicted
        }
    return columns


def _cells(values: Sequence[float] | np.ndarray) -> list[str]:
    # Nine digits tell every two float32 numbers apart.
    return ["" if math.isnan(value) else f"{value:.9g}" for value in values]
