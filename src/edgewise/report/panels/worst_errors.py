"""The worst errors: wrong answers of high probability, values that are far off."""

from typing import Any

from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.run_results import RunResults
from edgewise.report.task_records import WorstError
from edgewise.report.wording import number, share, signed

MOST = 12


def worst_errors(results: RunResults, most: int = MOST) -> tuple[WorstError, ...]:
    """Of the judged subset, the worst first."""
    rows = results.rows(results.judged)
    return results.view.worst_errors(results.truth, results.predicted, rows, most)


def errors_content(given: PanelInput) -> dict[str, Any]:
    """Molecules as cards, nodes as a table."""
    results = given.results
    errors = worst_errors(results)
    if not errors:
        told = f"None: every {results.judged} row is predicted correctly."
        return {"text": told, "template": ""}
    told = f"The {len(errors)} {results.judged} rows with the largest errors."
    if results.view.error_is_probability:
        told = f"The {len(errors)} wrong {results.judged} predictions of the highest probability."
    if len(errors) == 1:
        told = f"The only wrong {results.judged} prediction."
    problem = None if given.opened is None else given.opened.problem
    facts = [_facts(results, error) for error in errors]
    shown = given.unit.error_content(errors, facts, results.ids, results.truth, problem)
    return {"text": told, "template": given.unit.template, **shown}


def _facts(results: RunResults, error: WorstError) -> list[tuple[str, str]]:
    shares = results.view.error_is_probability
    written = share if shares else number
    facts = [
        ("true" if shares else "observed", _words(error.observed)),
        ("predicted", _words(error.predicted)),
        ("probability", share(error.size)) if shares else ("error", signed(error.size)),
    ]
    if results.std is not None:
        facts.append(("standard deviation", written(float(results.std[error.row, error.output]))))
    return facts


def _words(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)


WORST_ERRORS = Panel("worst-errors", "Worst errors", errors_content, "worst_errors.html.jinja")
