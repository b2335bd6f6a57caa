"""Every field of Recipe as a flag: its help, default and choices come from the field."""

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from edgewise.core.recipe import KINDS, PRESETS, Recipe, read_config

_PANELS = {"data": "Data", "split": "Split", "model": "Model", "training": "Training"}

Data = Annotated[
    list[str],
    typer.Argument(
        help="a data set's name, a folder with nodes.csv and edges.csv, those two files, "
        "a graph as .graphml or .safetensors, or a file of molecules"
    ),
]
Preset = Annotated[str | None, typer.Option(help=f"settings to start from: {', '.join(PRESETS)}")]
Config = Annotated[str | None, typer.Option(help="TOML file with settings; flags win over it")]


def recipe_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one flag per setting; ``settings`` becomes those that the user gave."""
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "settings"]
    flags = [_flag(knob) for panel in _PANELS for knob in fields(Recipe) if _group(knob) == panel]

    def flagged(**arguments: Any) -> None:
        given = {flag.name: arguments.pop(flag.name) for flag in flags}
        settings = {k: v for k, v in given.items() if v is not None and v != []}
        command(**arguments, settings=settings)

    flagged.__doc__ = command.__doc__
    flagged.__name__ = command.__name__
    flagged.__signature__ = inspect.Signature([*own, *flags])  # type: ignore[attr-defined]
    flagged.__annotations__ = {p.name: p.annotation for p in (*own, *flags)}
    return flagged


def chosen(
    preset: str | None, config: str | None, flags: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The preset and the settings to change in it: a config file's, then those of flags."""
    written = {} if config is None else read_config(config)
    named = preset or str(written.pop("preset", "default"))
    return named, {k: v for k, v in written.items() if k != "preset"} | flags


def _flag(knob: "Field[Any]") -> inspect.Parameter:
    kinds: dict[Any, Any] = {tuple[str, ...]: list[str] | None, int | None: int | None}
    annotation = kinds.get(knob.type, knob.type | None)  # type: ignore[operator]
    choices = knob.metadata["choices"]
    option = typer.Option(
        help=f"{knob.metadata['help']} {_default(knob)}",
        metavar="|".join(choices) or None,
        rich_help_panel=_PANELS[_group(knob)],
    )
    return inspect.Parameter(
        knob.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[annotation, option],
    )


def _default(knob: "Field[Any]") -> str:
    """``(64; molecules: 32; paper, molecules: 16)``."""
    usual = _shown(knob.default)
    others = []
    for preset in PRESETS:
        for kind in KINDS:
            value = _shown(PRESETS[preset][kind].get(knob.name, knob.default))
            label = kind if preset == "default" else f"{preset}, {kind}"
            if value != usual:
                others.append(f"{label}: {value}")
    text = "; ".join(filter(None, (usual, *others)))
    return f"({text})" if text else ""


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value in ((), "", None) else str(value)


def _group(knob: "Field[Any]") -> str:
    return str(knob.metadata["group"])
