"""The settings of a run, found by their names: read from files, changed, compared, written."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from edgewise.core.declarations import (
    DataSettings,
    ModelSettings,
    SplitSettings,
    TrainingSettings,
)
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.setting import checked


@dataclass(frozen=True)
class Settings:
    """How to read the data, split them, build a model and train it."""

    data: DataSettings = field(default_factory=DataSettings)
    split: SplitSettings = field(default_factory=SplitSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def changed(self, **flat: Any) -> "Settings":
        """The same settings but for some, by their names alone."""
        parts: dict[str, dict[str, Any]] = {}
        for name, value in known(flat).items():
            parts.setdefault(PART_OF[name], {})[name] = checked(SETTINGS[name], value)
        return replace(
            self, **{part: replace(getattr(self, part), **new) for part, new in parts.items()}
        )

    def flat(self) -> dict[str, Any]:
        """Every setting by its name."""
        return {name: getattr(getattr(self, part), name) for name, part in PART_OF.items()}

    def differences(self) -> dict[str, Any]:
        """The settings that differ from their defaults: what tells two results apart.

        A setting that is added later, at its default, changes nothing here. The device is not
        part of it.
        """
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.flat().items()
            if value != SETTINGS[name].default and name not in _NO_IDENTITY
        }

    def to_json(self) -> dict[str, dict[str, Any]]:
        """A table for each part, as in a config file."""
        tables: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
        for name, value in self.flat().items():
            tables[PART_OF[name]][name] = list(value) if isinstance(value, tuple) else value
        return tables


PARTS: dict[str, type] = {
    "data": DataSettings,
    "split": SplitSettings,
    "model": ModelSettings,
    "training": TrainingSettings,
}
SETTINGS: dict[str, "Field[Any]"] = {
    one.name: one for part in PARTS.values() for one in fields(part)
}
PART_OF: dict[str, str] = {
    one.name: part for part, settings in PARTS.items() for one in fields(settings)
}
# Those of an import: what is predicted, how columns are read, and the split from whose rows they
# are learnt.
IMPORT_SETTINGS = frozenset(
    {"task", "target", "id_column", "source_column", "destination_column", "edges", "text"}
    | {"categories", "numbers", "ignore", "fit_on", "missing", "unknown", "duplicates"}
    | {"encoding", "decimal", "missing_values"}
    | {"split", "split_column", "stratify", "split_seed", "seed"}
    | {"predict", "directed", "time_column", "label_columns", "ports"}
)
# Names of version 0.1 that still work, with a notice.
RENAMED = {"target_column": "destination_column"}
_NO_IDENTITY = frozenset({"device"})


def unit_named(predict: str) -> str:
    """The unit that ``predict`` names: ``edges`` are those of the unit ``edge``; auto is none."""
    choices = SETTINGS["predict"].metadata["choices"]
    return "" if predict == SETTINGS["predict"].default else choices.named(predict)


def known(flat: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Settings by their names of today; a name that is none is refused."""
    named = {RENAMED.get(name, name): value for name, value in flat.items()}
    unknown = [name for name in named if name not in SETTINGS]
    if unknown:
        raise EdgewiseError(
            f"{where}there is no setting {preview(unknown)}; the settings are {', '.join(SETTINGS)}"
        )
    return named


def load_settings(content: Mapping[str, Any]) -> Settings:
    """Settings as a file gives them: a table for each part, or all in one as version 0.1 wrote."""
    return Settings().changed(**flattened(content))


def flattened(content: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The settings of tables named after the parts, and of those outside of any table."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if name in PARTS and isinstance(value, Mapping):
            inside = known(value, f"{where}[{name}] ")
            elsewhere = [inner for inner in inside if PART_OF[inner] != name]
            if elsewhere:
                raise EdgewiseError(
                    f"{where}{elsewhere[0]} stands in [{name}]; it belongs in "
                    f"[{PART_OF[elsewhere[0]]}]"
                )
            flat |= inside
        else:
            flat |= known({name: value}, where)
    return flat
