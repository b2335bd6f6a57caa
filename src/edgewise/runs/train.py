"""Train a model, or continue a run: data in, a run folder out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError, out_of_memory
from edgewise.core.files import alone_in, inside, sweep
from edgewise.core.settings import Settings, unit_named
from edgewise.core.team import Team, WorkerLost
from edgewise.core.torchrun import launched
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
from edgewise.runs.follow import check_same, request
from edgewise.runs.rendezvous import Rendezvous, assembled, number_of_workers
from edgewise.runs.report import has_report, write_report
from edgewise.training.portfolio import decided
from edgewise.units.base import Opened, Show, Tell, Unit, resolve

RUNS = Path("runs")


def train(
    data: str | Path | Source | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    preset: str = "default",
    config: Mapping[str, Any] | None = None,
    workers: int | None = None,
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
        workers: Processes that train together, each with its share of every batch; the others are
            started here. Without it one, or those that torchrun started.
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
    count = number_of_workers(workers)
    if count > 1:
        _check_divisible(unit, resolved, count)
    with new_folder(out, source.name) as folder:
        check_free(folder)
        with assembled(count, resolved.training.device) as others:
            others.ask(request(source, resolved))
            opened = unit.open(source, resolved, progress)
            _tell_about(opened, tell)
            found, resolved = opened.notices, opened.problem.settings
            with _joined(others, opened) as team, alone_in(folder, "training"):
                run = start_run(folder, source, resolved, preset, command, found, count)
                with _can_go_on(run), _forgetting_untrained(run, stop):
                    asked = team.agreed(stop)
                    run, opened = _in_regime(run, opened, tell, progress, asked, team)
                    on_start(run)
                    trained = train_run(run, opened, on_epoch, asked, team=team)
                write_report(run, opened, trained)
    return run


def resume(
    folder: str | Path,
    *,
    device: str = "",
    workers: int | None = None,
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
        workers: Processes that train together; it must be as many as before, which it is without.
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
        count = _as_many_as_before(run, workers)
        with assembled(count, run.settings.training.device) as others:
            others.ask(request(run.source, run.settings, inside(run.folder, "splits.json")))
            opened = reopen(run, progress)
            with _joined(others, opened) as team, _can_go_on(run):
                asked = team.agreed(stop)
                run, opened = _in_regime(run, opened, tell, progress, asked, team)
                on_start(run)
                trained = train_run(run, opened, on_epoch, asked, team=team)
                write_report(run, opened, trained)
    return run


def _check_divisible(unit: Unit, settings: Settings, workers: int) -> None:
    unit.check_divisible(settings)
    size = settings.training.batch_size
    if size < workers:
        raise EdgewiseError(
            f"batches of {size} rows cannot be divided among {workers} workers; set a larger "
            "batch_size, or start fewer workers"
        )


def _as_many_as_before(run: Run, workers: int | None) -> int:
    """How many processes continue a run; with others it would not end as it would have."""
    count = run.workers if workers is None and launched() is None else number_of_workers(workers)
    if count != run.workers:
        raise EdgewiseError(
            f"{run.folder} was started with {run.workers} worker(s), and only as many end with the "
            f"same bits, not {count}; continue it with that number"
        )
    return count


@contextmanager
def _joined(others: Rendezvous, opened: Opened) -> Iterator[Team]:
    """The processes that train together, when they have read their data: the same."""
    with others.joined(opened.problem.data.device) as team:
        check_same(team, opened.problem)
        yield team


@contextmanager
def _can_go_on(run: Run) -> Iterator[None]:
    """Say how to continue where a process of a team was lost."""
    try:
        yield
    except WorkerLost as error:
        raise WorkerLost(f"{error}; continue with edgewise train --resume {run.folder}") from error


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
    run: Run,
    opened: Opened,
    tell: Tell,
    progress: Show | None,
    stop: Callable[[], bool],
    team: Team,
) -> tuple[Run, Opened]:
    """The run with its regime, chosen and written down if that was left open."""
    problem = decided(opened.problem, tell=tell, progress=progress, stop=stop, team=team)
    if problem is opened.problem:
        return run, opened
    return settled(run, problem.settings), replace(opened, problem=problem)


@contextmanager
def _forgetting_untrained(run: Run, stop: Callable[[], bool]) -> Iterator[None]:
    try:
        yield
    except (EdgewiseError, MemoryError, RuntimeError) as error:
        lost = stop() or isinstance(error, WorkerLost)
        if not lost and (isinstance(error, EdgewiseError) or out_of_memory(error)):
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
