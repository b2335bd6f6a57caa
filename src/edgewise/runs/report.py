"""The report of a run: from what training has in memory, or from what the folder holds.

What draws it is imported when one is written: `edgewise predict` need not wait for matplotlib.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.core.manifest import check_listed
from edgewise.runs.folder import Run, reopen
from edgewise.runs.outputs import Trained, part_of_row
from edgewise.training.fitting import Fitting
from edgewise.units.base import Opened

if TYPE_CHECKING:
    from edgewise.report import History, RunResults


def write_report(run: Run, opened: Opened | None = None, trained: Trained | None = None) -> Path:
    """Write ``report.html`` into the folder of a run.

    Args:
        run: It needs results, if only of some epochs.
        opened: Its data, if they are at hand. Else they are read again; where they are gone, the
            report says so and leaves out what needs them.
        trained: What training gave, if it is at hand. Else it is read from the folder.

    Returns:
        The place of the report.
    """
    from edgewise.report import RunResults, make_report

    unavailable = ""
    if opened is None:
        try:
            opened = reopen(run)
        except (EdgewiseError, OSError) as error:
            unavailable = str(error)
    if trained is not None and opened is not None:
        model, results = trained.model, _in_memory(run, opened, trained)
    else:
        model = run.model()
        check_listed(run.folder, ["metrics.json", "history.csv", "predictions.csv"])
        results = RunResults.from_folder(run, model.task)
    path = run.folder / "report.html"
    write_atomically(path, make_report(results, model, opened, unavailable=unavailable))
    return path


def has_report(run: Run) -> bool:
    """Whether the report is there, and not older than the results."""
    report, metrics = run.folder / "report.html", run.folder / "metrics.json"
    return report.exists() and report.stat().st_mtime >= metrics.stat().st_mtime


def _in_memory(run: Run, opened: Opened, trained: Trained) -> "RunResults":
    from edgewise.report import RunResults

    problem, prediction = opened.problem, trained.prediction
    return RunResults.from_arrays(
        run,
        problem.task,
        tuple(_history(fitting) for fitting in trained.fittings),
        problem.data.ids,
        part_of_row(problem.split, len(problem.truth)),
        problem.truth.numpy(),
        prediction.mean,
        prediction.deviation,
    )


def _history(fitting: Fitting) -> "History":
    from edgewise.report import History

    assert fitting.best is not None
    epochs = fitting.history
    return History(
        np.array([epoch.number for epoch in epochs]),
        np.array([epoch.train_loss for epoch in epochs]),
        np.array([epoch.validation_loss for epoch in epochs]),
        np.array([epoch.validation_score for epoch in epochs]),
        fitting.best.number,
    )
