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
    """Put runs into one table, with mean and standard deviation over seeds; the best first."""
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
    table = Table(box=None, pad_edge=False)
    metric = lines[0].metric
    for name in ("run", *lines[0].differs):
        table.add_column(name, overflow="fold")
    for name in ("runs", f"validation {metric}", f"test {metric}", "seconds"):
        table.add_column(name, justify="right")
    for line in lines:
        table.add_row(
            Text(printable(line.name)),
            *(Text(printable(str(value))) for value in line.differs.values()),
            str(line.runs),
            _with_std(line.validation),
            _with_std(line.test),
            f"{line.seconds:.1f}",
        )
    Terminal().print(table)


def _with_std(value: tuple[float, float]) -> str:
    mean, std = value
    if math.isnan(mean):
        return "none"
    return f"{mean:.4f}" if math.isnan(std) else f"{mean:.4f} ± {std:.4f}"
