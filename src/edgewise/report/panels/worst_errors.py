"""The worst errors: wrong answers of high probability, values that are far off."""

from typing import Any

from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.run_results import RunResults
from edgewise.report.unit_views import WorstRows
from edgewise.report.wording import number, share, signed
from edgewise.tasks.records import WorstError

MOST = 12


def worst_errors(results: RunResults, most: int = MOST) -> tuple[WorstError, ...]:
    """Of the judged subset, the worst first."""
    rows = results.rows(results.judged)
    return results.task.worst_errors(results.truth, results.predicted, rows, most)


def errors_content(given: PanelInput) -> dict[str, Any]:
    """Molecules as cards, nodes as a table."""
    results = given.results
    errors = worst_errors(results)
    if not errors:
        text = f"None: every {results.judged} row is predicted correctly."
        return {"text": text, "template": ""}
    text = f"The {len(errors)} {results.judged} rows with the largest errors."
    if results.task.error_is_probability:
        text = f"The {len(errors)} wrong {results.judged} predictions of the highest probability."
    if len(errors) == 1:
        text = f"The only wrong {results.judged} prediction."
    if results.std is not None:
        text += " Behind ±, the standard deviation over the members."
    problem = None if given.opened is None else given.opened.problem
    facts = [_facts(results, error) for error in errors]
    worst = WorstRows(errors, facts, results.ids, results.truth, problem)
    shown = given.unit.error_content(worst)
    return {"text": text, "template": given.unit.template, **shown}


def _facts(results: RunResults, error: WorstError) -> list[tuple[str, str]]:
    observed, predicted = _words(error.observed), _words(error.predicted)
    std = None if results.std is None else float(results.std[error.row, error.output])
    if results.task.error_is_probability:
        deviation = "" if std is None else f" ± {100 * std:.1f}"
        size = share(error.size) + deviation
        return [("true", observed), ("predicted", predicted), ("probability", size)]
    deviation = "" if std is None else f" ± {number(std)}"
    size = signed(error.size)
    return [("observed", observed), ("predicted", predicted + deviation), ("error", size)]


def _words(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)


WORST_ERRORS = Panel("worst-errors", "Worst errors", errors_content, "worst_errors.html.jinja")
