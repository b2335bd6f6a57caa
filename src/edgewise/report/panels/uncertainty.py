"""Nominal and observed coverage of prediction intervals or sets."""

import math
from collections.abc import Callable
from typing import Any

from edgewise.report.blocks import TableData
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.wording import NOTHING, number, share

PARTS = ("validation", "test")


def uncertainty_content(given: PanelInput) -> dict[str, Any] | None:
    """A row for each calibrated score, with its coverage in the validation and the test set."""
    results, conformal = given.results, given.model.conformal
    task = results.task
    parts = [p for p in PARTS if p in results.present and "coverage" in results.metrics[p]]
    if conformal is None or not parts:
        return None
    header = [task.output_word, "nominal"]
    for part in parts:
        header += [f"{part} rows", "observed", task.region_size]
    rows = []
    for name in task.score_names:
        row = [name, share(conformal.coverage)]
        for part in parts:
            found = results.metrics[part]["coverage"].get(name, {})
            row += [f"{int(found.get('rows') or 0):,}", _shown(found.get("observed"), share)]
            row.append(_shown(found.get("size"), number))
        rows.append(row)
    nominal = share(conformal.coverage)
    text = [
        f"A {task.region_word} holds the truth of {nominal} of new rows, if these are like the "
        "validation rows, from which it was learnt (split conformal prediction)."
    ]
    pairs = zip(task.score_names, conformal.quantiles, strict=True)
    unbounded = [name for name, quantile in pairs if math.isinf(quantile)]
    if unbounded:
        text.append(
            f"There were too few validation rows to bound the {task.region_word} of "
            f"{', '.join(unbounded)}: at {nominal} it takes "
            f"{math.ceil(conformal.coverage / (1 - conformal.coverage) - 1e-9)}."
        )
    return {"text": text, "tables": [TableData("Coverage", header, rows)]}


def _shown(value: float | None, words: Callable[[float], str]) -> str:
    return NOTHING if value is None else words(value)


UNCERTAINTY = Panel("uncertainty", "Uncertainty", uncertainty_content)
