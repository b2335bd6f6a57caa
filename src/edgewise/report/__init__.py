"""The report of a run: one HTML file that needs nothing else, no network and no script."""

from edgewise.report.page import has_report, write_report

__all__ = ["has_report", "write_report"]
