"""Put the report together, and write it."""

from collections.abc import Sequence
from pathlib import Path

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.problems import Opened
from edgewise.report.blocks import Section
from edgewise.report.heading import report_heading
from edgewise.report.panels import PanelInput, find_panel
from edgewise.report.rendering import render_page
from edgewise.report.run_results import RunResults
from edgewise.report.theme import drawing
from edgewise.report.wording import count
from edgewise.runs import Run, reopen


def write_report(
    run: Run,
    opened: Opened | None = None,
    *,
    results: RunResults | None = None,
    notices: Sequence[str] = (),
    panels: Sequence[str] | None = None,
) -> Path:
    """Write ``report.html`` into the folder of a run.

    Args:
        run: From :func:`~edgewise.runs.open_run`; it needs results, if only of some epochs.
        opened: Its problem, if it is at hand. Else the data are read again; where they are gone,
            the report says so and leaves out what needs them.
        results: What was predicted, if it is at hand. Else it is read from the folder.
        notices: Sentences on the data that a reader should know first.
        panels: Names of the sections, in order; by default those of the task.

    Returns:
        The place of the report.
    """
    model = run.model()
    if results is None:
        results = RunResults.from_folder(run, model.task)
    reason = ""
    if opened is None:
        opened, reason = _reopened(run)
    given = PanelInput(results, model, opened, reason)
    chosen = [find_panel(name) for name in (results.view.panels if panels is None else panels)]
    with drawing():
        contents = [(panel, panel.content(given)) for panel in chosen]
    page = render_page(
        f"{run.source.name}: Edgewise report",
        report_heading(results),
        [
            Section(panel.name, panel.title, panel.template, content)
            for panel, content in contents
            if content is not None
        ],
        f"Made by Edgewise {run.versions.get('edgewise', '')}.",
        template="report.html.jinja",
        packages=[panel.package for panel in chosen],
        notices=tuple(notices),
        interrupted="" if results.metrics["finished"] else _epochs(results),
        resume=f"edgewise train --resume {run.folder}",
    )
    path = run.folder / "report.html"
    write_atomically(path, page)
    return path


def has_report(run: Run) -> bool:
    """Whether the report is there, and not older than the results."""
    report, metrics = run.folder / "report.html", run.folder / "metrics.json"
    return report.exists() and report.stat().st_mtime >= metrics.stat().st_mtime


def _reopened(run: Run) -> tuple[Opened | None, str]:
    """The problem of a run, or the reason why it is unavailable."""
    try:
        return reopen(run), ""
    except (EdgewiseError, OSError) as error:
        return None, str(error)


def _epochs(results: RunResults) -> str:
    return count(sum(results.metrics["epochs"]), "epoch")
