"""Put the report together."""

from collections.abc import Sequence

from edgewise.report.blocks import Section
from edgewise.report.heading import report_heading
from edgewise.report.panels import PanelInput, find_panel
from edgewise.report.rendering import render_page
from edgewise.report.run_results import RunResults
from edgewise.report.theme import drawing
from edgewise.report.wording import count
from edgewise.training.predictor import Predictor
from edgewise.units.base import Opened


def make_report(
    results: RunResults,
    model: Predictor,
    opened: Opened | None,
    *,
    unavailable: str = "",
    notices: Sequence[str] = (),
    panels: Sequence[str] | None = None,
) -> str:
    """The report of a run, as a page that needs nothing else.

    Args:
        results: The run, and all it predicted.
        model: The trained model.
        opened: Its data; None where they are gone, and what needs them is left out.
        unavailable: Why they are gone.
        notices: Sentences that a reader should know first, beside those of the run on its data.
        panels: Names of the sections, in order; by default those of the task.
    """
    run = results.run
    given = PanelInput(results, model, opened, unavailable)
    chosen = [find_panel(name) for name in (results.task.panels if panels is None else panels)]
    with drawing():
        contents = [(panel, panel.content(given)) for panel in chosen]
    return render_page(
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
        notices=(*run.notices, *notices),
        interrupted="" if results.metrics["finished"] else _epochs(results),
        resume=f"edgewise train --resume {run.folder}",
    )


def _epochs(results: RunResults) -> str:
    return count(sum(results.metrics["epochs"]), "epoch")
