"""What a user hands in as y, as a task and its truth; NaN and None are targets not known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.missing import is_missing
from edgewise.tasks.base import Task
from edgewise.tasks.classification import Classification
from edgewise.tasks.multilabel import Multilabel
from edgewise.tasks.regression import Regression


@dataclass(frozen=True, eq=False)
class Target:
    """A task and the truth of all rows that were given."""

    task: Task
    truth: Tensor  # see Task
    y_ndim: int  # 1: predictions are [rows], 2: they are [rows, targets]
    classes: np.ndarray | None = None  # sorted, as the user wrote them


def joined(parts: Sequence[Any]) -> np.ndarray:
    """The y of training and of validation, one after the other, each in its own type."""
    arrays = [np.asarray(part).astype(object) for part in parts]
    try:
        return np.concatenate(arrays)
    except ValueError as error:
        shapes = " and ".join(str(list(array.shape)) for array in arrays)
        raise EdgewiseError(
            f"y has the shape {shapes} in training and validation; give both as [rows] or as "
            "[rows, targets]"
        ) from error


def names_of(y: Any) -> tuple[str, ...]:
    """The names of the targets: those of a pandas object, or made up."""
    shape = np.shape(y)
    if len(shape) < 2:
        return (str(getattr(y, "name", None) or "y"),)
    columns = getattr(y, "columns", None)
    return tuple(f"y{i}" for i in range(shape[1])) if columns is None else tuple(map(str, columns))


def class_target(y: np.ndarray, names: tuple[str, ...]) -> Target:
    """One label of any sort for each row: words, integers, booleans."""
    known = known_labels(y)
    labels = settled(y[known], "the labels in y")
    if labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        raise EdgewiseError(
            f"y holds numbers such as {labels[labels != np.round(labels)][0]:g}, which are values, "
            "not classes; use a regressor"
        )
    if labels.dtype.kind not in "biufU":
        raise EdgewiseError(f"the labels in y are {labels.dtype}; give words, integers or booleans")
    classes, number = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise EdgewiseError(
            f"y holds the class(es) {preview(list(classes))}, and there is nothing to tell apart; "
            "give rows of two classes at least"
        )
    truth = np.full(len(y), -1, dtype=np.int64)
    truth[known] = number
    task = Classification(names, tuple(str(label) for label in classes))
    return Target(task, torch.from_numpy(truth), 1, classes)


def value_target(y: np.ndarray, names: tuple[str, ...]) -> Target:
    """Values, ``[rows]`` or ``[rows, targets]``."""
    columns = number_columns(y)
    infinite = np.isinf(columns).any(axis=1).nonzero()[0].tolist()
    if infinite:
        raise EdgewiseError(f"y is infinite in row(s) {preview(infinite)}; write NaN for unknown")
    _check_known(columns, names)
    return Target(Regression(names), _truth(columns), y.ndim)


def binary_target(y: np.ndarray, names: tuple[str, ...]) -> Target:
    """Zeros and ones, ``[rows, targets]``."""
    columns = number_columns(y)
    bad = np.argwhere(~np.isnan(columns) & ~np.isin(columns, (0, 1)))
    if len(bad):
        row, column = bad[0]
        raise EdgewiseError(
            f"y[{row}, {column}] is {columns[row, column]:g}, expected 0, 1 or NaN; for classes "
            "give one label for each row, for values use a regressor"
        )
    _check_known(columns, names)
    return Target(Multilabel(names), _truth(columns), 2)


def number_columns(y: Any) -> np.ndarray:
    """Numbers as ``[rows, targets]``, NaN where they are not known."""
    try:
        columns = np.asarray(y).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise EdgewiseError(
            f"y does not consist of numbers ({error}); write NaN for unknown, and use a classifier "
            "for words"
        ) from error
    if columns.ndim not in (1, 2) or not columns.size:
        raise EdgewiseError(
            f"y has the shape {list(columns.shape)}; give [rows] or [rows, targets]"
        )
    return columns.reshape(len(columns), -1)


def known_labels(y: np.ndarray) -> np.ndarray:
    """Where the label of a row is known."""
    return np.array([not is_missing(label) for label in y], dtype=bool)


def settled(values: np.ndarray, what: str) -> np.ndarray:
    """Objects as an array of words or of numbers; a mixture is refused."""
    words = [isinstance(value, str) for value in values]
    if any(words) and not all(words):
        other = values[words.index(False)]
        raise EdgewiseError(f"{what} are words and others, such as {other!r}; give one sort")
    return np.array(values.tolist())


def _check_known(columns: np.ndarray, names: tuple[str, ...]) -> None:
    empty = [name for name, lost in zip(names, np.isnan(columns).all(axis=0), strict=True) if lost]
    if empty:
        raise EdgewiseError(f"nothing is known of the target(s) {preview(empty)}; leave them out")


def _truth(columns: np.ndarray) -> Tensor:
    # Column by column in memory, as a table is read, so that sums over a column round alike.
    return torch.from_numpy(np.ascontiguousarray(columns.T, dtype=np.float32)).T
