r"""Split conformal prediction: intervals and sets that hold the truth as often as they say.

A task scores how little a truth conforms with a prediction. Of the n scores of the validation rows,
the :math:`\lceil (n + 1) c \rceil`-th smallest is the quantile :math:`q`; the interval or set of a
new row holds every value or class whose score is at most :math:`q`. If validation and new rows are
exchangeable, it holds the truth with a probability of at least :math:`c`, however bad the model is
(`Angelopoulos and Bates, 2021 <https://arxiv.org/abs/2107.07511>`_).
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from edgewise.data.splits import Split
from edgewise.tasks.base import Task
from edgewise.tasks.metrics import Metrics
from edgewise.tasks.prediction import Conformal, Prediction


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """The quantile that is valid for finitely many scores; infinite where they are too few."""
    # In binary, 0.9 times 10 is a little more than 9.
    place = math.ceil((len(scores) + 1) * Fraction(str(coverage)))
    return float(np.sort(scores)[place - 1]) if place <= len(scores) else math.inf


def calibrated(
    task: Task, prediction: Prediction, truth: np.ndarray, split: Split, coverage: float
) -> Prediction:
    """The prediction with what its validation rows say about its uncertainty.

    Args:
        task: What is predicted.
        prediction: Of all rows.
        truth: Of all rows.
        split: Training rows give the offsets, so that the scores do not depend on validation.
        coverage: Nominal; 0 asks for nothing.
    """
    if not coverage or not len(split.validation) or not task.score_names:
        return prediction
    offsets: tuple[float, ...] = ()
    if prediction.deviation is not None:
        offsets = tuple((prediction.deviation[split.train.numpy()].mean(axis=0) / 2).tolist())
    empty = Conformal(coverage, (), (), offsets)
    scores = task.nonconformity(replace(prediction, conformal=empty), truth)
    known = [column[~np.isnan(column)] for column in scores[split.validation.numpy()].T]
    quantiles = tuple(conformal_quantile(column, coverage) for column in known)
    found = Conformal(coverage, quantiles, tuple(map(len, known)), offsets)
    return replace(prediction, conformal=found)


def coverage_metrics(
    task: Task, prediction: Prediction, truth: np.ndarray, rows: np.ndarray | None = None
) -> Metrics:
    """How often the intervals or sets of some rows (by default all) hold the truth.

    Returns:
        ``{"coverage": {name: {nominal, observed, rows, size}}}``, the size being the mean width of
        the intervals or the mean number of classes in a set; nothing without a calibration.
    """
    conformal = prediction.conformal
    if conformal is None:
        return {}
    some = slice(None) if rows is None else rows
    scores, sizes = task.nonconformity(prediction, truth)[some], task.region_sizes(prediction)[some]
    found = {}
    for k, name in enumerate(task.score_names):
        known = ~np.isnan(scores[:, k])
        inside, size = scores[known, k] <= conformal.quantiles[k], sizes[known, k]
        found[name] = {
            "nominal": conformal.coverage,
            "observed": float(inside.mean()) if known.any() else None,
            "rows": int(known.sum()),
            "size": float(size.mean()) if known.any() and np.isfinite(size).all() else None,
        }
    return {"coverage": found}
