"""Data, command and versions, so that the run can be made again."""

from typing import Any

from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.wording import NOTHING


def provenance_content(given: PanelInput) -> dict[str, Any]:
    run = given.results.run
    return {
        "places": run.source.places,
        "notes": () if given.opened is None else given.opened.notes,
        "checksum": run.checksum,
        "command": run.command or NOTHING,
        "folder": str(run.folder),
        "versions": ", ".join(f"{name} {version}" for name, version in run.versions.items()),
    }


PROVENANCE = Panel("provenance", "Provenance", provenance_content, "provenance.html.jinja")
