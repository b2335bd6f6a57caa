"""Every metric of every subset."""

from typing import Any

from edgewise.report.blocks import TableData
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.wording import METRICS, metric


def metrics_content(given: PanelInput) -> dict[str, Any]:
    """A table with a column for each subset."""
    results = given.results
    present = results.present[::-1]
    names = dict.fromkeys(
        name
        for subset in present
        for name, value in results.metrics[subset].items()
        if not isinstance(value, dict)
    )
    # Several targets: a row counts once for each that is known.
    several = len(results.task.names) > 1
    words = {**METRICS, "rows": "known values" if several else "rows"}
    rows = [
        (words.get(name, name), *(metric(name, results.metrics[s].get(name)) for s in present))
        for name in names
    ]
    return {"tables": [TableData("All metrics", ("metric", *present), rows)], "narrow": True}


METRICS_TABLE = Panel("metrics", "All metrics", metrics_content)
