"""Train what a run folder asks for; killed anywhere, it continues from the last checkpoint."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import inside, sweep, write_atomically
from edgewise.core.team import ALONE, Team
from edgewise.data.molecule_tables import write_invalid
from edgewise.runs.folder import Run
from edgewise.runs.outputs import Trained, write_outputs
from edgewise.training.fitting import Epoch, Fitting
from edgewise.training.predictor import make_predictor
from edgewise.training.trainer import make_trainer
from edgewise.training.weights import read_tensors
from edgewise.units.base import Opened, Problem

CHECKPOINT_SECONDS = 2.0
OnEpoch = Callable[[int, Epoch, Epoch], None]  # member, the epoch, the best so far


def train_run(
    run: Run,
    opened: Opened,
    on_epoch: OnEpoch | None = None,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    team: Team = ALONE,
) -> Trained:
    """Train what is not trained yet, and write the results; one process at a time.

    Args:
        run: From :func:`~edgewise.runs.folder.start_run` or ``open_run``.
        opened: Its problem.
        on_epoch: Called after each epoch.
        stop: Asked after each epoch; if so, the results are those of the best weights so far, and
            the run can still be continued.
        checkpoint_seconds: How often everything is put on disk.
        team: The processes that train together, of which this one leads.
    """
    problem = opened.problem
    for folder in (run.folder, inside(run.folder, "checkpoint")):
        sweep(folder)
    write_atomically(run.folder / "splits.json", json.dumps(_split_rows(problem)))
    if opened.invalid:
        write_invalid(run.folder / "invalid.csv", opened.invalid)
    fittings: list[Fitting] = []
    seconds = 0.0
    for member in range(run.settings.training.ensemble):
        fitting = Fitting(make_trainer(problem, member, team))
        seconds += _train_member(run, fitting, on_epoch, stop, checkpoint_seconds)
        if fitting.history:
            fittings.append(fitting)
        if not fitting.done:
            break
    if not fittings:
        raise EdgewiseError(
            f"stopped before the first epoch, so there is no model; continue with "
            f"edgewise train --resume {run.folder}"
        )
    for fitting in fittings:
        fitting.restore_best()
    model = make_predictor(problem, tuple(fitting.trainer.model for fitting in fittings))
    return write_outputs(run, problem, model, fittings, seconds)


def checkpoint_path(run: Run, member: int) -> Path:
    return inside(run.folder, f"checkpoint/member-{member}.safetensors")


def _train_member(
    run: Run, fitting: Fitting, on_epoch: OnEpoch | None, stop: Callable[[], bool], every: float
) -> float:
    """Train one model from its last checkpoint on; gives the seconds it took in all."""
    path = checkpoint_path(run, fitting.trainer.member)
    before = 0.0
    if path.exists():
        tensors = read_tensors(path)
        try:
            before = float(tensors.pop("seconds"))
            fitting.restore(tensors)
        except (KeyError, RuntimeError, ValueError, TypeError, OverflowError) as error:
            raise EdgewiseError(
                f"{path} does not fit the run ({str(error).splitlines()[0]}); delete it to train "
                "this model from its start"
            ) from error
    fitting.align()
    start = saved = time.monotonic()

    def keep() -> None:
        seconds = torch.tensor(before + time.monotonic() - start, dtype=torch.float64)
        write_atomically(path, save({**fitting.tensors(), "seconds": seconds}))

    while not fitting.done and not stop():
        epoch = fitting.step()
        if on_epoch is not None:
            assert fitting.best is not None
            on_epoch(fitting.trainer.member, epoch, fitting.best)
        if time.monotonic() - saved >= every:
            keep()
            saved = time.monotonic()
    if fitting.history:
        keep()
    return before + time.monotonic() - start


def _split_rows(problem: Problem) -> dict[str, list[int]]:
    """The split in rows of the table or of the graph, as ``--split splits.json`` reads it."""
    return {
        name: problem.unit.rows_of_file(problem, rows).tolist()
        for name, rows in problem.split.parts().items()
    }
