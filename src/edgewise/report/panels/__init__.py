"""The panels of the report, by name. A new one is a module here, or a call of register_panel."""

from edgewise.core.errors import EdgewiseError
from edgewise.report.panels.balance import BALANCE
from edgewise.report.panels.classes import CLASSES
from edgewise.report.panels.embeddings import EMBEDDINGS
from edgewise.report.panels.labels import LABELS
from edgewise.report.panels.learning import LEARNING
from edgewise.report.panels.metrics import METRICS_TABLE
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.panels.predictions import PREDICTIONS
from edgewise.report.panels.probabilities import PROBABILITIES
from edgewise.report.panels.provenance import PROVENANCE
from edgewise.report.panels.ranking import RANKING
from edgewise.report.panels.settings import SETTINGS
from edgewise.report.panels.time import TIME
from edgewise.report.panels.uncertainty import UNCERTAINTY
from edgewise.report.panels.value_statistics import VALUE_STATISTICS
from edgewise.report.panels.worst_errors import WORST_ERRORS

__all__ = ["PANELS", "Panel", "PanelInput", "find_panel", "register_panel"]

PANELS: dict[str, Panel] = {
    panel.name: panel
    for panel in (
        *(LEARNING, CLASSES, LABELS, PREDICTIONS, RANKING, PROBABILITIES, UNCERTAINTY, TIME),
        *(BALANCE, VALUE_STATISTICS, EMBEDDINGS, WORST_ERRORS, METRICS_TABLE, SETTINGS, PROVENANCE),
    )
}


def register_panel(panel: Panel) -> Panel:
    """Make a panel known by its name; a name that is taken is refused."""
    if panel.name in PANELS:
        raise EdgewiseError(f"there is a panel {panel.name!r} already; choose another name")
    PANELS[panel.name] = panel
    return panel


def find_panel(name: str) -> Panel:
    """The panel of that name."""
    if name not in PANELS:
        raise EdgewiseError(f"there is no panel {name!r}; choose from {', '.join(PANELS)}")
    return PANELS[name]
