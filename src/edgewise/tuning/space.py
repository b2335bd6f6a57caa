"""What is searched: one table of settings, their values, and where they mean something."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import optuna

from edgewise.core.declarations import POOLINGS, ModelSettings
from edgewise.core.registries import LAYERS
from edgewise.core.settings import SETTINGS, Settings
from edgewise.data.sources import Source
from edgewise.tasks.base import Task
from edgewise.units.base import Unit


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; whole ones if ``low`` is whole."""

    low: int | float
    high: int | float
    log: bool = False


@dataclass(frozen=True)
class Searched:
    """A setting that is searched, and where it means something."""

    name: str
    among: tuple[Any, ...] | Range
    # Asked with the settings that are known by then, beside whether the setting holds at all.
    when: Callable[[ModelSettings], bool] = lambda model: True

    def suggest(self, trial: optuna.Trial) -> Any:
        if isinstance(self.among, tuple):
            return trial.suggest_categorical(self.name, self.among)
        low, high, log = astuple(self.among)
        if isinstance(low, int):
            return trial.suggest_int(self.name, low, high, log=log)
        return trial.suggest_float(self.name, low, high, log=log)

    def holds(self, source: Source, unit: Unit, task: Task) -> bool:
        """Whether the setting means something for these data, whatever the layer."""
        if self.name in unit.not_searched:
            return False
        owners = {"source": source.settings, "unit": unit.settings, "task": task.settings}
        owner = SETTINGS[self.name].metadata["of"]
        return owner not in owners or self.name in owners[owner]

    def holds_now(self, settings: Settings) -> bool:
        """Whether it means something beside the settings that are drawn already."""
        of_layer = SETTINGS[self.name].metadata["of"] == "layer"
        taken = self.name in LAYERS[settings.model.layer].settings
        return (taken or not of_layer) and self.when(settings.model)


# Normalisations that every layer has. One that few have keeps its layer, and is kept.
_SHARED = ("doubly_stochastic", "symmetric", "row")
# In the order in which they are drawn: what comes later may depend on what came before.
SPACE = (
    Searched("layer", ("conv", "attention"), when=lambda model: model.normalize in _SHARED),
    Searched("normalize", _SHARED, when=lambda model: model.normalize in _SHARED),
    Searched("depth", Range(1, 6)),
    # The only layer of a shallow network may be as wide as its outputs.
    Searched(
        "hidden",
        Range(8, 256, log=True),
        when=lambda model: model.head != "layer" or model.depth > 1,
    ),
    Searched("adapt", (True, False), when=lambda model: model.depth > 1 and model.heads == 1),
    Searched("dropout", Range(0.0, 0.7)),
    Searched("learning_rate", Range(1e-4, 3e-2, log=True)),
    Searched("weight_decay", Range(1e-6, 1e-2, log=True)),
    Searched("weighted", (False, True)),
    Searched("pooling", POOLINGS),
    Searched("featurizer", ("paper", "rich", "properties")),
    Searched("batch_size", (16, 32, 64, 128)),
)
