"""Metrics of each binary label."""

from typing import Any

from edgewise.report.output_table import output_table
from edgewise.report.panels.panel import Panel, PanelInput


def labels_content(given: PanelInput) -> dict[str, Any]:
    return {"tables": [output_table(given.results)]}


LABELS = Panel("labels", "Labels", labels_content)
