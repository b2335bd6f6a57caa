"""The report of a run: one HTML file that needs nothing else, no network and no script."""

from edgewise.report.page import make_report
from edgewise.report.panels import register_panel
from edgewise.report.run_results import History, RunResults

__all__ = ["History", "RunResults", "make_report", "register_panel"]
