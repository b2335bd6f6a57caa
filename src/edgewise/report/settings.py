"""How the run was made: settings, versions, data and command."""

from dataclasses import fields
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.recipe import Recipe, make_recipe
from edgewise.report.markup import Markup, element, joined, table
from edgewise.report.wording import NOTHING
from edgewise.runs import Run


def settings_section(run: Run) -> Markup:
    """Every field of the recipe; those that are not the preset's are marked."""
    preset = _preset(run)
    changed = [f.name for f in fields(Recipe) if _differs(run, preset, f.name)]
    told = f"All {len(fields(Recipe))} settings are those of the preset {run.preset}."
    if changed:
        verb = "differs" if len(changed) == 1 else "differ"
        told = (
            f"{len(changed)} of {len(fields(Recipe))} settings {verb} from the preset "
            f"{run.preset}: {', '.join(changed)}."
        )
    groups = list(dict.fromkeys(f.metadata["group"] for f in fields(Recipe)))
    tables = [_group(run, preset, group, changed) for group in groups]
    return element("div", element("p", told), element("div", *tables, class_="columns"))


def _preset(run: Run) -> Recipe:
    try:
        return make_recipe(run.source.kind, run.preset)
    except EdgewiseError:  # a preset that this version does not know
        return make_recipe(run.source.kind)


def _differs(run: Run, preset: Recipe, name: str) -> bool:
    return bool(getattr(run.recipe, name) != getattr(preset, name))


def _group(run: Run, preset: Recipe, group: str, changed: list[str]) -> Markup:
    cells = []
    for knob in (f for f in fields(Recipe) if f.metadata["group"] == group):
        value: Markup = element("span", _shown(getattr(run.recipe, knob.name)))
        if knob.name in changed:
            default = element("small", f"preset: {_shown(getattr(preset, knob.name))}")
            value = joined((element("mark", value), " ", default))
        name = joined((element("span", knob.name), element("small", knob.metadata["help"])))
        cells.append((name, value))
    body = table(("setting", "value"), cells, words=2, label=f"Settings: {group}")
    return element("figure", element("figcaption", group.capitalize()), body, class_="settings")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value) or NOTHING
    if isinstance(value, float):
        return f"{value:g}"
    return NOTHING if value is None or value == "" else str(value)


def origin_section(run: Run, notes: tuple[str, ...]) -> Markup:
    """Data, command and versions, so that it can be made again."""
    facts: list[tuple[str, Markup]] = [
        ("data", element("span", *_lines(run.source.places))),
        ("SHA-256 of the data", element("code", run.checksum)),
        ("command", element("code", run.command or NOTHING)),
        ("folder", element("code", str(run.folder))),
        ("versions", element("span", ", ".join(f"{k} {v}" for k, v in run.versions.items()))),
    ]
    if notes:
        facts.insert(1, ("what was read", element("span", *_lines(notes))))
    listed = (element("div", element("dt", name), element("dd", value)) for name, value in facts)
    return element("dl", *listed, class_="facts")


def _lines(texts: tuple[str, ...]) -> list[Markup]:
    return [element("span", text, class_="line") for text in texts]
