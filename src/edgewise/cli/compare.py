"""``edgewise compare``: runs side by side, those that differ only in their seeds as one line."""

import json as json_format
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.console import Console, say, without_nan
from edgewise.core.terminal import printable


def compare(
    runs: Annotated[list[Path], typer.Argument(help="folders of runs")],
    json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Put runs into one table, with mean and standard deviation over seeds.

    The best on validation stands first.
    """
    if json:
        from edgewise.runs.compare import compare as compared

        lines = [vars(line) for line in compared(runs)]
        say(json_format.dumps(without_nan(lines), indent=1))
        return
    show_comparison(Console(), runs)


def show_comparison(console: Console, folders: Sequence[Path]) -> None:
    """Print the table, or one event with its lines."""
    from rich.console import Console as Terminal
    from rich.table import Table
    from rich.text import Text

    from edgewise.runs.compare import compare as compared

    lines = compared(folders)
    console.event("comparison", lines=[vars(line) for line in lines])
    if console.quiet or console.as_json:
        return
    names = [Text(printable(line.name)) for line in lines]
    scores = Table(box=None, pad_edge=False)
    metric = lines[0].metric
    scores.add_column("run", overflow="fold")
    for title in ("runs", f"validation {metric}", f"test {metric}", "seconds"):
        scores.add_column(title, justify="right", no_wrap=True)
    for name, line in zip(names, lines, strict=True):
        means = _with_std(line.validation), _with_std(line.test)
        scores.add_row(name, str(line.runs), *means, f"{line.seconds:.1f}")
    Terminal().print(scores)
    if lines[0].differs:
        # Below, for there may be many: a regime or a preset decides about a dozen.
        settings = Table(box=None, pad_edge=False)
        settings.add_column("setting", no_wrap=True)
        for name in names:
            settings.add_column(name, overflow="fold")
        for setting in lines[0].differs:
            values = (Text(printable(str(line.differs[setting]))) for line in lines)
            settings.add_row(setting, *values)
        Terminal().print()
        Terminal().print(settings)


def _with_std(value: tuple[float, float]) -> str:
    mean, std = value
    if math.isnan(mean):
        return "none"
    return f"{mean:.4f}" if math.isnan(std) else f"{mean:.4f} ± {std:.4f}"
