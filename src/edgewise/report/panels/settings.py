"""Every setting of the run; those that are not the preset's are marked."""

from dataclasses import dataclass, fields
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.recipe import Recipe, make_recipe
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.wording import NOTHING
from edgewise.runs import Run


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
    for setting in fields(Recipe):
        value, default = getattr(run.recipe, setting.name), getattr(preset, setting.name)
        groups.setdefault(setting.metadata["group"], []).append(
            SettingRow(
                setting.name,
                setting.metadata["help"],
                _shown(value),
                None if value == default else _shown(default),
            )
        )
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


def _preset(run: Run) -> Recipe:
    try:
        return make_recipe(run.source.kind, run.preset)
    except EdgewiseError:  # a preset that this version does not know
        return make_recipe(run.source.kind)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value) or NOTHING
    if isinstance(value, float):
        return f"{value:g}"
    return NOTHING if value is None or value == "" else str(value)


SETTINGS = Panel("settings", "Settings", settings_content, "settings.html.jinja")
