"""What a trained run leaves behind: model, history, predictions, metrics."""

import json
import shutil
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.core.files import write_atomically
from edgewise.core.manifest import write_manifest
from edgewise.core.spreadsheet import csv_text
from edgewise.data.splits import Split
from edgewise.runs.folder import Run
from edgewise.runs.table_writer import table_writer
from edgewise.tasks.base import Prediction, Task
from edgewise.tasks.conformal import coverage_metrics
from edgewise.tasks.prediction import stretches
from edgewise.training.fitting import Fitting
from edgewise.training.predictor import Predictor
from edgewise.units.base import Problem


@dataclass(frozen=True, eq=False)
class Trained:
    """What training gave, still in memory."""

    model: Predictor
    prediction: Prediction
    fittings: tuple[Fitting, ...]
    metrics: dict[str, Any]


def write_outputs(
    run: Run, problem: Problem, model: Predictor, fittings: list[Fitting], seconds: float
) -> Trained:
    """Write everything a run leaves behind; ``metrics.json`` comes last, and ends the run."""
    finished = len(fittings) == run.settings.training.ensemble and all(f.done for f in fittings)
    task, truth = problem.task, problem.truth.numpy()
    model, prediction = model.calibrated(problem)
    model.save(run.folder)
    write_atomically(run.folder / "history.csv", csv_text(_history(fittings, task.headline)))
    _write_predictions(run, problem, model, prediction)
    metrics = {
        "finished": finished,
        "task": task.name,
        "headline": task.headline,
        "lower_is_better": task.lower_is_better,
        "epochs": [len(fitting.history) for fitting in fittings],
        "best_epochs": [fitting.best.number for fitting in fittings if fitting.best],
        "seconds": round(seconds, 3),
        **({} if model.stack is None else {"descriptors_weight": model.stack.weight}),
        **{
            name: judged(task, prediction, truth, rows)
            for name, rows in ((n, part.numpy()) for n, part in problem.split.parts().items())
        },
    }
    text = json.dumps(metrics, indent=1).encode()
    written = ("recipe.json", "splits.json", "history.csv", "predictions.csv")
    write_manifest(run.folder, written, coming={"metrics.json": text})
    write_atomically(run.folder / "metrics.json", text)
    if finished:
        shutil.rmtree(run.folder / "checkpoint")
    return Trained(model, prediction, tuple(fittings), metrics)


def _write_predictions(
    run: Run, problem: Problem, model: Predictor, prediction: Prediction
) -> None:
    """Write what is predicted of each row, with the truth beside it."""
    unit, task, truth = problem.unit, problem.task, problem.truth.numpy()
    parts = part_of_row(problem.split, len(truth))
    distant = unit.distance_columns(model.reference, problem.data)
    with table_writer(run.folder / "predictions.csv") as write:
        for rows in stretches(len(truth)):
            columns = {
                **unit.row_columns(problem, rows),
                "split": parts[rows].tolist(),
                **task.compared_columns(prediction.of_rows(rows), truth[rows]),
                **{name: column[rows] for name, column in distant.items()},
            }
            write(columns, None)


def judged(
    task: Task, prediction: Prediction, truth: np.ndarray, rows: np.ndarray
) -> dict[str, Any]:
    """All metrics of some rows, and how often their intervals or sets hold the truth."""
    metrics = task.metrics(prediction.mean[rows], truth[rows])
    return metrics | coverage_metrics(task, prediction, truth, rows)


def part_of_row(split: Split, count: int) -> np.ndarray:
    """The subset of each row, or nothing, as objects: each word is there once."""
    subset = np.full(count, "", dtype=object)
    for name, rows in split.parts().items():
        subset[rows.numpy()] = name
    return subset


def _history(fittings: list[Fitting], headline: str) -> dict[str, list[str]]:
    lines = [(fitting.trainer.member, epoch) for fitting in fittings for epoch in fitting.history]
    return {
        "member": [str(member) for member, _ in lines],
        "epoch": [str(epoch.number) for _, epoch in lines],
        "train_loss": [repr(epoch.train_loss) for _, epoch in lines],
        "validation_loss": [repr(epoch.validation_loss) for _, epoch in lines],
        f"validation_{headline}": [repr(epoch.validation_score) for _, epoch in lines],
    }
