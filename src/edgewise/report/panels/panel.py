"""What a panel of the report is, and what it is made from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.report.run_results import RunResults
from edgewise.report.unit_views import AnyUnitView, unit_view
from edgewise.training.predictor import Predictor
from edgewise.units.base import Opened


@dataclass(frozen=True, eq=False)
class PanelInput:
    """What there is to show of a run.

    Args:
        results: All it predicted.
        model: The trained model.
        opened: The data, or None where they are unavailable.
        unavailable: The reason, in that case.
    """

    results: RunResults
    model: Predictor
    opened: Opened | None
    unavailable: str = ""

    @property
    def unit(self) -> AnyUnitView:
        """What is special to nodes or molecules."""
        run = self.results.run
        return unit_view(run.source.row_view or run.unit.error_view)

    def judged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, truth and predictions of the subset that tells how good the model is."""
        rows = self.results.rows(self.results.judged)
        return rows, self.results.truth[rows], self.results.predicted[rows]


@dataclass(frozen=True)
class Panel:
    """A section of the report.

    Args:
        name: In the registry; also the anchor of the section.
        title: Its heading.
        content: What the template is given as ``panel``: plain data and drawings. None leaves
            the section out.
        template: By default one that shows ``text``, ``figures``, ``tables`` and ``notes``.
        package: Where the template is, in its folder ``templates``.
    """

    name: str
    title: str
    content: Callable[[PanelInput], Mapping[str, Any] | None]
    template: str = "panel.html.jinja"
    package: str = "edgewise.report"
