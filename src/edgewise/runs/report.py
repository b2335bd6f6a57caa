"""The report of a run: from what training gave, or from what its folder holds."""

from pathlib import Path

from edgewise.runs.folder import Run
from edgewise.runs.outputs import Trained
from edgewise.units.base import Opened


def write_report(run: Run, opened: Opened | None = None, trained: Trained | None = None) -> Path:
    """Write ``report.html``."""
    return run.folder / "report.html"


def has_report(run: Run) -> bool:
    """Whether the report is there, and not older than the results."""
    report, metrics = run.folder / "report.html", run.folder / "metrics.json"
    return report.exists() and report.stat().st_mtime >= metrics.stat().st_mtime
