"""Train a model, or continue a run: data in, a run folder out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError, out_of_memory
from edgewise.core.files import alone_in, sweep
from edgewise.core.settings import unit_named
from edgewise.data.sources import Source, find_source
from edgewise.runs.checkpoint import OnEpoch, train_run
from edgewise.runs.folder import (
    Run,
    check_free,
    forget_untrained,
    open_run,
    reopen,
    settled,
    start_run,
)
from edgewise.runs.report import has_report, write_report
from edgewise.training.portfolio import decided
from edgewise.units.base import Opened, Show, Tell, resolve

RUNS = Path("runs")


def train(
    data: str | Path | Source | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    preset: str = "default",
    config: Mapping[str, Any] | None = None,
    command: str = "",
    tell: Tell = lambda _: None,
    progress: Show | None = None,
    on_start: Callable[[Run], None] = lambda run: None,
    on_epoch: OnEpoch | None = None,
    stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> Run:
    """Train a model on a data set, a graph or molecules, and leave a run folder.

    Args:
        data: A data set's name, a folder or two tables of a graph, or a file of molecules.
        out: The folder; without it a new one below ``runs/``.
        preset: ``"default"``, ``"fast"`` or ``"paper"``.
        config: Settings from a file, which ``settings`` win over.
        command: What the report names as its origin.
        tell: Called with each thing worth telling.
        progress: Called while molecules are read.
        on_start: Called with the run, when its folder and its data are ready.
        on_epoch: Called after each epoch with the member, the epoch and the best one so far.
        stop: Asked after each epoch whether to end with the best weights so far.
        settings: Those that differ from the preset's, by their names; one that does not apply
            is refused.
    """
    wanted = {**(config or {}), **settings}.get("predict", "auto")
    source = as_source(data, unit_named(str(wanted)))
    unit, resolved = resolve(source, preset, settings, also=config)
    with new_folder(out, source.name) as folder:
        check_free(folder)
        opened = unit.open(source, resolved, progress)
        _tell_about(opened, tell)
        found, resolved = opened.notices, opened.problem.settings
        with alone_in(folder, "training"):
            run = start_run(folder, source, resolved, preset, command, found)
            with _forgetting_untrained(run, stop):
                run, opened = _in_regime(run, opened, tell, progress, stop)
                on_start(run)
                trained = train_run(run, opened, on_epoch, stop)
            write_report(run, opened, trained)
    return run


def resume(
    folder: str | Path,
    *,
    device: str = "",
    tell: Tell = lambda _: None,
    progress: Show | None = None,
    on_start: Callable[[Run], None] = lambda run: None,
    on_epoch: OnEpoch | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Continue a run that was killed or interrupted; it ends as if nothing had happened.

    Args:
        folder: Of the run.
        device: Where to continue; without it where it began.
        tell: Called with each thing worth telling.
        progress: Called while molecules are read.
        on_start: Called with the run, when its folder and its data are ready.
        on_epoch: Called after each epoch with the member, the epoch and the best one so far.
        stop: Asked after each epoch whether to end with the best weights so far.
    """
    run = open_run(folder).on(device)
    with alone_in(run.folder, "training"):
        sweep(run.folder)  # a report that was killed on its way, too
        if run.finished:
            tell(f"{run.folder} is finished already")
            if not has_report(run):
                write_report(run)
            return run
        run, opened = _in_regime(run, reopen(run, progress), tell, progress, stop)
        on_start(run)
        trained = train_run(run, opened, on_epoch, stop)
        write_report(run, opened, trained)
    return run


def _tell_about(opened: Opened, tell: Tell) -> None:
    problem = opened.problem
    for note in opened.notes:
        tell(note)
    columns = problem.unit.summarised_columns(problem)
    if columns:
        tell(columns)
    for notice in opened.notices:
        tell(f"notice: {notice}")
    tell(f"{problem.task}; {problem.split}")


def as_source(data: str | Path | Source | Sequence[str | Path], unit: str = "") -> Source:
    """The source of what a user names, and of what a row is to be."""
    if isinstance(data, Source):
        return data
    places = [data] if isinstance(data, str | Path) else data
    return find_source([str(place) for place in places], unit)


def _in_regime(
    run: Run, opened: Opened, tell: Tell, progress: Show | None, stop: Callable[[], bool]
) -> tuple[Run, Opened]:
    """The run with its regime, chosen and written down if that was left open."""
    problem = decided(opened.problem, tell=tell, progress=progress, stop=stop)
    if problem is opened.problem:
        return run, opened
    return settled(run, problem.settings), replace(opened, problem=problem)


@contextmanager
def _forgetting_untrained(run: Run, stop: Callable[[], bool]) -> Iterator[None]:
    try:
        yield
    except (EdgewiseError, MemoryError, RuntimeError) as error:
        if not stop() and (isinstance(error, EdgewiseError) or out_of_memory(error)):
            forget_untrained(run)  # settings that make no model
        raise


@contextmanager
def new_folder(out: str | Path | None, name: str) -> Iterator[Path]:
    """The folder that a user names, or a new one; a failure leaves none that was not there before.

    Args:
        out: What the user names.
        name: Of what is learnt from, for a new one.
    """
    there = {path for path in (RUNS, *([] if out is None else [Path(out)])) if path.exists()}
    folder = reserve_folder(name) if out is None else Path(out)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # only what holds nothing
            for path in (folder, *([RUNS] if folder.parent == RUNS else [])):
                if path not in there:
                    path.rmdir()
        raise


def reserve_folder(name: str) -> Path:
    """Make ``runs/NAME``, or the first of ``runs/NAME-2``, ``runs/NAME-3`` that is free."""
    number, folder = 1, RUNS / name
    try:
        RUNS.mkdir(exist_ok=True)
        while True:
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
                folder = RUNS / f"{name}-{number}"
            else:
                return folder
    except OSError as error:
        raise EdgewiseError(
            f"cannot make {folder} ({error.strerror}); choose a place with --out"
        ) from error
