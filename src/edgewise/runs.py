"""The run folder: settings, checkpoints, results. A run may be killed anywhere and continued."""

import csv
import io
import json
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from edgewise import __version__
from edgewise.data.molecule_tables import write_invalid
from edgewise.data.sources import Source
from edgewise.data.splits import Split
from edgewise.errors import EdgewiseError, preview
from edgewise.files import LOCK, write_atomically
from edgewise.fitted import Fitted, fitted, load_model, read_tensors
from edgewise.metrics import score
from edgewise.predictions import side_by_side
from edgewise.problems import MoleculeProblem, Opened, Problem, Show, open_problem
from edgewise.recipe import Recipe, load_recipe
from edgewise.training import Epoch, Fitting, make_trainer

FORMAT = "edgewise run 1"
CHECKPOINT_SECONDS = 2.0
_METRICS = frozenset(
    {"finished", "headline", "lower_is_better", "epochs", "best_epochs", "seconds"}
    | {"train", "validation", "test"}
)
OnEpoch = Callable[[int, Epoch, Epoch], None]  # member, the epoch, the best so far


@dataclass(frozen=True)
class Run:
    """A run folder and what its ``recipe.json`` says."""

    folder: Path
    source: Source
    recipe: Recipe
    preset: str
    checksum: str  # of the data
    versions: dict[str, str]
    command: str

    @property
    def metrics(self) -> dict[str, Any]:
        """What ``metrics.json`` says."""
        path = self.folder / "metrics.json"
        cure = f"edgewise train --resume {self.folder}"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise EdgewiseError(
                f"{self.folder} has no results yet; finish it with {cure}"
            ) from error
        except (OSError, ValueError) as error:
            raise EdgewiseError(f"{path} is damaged ({error}); delete it and run {cure}") from error
        lacking = _METRICS.difference(content if isinstance(content, dict) else ())
        if lacking:
            raise EdgewiseError(
                f"{path} is damaged (no {preview(sorted(lacking))}); delete it and run {cure}"
            )
        return content

    @property
    def finished(self) -> bool:
        return (self.folder / "metrics.json").exists() and bool(self.metrics["finished"])

    def model(self) -> Fitted:
        return load_model(self.folder)


def start_run(folder: str | Path, source: Source, recipe: Recipe, preset: str, command: str) -> Run:
    """Make a run folder; one that holds something already is refused."""
    folder, source = Path(folder), source.absolute()
    run = Run(folder, source, recipe, preset, source.checksum(), _versions(), command)
    check_free(folder)
    content = {
        "format": FORMAT,
        "data": {"form": source.form, "places": source.places, "sha256": run.checksum},
        "preset": preset,
        "recipe": recipe.to_json(),
        "versions": run.versions,
        "command": command,
    }
    write_atomically(folder / "recipe.json", json.dumps(content, indent=1))
    return run


def check_free(folder: Path) -> None:
    """Refuse a folder that holds something already."""
    if folder.exists() and (
        not folder.is_dir() or any(path.name != LOCK for path in folder.iterdir())
    ):
        raise EdgewiseError(
            f"{folder} exists already and is not empty; choose another --out, or go on with "
            f"edgewise train --resume {folder}"
        )


def open_run(folder: str | Path) -> Run:
    """Read what a run folder was started with."""
    path = Path(folder) / "recipe.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise EdgewiseError(f"it says {content['format']!r}, expected {FORMAT!r}")
        data = content["data"]
        return Run(
            Path(folder),
            Source(str(data["form"]), tuple(str(place) for place in data["places"])),
            load_recipe(content["recipe"]),
            str(content["preset"]),
            str(data["sha256"]),
            dict(content["versions"]),
            str(content["command"]),
        )
    except FileNotFoundError as error:
        raise EdgewiseError(
            f"{folder} is not the folder of a run; it has no recipe.json"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(f"{path} cannot be used ({error}); start the run again") from error


def check_data(run: Run) -> None:
    """Refuse to go on with data that are not those the run started with."""
    if run.source.checksum() != run.checksum:
        raise EdgewiseError(
            f"{run.source} has changed since {run.folder} was started; put the old data back, or "
            "start a new run"
        )


def reopen(run: Run, progress: Show | None = None) -> Opened:
    """The problem of a run from the data it started with, split as it was then."""
    check_data(run)
    split, recipe = run.folder / "splits.json", run.recipe
    if split.exists():
        # The column that told the split stays out of the features.
        ignore = (*recipe.ignore, *filter(None, (recipe.split_column,)))
        recipe = replace(recipe, split=str(split), split_column="", ignore=ignore)
    return open_problem(run.source, recipe, progress)


def forget_untrained(run: Run) -> None:
    """Take back what a run left in its folder, unless something was trained."""
    if (run.folder / "checkpoint").exists() or (run.folder / "metrics.json").exists():
        return
    for name in ("recipe.json", "splits.json", "invalid.csv"):
        (run.folder / name).unlink(missing_ok=True)


def train_run(
    run: Run,
    opened: Opened,
    on_epoch: OnEpoch | None = None,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Fitted:
    """Train what is not trained yet, and write the results; one process at a time.

    Args:
        run: From :func:`start_run` or :func:`open_run`.
        opened: Its problem.
        on_epoch: Called after each epoch.
        stop: Asked after each epoch; if so, the results are those of the best weights so far, and
            the run can still be continued.
        checkpoint_seconds: How often everything is put on disk.
    """
    problem = opened.problem
    for scrap in run.folder.rglob(".part-*"):  # of a run that was killed while it wrote
        scrap.unlink()
    write_atomically(run.folder / "splits.json", json.dumps(_split_rows(problem)))
    if opened.invalid:
        write_invalid(run.folder / "invalid.csv", opened.invalid)
    fittings: list[Fitting] = []
    seconds = 0.0
    for member in range(run.recipe.ensemble):
        like = fittings[0].trainer if fittings else None
        fitting = Fitting(make_trainer(problem, run.recipe, member, like))
        seconds += _train_member(run, fitting, on_epoch, stop, checkpoint_seconds)
        if fitting.history:
            fittings.append(fitting)
        if not fitting.done:
            break
    if not fittings:
        raise EdgewiseError(
            f"stopped before the first epoch, so there is no model; go on with "
            f"edgewise train --resume {run.folder}"
        )
    for fitting in fittings:
        fitting.restore_best()
    model = fitted(problem, run.recipe, tuple(fitting.trainer.model for fitting in fittings))
    _write_results(run, problem, model, fittings, seconds)
    return model


def checkpoint_path(run: Run, member: int) -> Path:
    return run.folder / "checkpoint" / f"member-{member}.safetensors"


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
        except (KeyError, RuntimeError, ValueError, TypeError) as error:
            raise EdgewiseError(
                f"{path} does not fit the run ({str(error).splitlines()[0]}); delete it to train "
                "this model from its start"
            ) from error
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


def _write_results(
    run: Run, problem: Problem, model: Fitted, fittings: list[Fitting], seconds: float
) -> None:
    """Write everything a run leaves behind; ``metrics.json`` comes last, and ends the run."""
    finished = len(fittings) == run.recipe.ensemble and all(f.done for f in fittings)
    task, truth = problem.task, problem.truth.numpy()
    prediction = model.predict_problem(problem)
    columns = {
        **_row_names(problem),
        "split": _subset_of_row(problem.split, len(truth)),
        **side_by_side(task, prediction, truth),
    }
    model.save(run.folder)
    write_atomically(run.folder / "history.csv", _csv(_history(fittings, task.headline)))
    write_atomically(run.folder / "predictions.csv", _csv(columns))
    metrics = {
        "finished": finished,
        "task": task.kind,
        "headline": task.headline,
        "lower_is_better": task.lower_is_better,
        "epochs": [len(fitting.history) for fitting in fittings],
        "best_epochs": [fitting.best.number for fitting in fittings if fitting.best],
        "seconds": round(seconds, 3),
        **{
            name: score(task, prediction.mean[rows], truth[rows])
            for name, rows in ((n, part.numpy()) for n, part in problem.split.parts().items())
        },
    }
    write_atomically(run.folder / "metrics.json", json.dumps(metrics, indent=1))
    if finished:
        shutil.rmtree(run.folder / "checkpoint")


def _split_rows(problem: Problem) -> dict[str, list[int]]:
    """The split in rows of the table or of the graph, as ``--split splits.json`` reads it."""
    parts = problem.split.parts()
    if isinstance(problem, MoleculeProblem):
        parts = {name: problem.molecules.rows[rows] for name, rows in parts.items()}
    return {name: rows.tolist() for name, rows in parts.items()}


def _row_names(problem: Problem) -> dict[str, list[str]]:
    if isinstance(problem, MoleculeProblem):
        rows = [str(row) for row in problem.molecules.rows.tolist()]
        return {"row": rows, "smiles": list(problem.ids)}
    return {"id": list(problem.ids)}


def _subset_of_row(split: Split, count: int) -> list[str]:
    subset = [""] * count
    for name, rows in split.parts().items():
        for row in rows.tolist():
            subset[row] = name
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


def _csv(columns: dict[str, list[str]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _versions() -> dict[str, str]:
    found = {"edgewise": __version__, "python": platform.python_version()}
    for package in ("torch", "numpy", "numba", "rdkit"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
