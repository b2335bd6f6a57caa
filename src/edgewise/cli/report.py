"""``edgewise report``: write the HTML report of a run again."""

from pathlib import Path
from typing import Annotated

import typer

from edgewise.cli.console import say


def report(run: Annotated[Path, typer.Argument(help="the folder of a run")]) -> None:
    """Write report.html of a run again, from what its folder holds."""
    from edgewise.runs import open_run
    from edgewise.runs.report import write_report

    say(f"wrote {write_report(open_run(run))}")
