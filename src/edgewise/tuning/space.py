"""What is searched: one table of settings, their values, and where they mean something."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import optuna

from edgewise.core.recipe import Recipe


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
    kinds: tuple[str, ...] = ("nodes", "molecules")
    tasks: tuple[str, ...] = ("classification", "multilabel", "regression")
    # Asked with the kind of problem and the settings that are known by then.
    when: Callable[[str, Recipe], bool] = lambda kind, recipe: True

    def suggest(self, trial: optuna.Trial) -> Any:
        if isinstance(self.among, tuple):
            return trial.suggest_categorical(self.name, self.among)
        low, high, log = astuple(self.among)
        if isinstance(low, int):
            return trial.suggest_int(self.name, low, high, log=log)
        return trial.suggest_float(self.name, low, high, log=log)


# In the order in which they are drawn: what comes later may hang on what came before.
SPACE = (
    Searched("layer", ("conv", "attention"), when=lambda _, r: r.normalize != "gcn"),
    # Not gcn, which attention does not have.
    Searched("normalize", ("doubly_stochastic", "symmetric", "row")),
    Searched("depth", Range(1, 3)),
    # The only layer of a shallow node model is as wide as there are classes.
    Searched(
        "hidden", Range(8, 128, log=True), when=lambda kind, r: kind != "nodes" or r.depth > 1
    ),
    Searched(
        "adapt",
        (True, False),
        when=lambda _, r: r.layer == "attention" and r.depth > 1 and r.heads == 1,
    ),
    Searched("dropout", Range(0.0, 0.7)),
    Searched("learning_rate", Range(1e-4, 3e-2, log=True)),
    Searched("weight_decay", Range(1e-6, 1e-2, log=True)),
    Searched("weighted", (False, True), tasks=("classification", "multilabel")),
    Searched("pooling", ("max", "mean", "sum"), kinds=("molecules",)),
    Searched("featurizer", ("paper", "rich"), kinds=("molecules",)),
    Searched("batch_size", (16, 32, 64, 128), kinds=("molecules",)),
)
