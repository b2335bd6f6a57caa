"""``edgewise tune``: try settings, one training after another, and leave the best as a file."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgewise.cli.console import Console, Interrupt, say
from edgewise.cli.flags import Config, Data, Preset, chosen

if TYPE_CHECKING:
    from edgewise.training import Epoch
    from edgewise.tuning import Trial, Tuned
    from edgewise.units.base import Opened

_SHOWN = 5  # trials in the table at the end


def tune(
    data: Data,
    trials: Annotated[int, typer.Option(help="trainings with other settings, in all", min=1)] = 30,
    out: Annotated[Path | None, typer.Option(help="folder of the search (tune-NAME)")] = None,
    preset: Preset = None,
    config: Config = None,
    timeout: Annotated[
        float | None, typer.Option(help="seconds after which no trial is begun")
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="trainings of a trial, whose scores are averaged", min=1)
    ] = 1,
    storage: Annotated[
        str,
        typer.Option(
            help="share the search with other processes or machines: a file for a journal, or a "
            "URL of Optuna's, such as postgresql://user@host/base"
        ),
    ] = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="print nothing")] = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Search for settings that do well on the validation set. What you give is not searched.

    The same command again continues a search that was stopped.
    """
    from edgewise.data.sources import find_source
    from edgewise.tuning import tune as search
    from edgewise.units.base import resolve

    choice = chosen(preset, config, settings)
    source = find_source(data, choice.unit)
    unit, base = resolve(source, choice.preset, choice.given, also=choice.defaults)
    folder = out or Path(f"tune-{source.name}")
    console = Console(quiet=quiet)

    def on_open(opened: "Opened") -> None:
        for note in opened.notes:
            console.tell(note)
        for notice in opened.notices:
            console.tell(f"notice: {notice}")
        console.tell(f"{opened.problem.task}; searching in {folder}")

    def on_trial(trial: "Trial", so_far: "Tuned") -> None:
        console.tell(_line(trial, so_far))

    with Interrupt(console) as interrupt, console.working(folder.name) as show:

        def on_epoch(number: int, epoch: "Epoch", so_far: "Tuned") -> None:
            score = f"{so_far.task.headline} {epoch.validation_score:.4f}"
            show(f"trial {number}, epoch {epoch.number}, {score}", so_far.counted, trials)

        tuned = search(
            source,
            unit,
            base,
            choice.named,
            folder,
            trials=trials,
            repeats=repeats,
            timeout=timeout,
            storage=storage,
            progress=show,
            on_open=on_open,
            on_epoch=on_epoch,
            on_trial=on_trial,
            stop=interrupt,
        )
    if not quiet:
        _summary(tuned, data)
    if interrupt():
        console.tell("stopped early; the same command continues")
        raise typer.Exit(128 + interrupt.signal)


def _line(trial: "Trial", so_far: "Tuned") -> str:
    settings = ", ".join(f"{name} {_shown(value)}" for name, value in trial.settings.items())
    spent = f"{trial.epochs} epoch{'s' * (trial.epochs != 1)}, {trial.seconds:.1f} s"
    if trial.value is None:
        return f"trial {trial.number}: {trial.state}, {trial.reason} ({spent}; {settings})"
    best = " (the best)" if so_far.ranking[0] == trial else ""
    pruned = ", pruned" if trial.state == "pruned" else ""
    score = f"{so_far.task.headline} {trial.value:.4f}{best}{pruned}"
    return f"trial {trial.number}: {score}; {spent}; {settings}"


def _summary(tuned: "Tuned", data: list[str]) -> None:
    from rich.console import Console as Terminal
    from rich.table import Table

    states = [trial.state for trial in tuned.trials]
    counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
    say(f"{tuned.counted} trials ({counts}); the best on the validation set:")
    table = Table(box=None, pad_edge=False)
    # Settings below one another, for there are more of them than fit on a line.
    best = tuned.ranking[:_SHOWN]
    for heading in ("trial", *(str(trial.number) for trial in best)):
        table.add_column(heading, overflow="fold")
    table.add_row(tuned.task.headline, *(f"{trial.value:.4f}" for trial in best))
    for name in tuned.names:
        if not any(name in trial.settings for trial in best):
            continue  # such as adapt, where attention is not searched
        table.add_row(name, *(_shown(trial.settings.get(name, "")) for trial in best))
    Terminal().print(table)
    say(f"train with them: {_next(data, tuned)}")


def _next(data: list[str], tuned: "Tuned") -> str:
    return shlex.join(["edgewise", "train", *data, "--config", str(tuned.folder / "best.toml")])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
