"""``edgewise train``: data in, a run folder out; or a run that was stopped, continued."""

import atexit
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli.console import Console, Interrupt, for_tensorboard, say
from edgewise.cli.flags import Chosen, Config, Data, Preset, chosen
from edgewise.core.errors import EdgewiseError
from edgewise.core.torchrun import launched

if TYPE_CHECKING:
    from edgewise.runs import Run


def train(
    data: Data = [],  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="folder of the run (runs/NAME)")] = None,
    preset: Preset = None,
    config: Config = None,
    resume: Annotated[
        Path | None, typer.Option(help="continue this run, which was stopped; give it alone")
    ] = None,
    repeat: Annotated[int, typer.Option(help="number of runs, with consecutive seeds", min=1)] = 1,
    workers: Annotated[
        int | None,
        typer.Option(
            help="processes that train together on this machine, each with a share of every batch "
            "and of the processors (1)",
            min=1,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="print nothing")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="print one line of JSON for each event")
    ] = False,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard", help="also write TensorBoard logs into the run's tensorboard/"
        ),
    ] = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Train a model, and leave a folder with the model, its metrics, predictions and a report."""
    _take_place()
    console = Console(quiet=quiet, as_json=json)
    if resume is not None:
        device = str(settings.pop("device", ""))
        if data or settings or config or preset or out or repeat > 1:
            raise EdgewiseError(
                "a run that is continued keeps its data and settings; give --resume RUN alone, or "
                "with --device or --workers"
            )
        _one_run(console, tensorboard, resume=resume, device=device, workers=workers)
        return
    if not data:
        raise EdgewiseError(
            "there is nothing to train on; give a data set's name, a folder, the tables or the "
            "file of a graph, or a file of molecules (edgewise train --help)"
        )
    choice = chosen(preset, config, settings)
    first = choice.named.get("seed", 0)
    folders = []
    for number in range(repeat):
        place = out if out is None or repeat == 1 else Path(f"{out}-{number}")
        run = _one_run(
            console,
            tensorboard,
            data=data,
            out=place,
            # Anything but a whole number is left for the settings to refuse.
            choice=choice.with_seed(first + number if type(first) is int else first),
            workers=workers,
        )
        folders.append(run.folder)
    if repeat > 1:
        from edgewise.cli.compare import show_comparison

        show_comparison(console, folders)


def _take_place() -> None:
    """Where torchrun started this process: all but the first follow that one, and write nothing."""
    place = launched()
    if place is None:
        return
    if place.rank:
        from edgewise.runs.follow import follow_torchrun

        raise typer.Exit(follow_torchrun())
    from edgewise.runs.rendezvous import release_others

    atexit.register(release_others)


def _one_run(
    console: Console,
    tensorboard: bool,
    *,
    data: list[str] | None = None,
    out: Path | None = None,
    choice: Chosen | None = None,
    resume: Path | None = None,
    device: str = "",
    workers: int | None = None,
) -> "Run":
    from edgewise import runs
    from edgewise.data.sources import find_source

    watch = for_tensorboard() if tensorboard else None  # before a folder is made
    wanted = "" if choice is None else choice.unit
    source = find_source(data or [], wanted) if resume is None else None
    title = source.name if source is not None else Path(str(resume)).name
    watchers: list[Any] = []
    with _stoppable(console) as interrupt, console.working(title) as show:

        def on_start(run: "Run") -> None:
            if watch is not None:
                watchers.append(watch(run.folder))
            training = run.settings.training
            watchers.append(console.epochs(show, training.epochs, training.ensemble))

        def on_epoch(*what: Any) -> None:
            for watcher in watchers:
                watcher(*what)

        callbacks: dict[str, Any] = {
            "tell": console.tell,
            "progress": show,
            "on_start": on_start,
            "on_epoch": on_epoch,
            "stop": interrupt,
        }
        if resume is not None:
            run = runs.resume(resume, device=device, workers=workers, **callbacks)
        else:
            assert source is not None
            assert choice is not None
            run = runs.train(
                source,
                out,
                preset=choice.preset,
                config=choice.defaults,
                workers=workers,
                command=shlex.join(["edgewise", *sys.argv[1:]]),
                **callbacks,
                **choice.given,
            )
    _summary(console, run)
    if interrupt() and not run.finished:
        console.tell(f"stopped early; continue with: edgewise train --resume {run.folder}")
        raise typer.Exit(128 + interrupt.signal)
    return run


@contextmanager
def _stoppable(console: Console) -> Iterator[Interrupt]:
    """Ctrl-C ends the run after an epoch; where there was none yet, the command ends as asked."""
    with Interrupt(console) as interrupt:
        try:
            yield interrupt
        except EdgewiseError as error:
            if not interrupt():
                raise
            say(f"edgewise: {error}", err=True)
            raise typer.Exit(128 + interrupt.signal) from error


def _summary(console: Console, run: "Run") -> None:
    metrics = run.metrics
    name = metrics["headline"]
    console.event("done", run=str(run.folder), metrics=metrics)
    test, validation = (metrics[part][name] for part in ("test", "validation"))
    shown = [
        f"{part} {name} {value:.4f}"
        for part, value in (("test", test), ("validation", validation))
        if value is not None
    ]
    best = ", ".join(str(number) for number in metrics["best_epochs"])
    share = metrics.get("descriptors_weight")
    described = "" if share is None else f"weight of descriptors {share:.2f}; "
    console.tell(
        f"{'; '.join(shown) or f'{name} is not defined on validation and test'}; "
        f"best epoch {best} of {max(metrics['epochs'])}; {described}{metrics['seconds']:.1f} s"
    )
    console.tell(f"{run.folder / 'report.html'} shows more")
