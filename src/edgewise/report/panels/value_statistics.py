"""Mean, standard deviation and range of the values in each subset."""

from typing import Any

from edgewise.report.blocks import TableData
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.wording import number

_HEADER = (
    *("target", "subset", "rows", "mean", "standard deviation"),
    *("minimum", "median", "maximum"),
)


def statistics_content(given: PanelInput) -> dict[str, Any]:
    """A table with a row for each target and subset."""
    results = given.results
    found = [
        (place, subset, statistics)
        for place, subset in enumerate(results.present)
        for statistics in results.task.value_statistics(results.truth[results.rows(subset)])
    ]
    order = {name: k for k, name in enumerate(results.task.names)}
    found.sort(key=lambda entry: (order[entry[2].name], entry[0]))
    rows = [
        (
            *(s.name, subset, f"{s.rows:,}"),
            *map(number, (s.mean, s.std, s.minimum, s.median, s.maximum)),
        )
        for _, subset, s in found
    ]
    return {"tables": [TableData("Values in each subset", _HEADER, rows, words=2)]}


VALUE_STATISTICS = Panel("value-statistics", "Values", statistics_content)
