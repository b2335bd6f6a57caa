"""Every setting of the run; those that are not the preset's are marked."""

from dataclasses import dataclass
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.core.settings import PART_OF
from edgewise.core.settings import SETTINGS as DECLARED
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.run_info import RunInfo
from edgewise.report.wording import NOTHING


@dataclass(frozen=True)
class SettingRow:
    """A setting: its value, and that of the preset where it differs."""

    name: str
    help: str
    value: str
    preset: str | None


def settings_content(given: PanelInput) -> dict[str, Any]:
    """A table for each group of settings."""
    run = given.results.run
    preset = _preset(run)
    groups: dict[str, list[SettingRow]] = {}
    for name, value in run.settings.flat().items():
        default = None if value == preset[name] else _shown(preset[name])
        row = SettingRow(name, DECLARED[name].metadata["help"], _shown(value), default)
        groups.setdefault(PART_OF[name], []).append(row)
    rows = [row for group in groups.values() for row in group]
    changed = [row.name for row in rows if row.preset is not None]
    text = f"All {len(rows)} settings are those of the preset {run.preset}."
    if changed:
        verb = "differs" if len(changed) == 1 else "differ"
        text = (
            f"{len(changed)} of {len(rows)} settings {verb} from the preset {run.preset}: "
            f"{', '.join(changed)}."
        )
    return {"text": text, "groups": groups}


def _preset(run: RunInfo) -> dict[str, Any]:
    implied = run.source.implied
    try:
        return make_settings(run.unit.name, run.preset, implied=implied).flat()
    except EdgewiseError:  # a preset that this version does not know
        return make_settings(run.unit.name, implied=implied).flat()


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value) or NOTHING
    if isinstance(value, float):
        return f"{value:g}"
    return NOTHING if value is None or value == "" else str(value)


SETTINGS = Panel("settings", "Settings", settings_content, "settings.html.jinja")
