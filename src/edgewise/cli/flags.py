"""Every setting as a flag: its help, default and choices come from its declaration."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import Field, dataclass, field, replace
from typing import Annotated, Any

import typer

from edgewise.cli.console import say
from edgewise.core.config import read_config, says_something
from edgewise.core.plugins import load_plugins
from edgewise.core.presets import PRESETS
from edgewise.core.settings import PART_OF, PARTS, RENAMED, SETTINGS, unit_named

Data = Annotated[
    list[str],
    typer.Argument(
        help="a data set's name, a folder with nodes.csv and edges.csv, those two files, a graph "
        "store, a graph as .graphml or .safetensors, a file of molecules, a table of edges, or "
        "many graphs: graphs.csv, nodes.csv and edges.csv, a folder of .graphml files, or a "
        "TUDataset"
    ),
]
Preset = Annotated[str | None, typer.Option(help=f"settings to start from: {', '.join(PRESETS)}")]
Config = Annotated[str | None, typer.Option(help="TOML file with settings; flags win over it")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps (as in training)")]
_PLUGIN = Annotated[
    list[str] | None,
    typer.Option(
        help="Python file or module that registers your own layers, tasks, featurisers or data "
        "sets, may be repeated"
    ),
]


@dataclass(frozen=True)
class Chosen:
    """What the user chose: a preset, and settings that were given."""

    preset: str
    given: dict[str, Any]  # refused where they do not apply
    defaults: dict[str, Any] = field(default_factory=dict)  # of a file, equal to the default

    def with_seed(self, seed: Any) -> "Chosen":
        return replace(self, given={**self.given, "seed": seed})

    @property
    def named(self) -> dict[str, Any]:
        """All settings that are fixed."""
        return {**self.defaults, **self.given}

    @property
    def unit(self) -> str:
        """The unit that ``--predict`` names, if it does."""
        return unit_named(str(self.named.get("predict", SETTINGS["predict"].default)))


def setting_flags(
    command: Callable[..., None], names: Collection[str] = SETTINGS
) -> Callable[..., None]:
    """Give a command one flag for each of some settings; ``settings`` are those that were given."""
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "settings"]
    flags = [
        _flag(name, SETTINGS[name]) for part in PARTS for name in _of_part(part) if name in names
    ]
    flags += [_old_flag(old, SETTINGS[new]) for old, new in RENAMED.items() if new in names]

    def flagged(**arguments: Any) -> None:
        given = {flag.name: arguments.pop(flag.name) for flag in flags}
        settings = {k: v for k, v in given.items() if v is not None and v != []}
        command(**arguments, settings=_with_names_of_today(settings))

    return _as_command(flagged, command, [*own, *flags])


def with_plugins(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flag ``--plugin``, and load what it names first."""
    own = list(inspect.signature(command).parameters.values())
    flag = inspect.Parameter(
        "plugin", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_PLUGIN
    )

    def loaded(*, plugin: list[str] | None = None, **arguments: Any) -> None:
        load_plugins(plugin or ())
        command(**arguments)

    return _as_command(loaded, command, [*own, flag])


def chosen(preset: str | None, config: str | None, flags: dict[str, Any]) -> Chosen:
    """The preset and the settings to change in it: a config file's, then those of flags."""
    written = {} if config is None else read_config(config)
    named = preset or str(written.pop("preset", "default"))
    written.pop("preset", None)
    usual = {k: v for k, v in written.items() if not says_something(k, v)}
    given = {k: v for k, v in written.items() if k not in usual} | flags
    return Chosen(named, given, usual)


def _with_names_of_today(settings: dict[str, Any]) -> dict[str, Any]:
    for old in settings.keys() & RENAMED.keys():
        say(
            f"edgewise: {_dashed(old)} is called {_dashed(RENAMED[old])} today, and goes away in "
            "version 0.3",
            err=True,
        )
    return {RENAMED.get(name, name): value for name, value in settings.items()}


def _flag(name: str, one: "Field[Any]") -> inspect.Parameter:
    choices: Collection[str] = one.metadata["choices"]
    option = typer.Option(
        help=f"{one.metadata['help']} {_default(one)}",
        metavar="|".join(choices) or None,
        rich_help_panel=PART_OF[name].capitalize(),
    )
    return _parameter(name, one, option)


def _old_flag(old: str, one: "Field[Any]") -> inspect.Parameter:
    return _parameter(old, one, typer.Option(hidden=True))


def _parameter(name: str, one: "Field[Any]", option: Any) -> inspect.Parameter:
    kinds: dict[Any, Any] = {tuple[str, ...]: list[str] | None, int | None: int | None}
    annotation = kinds.get(one.type, one.type | None)  # type: ignore[operator]
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[annotation, option],
    )


def _as_command(
    made: Callable[..., None], like: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    made.__doc__, made.__name__ = like.__doc__, like.__name__
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    made.__annotations__ = {p.name: p.annotation for p in parameters}
    return made


def _default(one: "Field[Any]") -> str:
    """``(64; graph: 32; paper, graph: 16)``."""
    usual = _shown(one.default)
    others = []
    for preset, units in PRESETS.items():
        for unit, changes in units.items():
            value = _shown(changes.get(one.name, one.default))
            label = unit if preset == "default" else f"{preset}, {unit}"
            if value != usual:
                others.append(f"{label}: {value}")
    text = "; ".join(filter(None, (usual, *others)))
    return f"({text})" if text else ""


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value in ((), "", None) else str(value)


def _of_part(part: str) -> list[str]:
    return [name for name, home in PART_OF.items() if home == part]


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"
