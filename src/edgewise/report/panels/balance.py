"""How many rows of each subset have each class or label."""

from dataclasses import dataclass
from typing import Any

from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.wording import share


@dataclass(frozen=True)
class Bar:
    """A count, and its share as words and as the width of a bar."""

    count: str
    share: str
    width: str


def balance_content(given: PanelInput) -> dict[str, Any]:
    """A row for each class or label, a bar for each subset."""
    results = given.results
    task, present = results.task, results.present
    counts = [task.class_counts(results.truth[results.rows(subset)]) for subset in present]
    rows = [
        (of_output[0].name, [_bar(count.positives, count.known) for count in of_output])
        for of_output in zip(*counts, strict=True)
    ]
    return {"word": task.output_word, "subsets": present, "rows": rows}


def _bar(part: int, whole: int) -> Bar:
    of_all = part / whole if whole else 0.0
    return Bar(f"{part:,}", share(of_all), f"{100 * of_all:.1f}")


BALANCE = Panel("balance", "Balance", balance_content, "balance.html.jinja")
