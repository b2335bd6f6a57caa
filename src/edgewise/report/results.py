"""What a run folder says, read back into arrays."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.runs import Run
from edgewise.tasks import Task

SUBSETS = ("train", "validation", "test")
Cells = dict[str, tuple[str, ...]]  # of a table, by column


@dataclass(frozen=True, eq=False)
class History:
    """The epochs of one member."""

    epoch: np.ndarray
    train_loss: np.ndarray
    validation_loss: np.ndarray  # NaN without validation rows
    validation_score: np.ndarray
    best: int  # number of the epoch whose weights count


@dataclass(frozen=True, eq=False)
class Results:
    """A run and all it predicted."""

    run: Run
    task: Task
    metrics: dict[str, Any]
    history: tuple[History, ...]
    ids: tuple[str, ...]  # node ids, or SMILES
    molecules: bool
    subset: np.ndarray  # train, validation, test or nothing, of each row
    truth: np.ndarray  # see Task
    predicted: np.ndarray  # probabilities or values, [rows, outputs]
    spread: np.ndarray | None  # of an ensemble: [rows], of the predicted class, or [rows, outputs]

    def rows(self, subset: str) -> np.ndarray:
        """The rows of a subset."""
        return np.flatnonzero(self.subset == subset)

    @property
    def judged(self) -> str:
        """The subset that tells how good the model is: test, unless that is empty."""
        return next(name for name in reversed(SUBSETS) if name == "train" or len(self.rows(name)))

    def known(self, rows: np.ndarray, output: int) -> np.ndarray:
        """Those of the rows whose truth is known, for a yes-or-no label or a value."""
        return rows[~np.isnan(self.truth[rows, output])]


def read_results(run: Run, task: Task) -> Results:
    """Read the files that a run left behind."""
    metrics = run.metrics
    path = run.folder / "predictions.csv"
    cells = _read_csv(path)
    molecules = run.source.kind == "molecules"
    try:
        return Results(
            run,
            task,
            metrics,
            _histories(run.folder / "history.csv", metrics["best_epochs"]),
            cells["smiles" if molecules else "id"],
            molecules,
            np.array(cells["split"]),
            *_outcomes(task, cells),
        )
    except (KeyError, ValueError) as error:
        raise _unfit(path, error) from error


def _unfit(path: Path, error: Exception) -> EdgewiseError:
    return EdgewiseError(f"{path} does not fit the model ({error}); train again")


def _outcomes(task: Task, cells: Cells) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Truth, predictions and their spread."""
    if task.kind == "classification":
        number = {name: k for k, name in enumerate(task.classes)}
        truth = np.array([number.get(name, -1) for name in cells["true"]])
        spread = _numbers(cells["spread"]) if "spread" in cells else None
        return truth, _columns(cells, [f"p_{name}" for name in task.classes]), spread
    word = "probability" if task.kind == "multilabel" else "predicted"
    several = f"{task.names[0]}_spread" in cells
    return (
        _columns(cells, [f"{name}_true" for name in task.names]),
        _columns(cells, [f"{name}_{word}" for name in task.names]),
        _columns(cells, [f"{name}_spread" for name in task.names]) if several else None,
    )


def _histories(path: Path, best: Sequence[int]) -> tuple[History, ...]:
    cells = _read_csv(path)
    try:
        numbers = _columns(cells, list(cells))
        members = [numbers[numbers[:, 0] == member] for member in range(len(best))]
        return tuple(
            History(m[:, 1], m[:, 2], m[:, 3], m[:, 4], epoch)
            for m, epoch in zip(members, best, strict=True)
        )
    except (IndexError, ValueError) as error:
        raise _unfit(path, error) from error


def _read_csv(path: Path) -> Cells:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            header, *lines = csv.reader(stream)
        return dict(zip(header, zip(*lines, strict=True), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise EdgewiseError(f"{path} cannot be read ({error}); train again") from error


def _columns(cells: Cells, names: list[str]) -> np.ndarray:
    return np.stack([_numbers(cells[name]) for name in names], axis=1)


def _numbers(column: Sequence[str]) -> np.ndarray:
    return np.array([float(cell) if cell else np.nan for cell in column])
