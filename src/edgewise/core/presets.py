"""Settings to start from: what each preset changes in the defaults, for each unit."""

from collections.abc import Mapping
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import Settings

# Chosen on the validation edges of Bitcoin OTC, see benchmarks/versus_edges.py.
_EDGES: dict[str, Any] = {
    "layer": "gated",
    "normalize": "row",
    "depth": 2,
    "hidden": 64,
    "channels": 8,
    "dropout": 0.1,
    "encoder": "linear",
    "activation": "relu",
    "norm": "batch",
    "residual": True,
    "head": "mlp",
    "learning_rate": 0.003,
    "weight_decay": 0.0001,
    "epochs": 300,
    "patience": 30,
    "batch_size": 65536,
}
_LINKS: dict[str, Any] = {
    **{name: value for name, value in _EDGES.items() if name != "batch_size"},
    "split": "0.8,0.1,0.1",
    "dropout": 0.2,
    "epochs": 100,
    "patience": 40,
    # Validation links stand among twenty other pairs, training links beside one: losses differ.
    "monitor": "score",
}
_GRAPHS: dict[str, Any] = {"split": "molecules", "head": "linear"}
# Of the networks of the paper on whole graphs: what suits them better than the paper's own.
_SMALL_NETWORK: dict[str, Any] = {
    **_GRAPHS,
    "hidden": 32,
    "dropout": 0.0,
    "learning_rate": 0.002,
    "weight_decay": 0.0001,
    "epochs": 300,
    "patience": 50,
    "batch_size": 32,
}
# docs/defaults.md says what chose them.
_DEEP_NETWORK: dict[str, Any] = {
    "split": "molecules",
    "layer": "gated",
    "normalize": "none",
    "encoder": "linear",
    "depth": 4,
    "hidden": 128,
    "channels": 32,
    "dropout": 0.0,
    "activation": "relu",
    "norm": "batch",
    "residual": True,
    "feed_forward": 2,
    "pooling": "mean+max+sum",
    "head": "mlp",
    "featurizer": "properties",
    "descriptors": "auto",  # where the graphs are molecules
    "optimizer": "adamw",
    "learning_rate": 0.001,
    "schedule": "cosine",
    "clip": 5.0,
    "weight_decay": 0.00001,
    "epochs": 60,
    "patience": 60,
    "batch_size": 64,
}
# What graphs that come as SMILES imply, whatever the preset: bonds have no direction, and sums over
# the few bonds of an atom need no norm, which costs accuracy there (docs/defaults.md).
OF_MOLECULES: dict[str, Any] = {"directed": False, "norm": "none"}
# A small portfolio, from which regime = auto chooses on validation data; see docs/defaults.md.
_ROOTED: dict[str, Any] = {"root_weight": True}
_RESIDUAL: dict[str, Any] = {
    "encoder": "linear",
    "incident": True,
    "depth": 5,
    "hidden": 64,
    "dropout": 0.2,
    "activation": "relu",
    "norm": "batch",
    "residual": True,
    "head": "linear",
    "normalize": "row",
    "optimizer": "adamw",
    "learning_rate": 0.003,
    "weight_decay": 0.0001,
    "monitor": "score",
}
PORTFOLIO: dict[str, dict[str, dict[str, Any]]] = {
    "node": {
        "shallow": _ROOTED,
        "wide": {**_RESIDUAL, **_ROOTED, "depth": 2, "dropout": 0.6},
        "deep": {**_RESIDUAL, **_ROOTED, "depth": 15, "learning_rate": 0.01},
        "gated": {**_RESIDUAL, "layer": "gated"},
    },
    "edge": {"direct": {"paths": False}, "paths": {"paths": True}},
}
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "default": {
        "node": {"regime": "auto"},
        "edge": {**_EDGES, "regime": "auto"},
        "link": _LINKS,
        "graph": _DEEP_NETWORK,
    },
    "fast": {
        "node": {"layer": "conv", **_ROOTED},
        "edge": _EDGES,
        "link": _LINKS,
        "graph": _SMALL_NETWORK,
    },
    "paper": {
        "node": {},
        # Of which the paper has none.
        "edge": {"head": "linear", "batch_size": 65536},
        "link": {"head": "linear"},
        "graph": {
            **_GRAPHS,
            "hidden": 16,
            "dropout": 0.0,
            "learning_rate": 0.0005,
            "weight_decay": 0.0001,
            "epochs": 2000,
            "patience": 200,
            "batch_size": 16,  # the paper does not say; see docs/reproduction.md
        },
    },
}
# Where neighbours are sampled: one step is some nodes or edges, not the whole graph.
_SAMPLED: dict[str, dict[str, dict[str, Any]]] = {
    "node": {
        "default": {
            "normalize": "row",
            "dropout": 0.2,
            "epochs": 100,
            "patience": 10,
            "batch_size": 1024,
        },
        "fast": {"batch_size": 1024},
        "paper": {"batch_size": 1024},
    },
    "edge": {
        "default": {**_EDGES, "batch_size": 1024},
        "fast": {**_EDGES, "batch_size": 1024},
        "paper": {"head": "linear", "batch_size": 1024},
    },
    "link": {
        "default": {**_LINKS, "batch_size": 1024},
        "fast": {**_LINKS, "batch_size": 1024},
        "paper": {"head": "linear", "batch_size": 1024},
    },
}
# Where another layer is asked for than the preset's own.
_OTHER_LAYERS = {
    "edge": {**_EDGES, "layer": "conv"},
    "link": {**_LINKS, "layer": "conv"},
    "graph": _SMALL_NETWORK,
}


def make_settings(
    unit: str,
    preset: str = "default",
    *,
    implied: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Settings:
    """The settings of a preset for a unit (``"node"``, ``"graph"``), with some of them changed.

    Edges that are undirected have no direction to encode, unless ``directed`` is given as well.

    Args:
        unit: What one row of predictions is.
        preset: ``"default"``, ``"fast"`` or ``"paper"``.
        implied: What the data decide, unless ``changes`` say otherwise.
        changes: Settings by their names.

    Example:
        >>> make_settings("graph", "paper", layer="attention").model.hidden
        16
    """
    if preset not in PRESETS:
        raise EdgewiseError(f"there is no preset {preset!r}; choose one of {', '.join(PRESETS)}")
    undirected = {"directed": False} if changes.get("edges") == "undirected" else {}
    base = {**_start(unit, preset, changes), **(implied or {}), **undirected}
    return Settings().changed(**{**_in_regime(unit, base, changes), **changes})


def decided_settings(unit: str) -> frozenset[str]:
    """The settings that the portfolio of a unit decides about."""
    return frozenset(name for regime in PORTFOLIO.get(unit, {}).values() for name in regime)


def _in_regime(unit: str, base: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """With what a regime says; who sets one of its settings has chosen a network already."""
    overlap = [name for name in changes if name in decided_settings(unit)]
    named = changes.get("regime")
    if named is None:
        return {**base, "regime": "given"} if overlap and "regime" in base else base
    if named == "auto" and overlap:
        raise EdgewiseError(
            f"regime = auto decides about {', '.join(overlap)}; leave out one or the other"
        )
    regimes = PORTFOLIO.get(unit, {})
    if regimes and named not in (others := ("given", "auto", *regimes)):
        raise EdgewiseError(
            f"regime = {named} is not for the unit {unit}; choose one of {', '.join(others)}"
        )
    return {**base, **regimes.get(named, {})}


def _start(unit: str, preset: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What the preset says; its network is that of its own layer, and another layer has another."""
    said = PRESETS[preset].get(unit, {})
    if changes.get("neighbors") and unit in _SAMPLED:
        return _SAMPLED[unit][preset]
    own = said.get("layer")
    return said if own is None or changes.get("layer", own) == own else _OTHER_LAYERS.get(unit, {})


def recipe_0_1(**changes: Any) -> Settings:
    """What ``Recipe(...)`` was in version 0.1: the settings of nodes, with some changed."""
    return make_settings("node", "paper", **changes)


def make_recipe_0_1(kind: str, preset: str = "default", **changes: Any) -> Settings:
    """What ``make_recipe`` was in version 0.1, for ``"nodes"`` or ``"molecules"``."""
    unit, implied = {"nodes": ("node", {}), "molecules": ("graph", OF_MOLECULES)}[kind]
    return make_settings(unit, preset, implied=implied, **changes)
