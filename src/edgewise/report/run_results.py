"""All that a run predicted, as arrays: from memory, or read back from its folder."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import inside
from edgewise.core.spreadsheet import as_given
from edgewise.report.run_info import RunInfo
from edgewise.tasks.base import Task
from edgewise.tasks.records import as_stored

SUBSETS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class History:
    """The epochs of one member."""

    epoch: np.ndarray
    train_loss: np.ndarray
    validation_loss: np.ndarray  # NaN without validation rows
    validation_score: np.ndarray
    best: int  # number of the epoch whose weights were kept


@dataclass(frozen=True, eq=False)
class RunResults:
    """A run and all it predicted.

    Args:
        run: The run.
        task: What it predicts.
        metrics: What ``metrics.json`` says.
        history: Of each member.
        ids: Node ids, or SMILES, of each row.
        subset: ``"train"``, ``"validation"``, ``"test"`` or nothing, of each row.
        truth: In the form of :class:`~edgewise.tasks.Task`.
        predicted: Probabilities or values, ``[rows, outputs]``.
        std: Standard deviation over the members of an ensemble, ``[rows, outputs]``; of a
            classification ``[rows, 1]``, that of the predicted class.
    """

    run: RunInfo
    task: Task
    metrics: dict[str, Any]
    history: tuple[History, ...]
    ids: Sequence[str]
    subset: np.ndarray
    truth: np.ndarray
    predicted: np.ndarray
    std: np.ndarray | None = None

    @classmethod
    def from_arrays(
        cls,
        run: RunInfo,
        task: Task,
        history: tuple[History, ...],
        ids: Sequence[str],
        subset: Sequence[str] | np.ndarray,
        truth: np.ndarray,
        mean: np.ndarray,
        std: np.ndarray | None,
    ) -> "RunResults":
        """What training has in memory: no file but ``metrics.json`` is read.

        Args:
            run: The run.
            task: What it predicts.
            history: Of each member.
            ids: Node ids, or SMILES, of each row.
            subset: Of each row.
            truth: In the form of the task.
            mean: Of the prediction, ``[rows, outputs]``.
            std: Of the prediction of an ensemble, ``[rows, outputs]``.
        """
        truth = truth if truth.ndim == 1 else as_stored(truth)
        predicted = _as_written(mean)
        std = None if std is None else _as_written(task.shown_std(mean, std))
        rows = np.asarray(subset)
        return cls(run, task, run.metrics, history, ids, rows, truth, predicted, std)

    @classmethod
    def from_folder(cls, run: RunInfo, task: Task) -> "RunResults":
        """Read the files that a run left behind."""
        metrics = run.metrics
        history = _histories(inside(run.folder, "history.csv"), metrics["best_epochs"])
        path = inside(run.folder, "predictions.csv")
        cells = _read_csv(path)
        try:
            named = run.source.id_name
            ids = cells[named] if named else run.unit.row_names(cells)
            subset = np.array(cells["split"])
            outcomes = task.read_columns(cells)
            return cls(run, task, metrics, history, ids, subset, *outcomes)
        except (KeyError, ValueError) as error:
            raise _unfit(path, error) from error

    def rows(self, subset: str) -> np.ndarray:
        """The rows of a subset."""
        return np.flatnonzero(self.subset == subset)

    @property
    def present(self) -> list[str]:
        """The subsets that have rows."""
        return [name for name in SUBSETS if len(self.rows(name))]

    @property
    def judged(self) -> str:
        """The subset that tells how good the model is: test, unless that is empty."""
        return next(name for name in reversed(SUBSETS) if name == "train" or len(self.rows(name)))


def _as_written(numbers: np.ndarray) -> np.ndarray:
    """Numbers as they come back from a file that has nine digits of each.

    These say all of what float32 holds; means over members, and blends, are no such numbers.
    """
    stored = as_stored(numbers)
    if np.array_equal(stored, numbers, equal_nan=True):
        return stored
    return as_stored(np.char.mod("%.9g", numbers).astype(np.float64))


def _unfit(path: Path, error: Exception) -> EdgewiseError:
    return EdgewiseError(f"{path} does not fit the model ({error}); train again")


def _histories(path: Path, best: Sequence[int]) -> tuple[History, ...]:
    cells = _read_csv(path)
    try:
        numbers = np.array([[float(cell) for cell in column] for column in cells.values()]).T
        members = [numbers[numbers[:, 0] == member] for member in range(len(best))]
        return tuple(
            History(m[:, 1], m[:, 2], m[:, 3], m[:, 4], epoch)
            for m, epoch in zip(members, best, strict=True)
        )
    except (IndexError, ValueError) as error:
        raise _unfit(path, error) from error


def _read_csv(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            header, *lines = ([as_given(cell) for cell in row] for row in csv.reader(stream))
        return dict(zip(header, zip(*lines, strict=True), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise EdgewiseError(f"{path} cannot be read ({error}); train again") from error
