"""Put the report together, and write it."""

from pathlib import Path

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.fitted import Fitted
from edgewise.problems import Opened
from edgewise.report.balance import balance_section
from edgewise.report.confusion import confusion_section
from edgewise.report.embedding_map import map_section
from edgewise.report.headline import banner, headline, metrics_table
from edgewise.report.labels import labels_section
from edgewise.report.learning import learning_section
from edgewise.report.markup import element
from edgewise.report.mistakes import mistakes_section
from edgewise.report.ranking import ranking_section
from edgewise.report.results import Results, read_results
from edgewise.report.settings import origin_section, settings_section
from edgewise.report.shell import Sections, whole_page
from edgewise.report.theme import drawing
from edgewise.report.values import values_section
from edgewise.runs import Run, reopen


def write_report(run: Run, opened: Opened | None = None) -> Path:
    """Write ``report.html`` into the folder of a run.

    Args:
        run: From :func:`~edgewise.runs.open_run`; it needs results, if only of some epochs.
        opened: Its problem, if it is at hand. Else the data are read again; where they are gone,
            the report says so and leaves out what needs them.

    Returns:
        The place of the report.
    """
    model = run.model()
    results = read_results(run, model.task)
    reason = ""
    if opened is None:
        opened, reason = _reopened(run)
    with drawing():
        page = whole_page(
            f"{run.source.name}: Edgewise report",
            headline(results),
            _sections(results, model, opened, reason),
            f"Made by Edgewise {run.versions.get('edgewise', '')}.",
            banner(results),
        )
    path = run.folder / "report.html"
    write_atomically(path, page)
    return path


def has_report(run: Run) -> bool:
    """Whether the report is there, and not older than the results."""
    report, metrics = run.folder / "report.html", run.folder / "metrics.json"
    return report.exists() and report.stat().st_mtime >= metrics.stat().st_mtime


def _reopened(run: Run) -> tuple[Opened | None, str]:
    """The problem of a run, or the reason why it cannot be had any more."""
    try:
        return reopen(run), ""
    except (EdgewiseError, OSError) as error:
        return None, str(error)


def _sections(results: Results, model: Fitted, opened: Opened | None, reason: str) -> Sections:
    kind = results.task.kind
    found: Sections = [("learning", "Learning curves", learning_section(results))]
    if kind == "classification":
        found.append(("classes", "Classes", confusion_section(results)))
    if kind == "multilabel":
        found.append(("labels", "Labels", labels_section(results)))
    if kind == "regression":
        found.append(("values", "Predictions", values_section(results)))
    else:
        found.append(("ranking", "Probabilities", ranking_section(results)))
    title = "Values" if kind == "regression" else "Balance"
    found.append(("balance", title, balance_section(results)))
    if opened is None:
        gone = f"The data cannot be had any more, so there is no map of the embeddings: {reason}."
        found.append(("map", "Embeddings", element("p", gone, class_="note")))
    else:
        found.append(("map", "Embeddings", map_section(results, model, opened.problem)))
    problem = None if opened is None else opened.problem
    found.append(("mistakes", "Worst mistakes", mistakes_section(results, problem)))
    found.append(("metrics", "All metrics", metrics_table(results)))
    found.append(("settings", "Settings", settings_section(results.run)))
    notes = () if opened is None else opened.notes
    found.append(("origin", "Where it comes from", origin_section(results.run, notes)))
    return found
