"""What version 0.1 wrote, in the terms of today."""

from collections.abc import Mapping
from typing import Any

from edgewise.core.settings import RENAMED, Settings, load_settings

FORMAT_0_1 = "edgewise model 1"
RUN_FORMAT_0_1 = "edgewise run 1"
UNITS_0_1 = {"nodes": "node", "molecules": "graph"}
# What version 0.1 did where there is a setting today.
_IMPLIED = {
    "nodes": {"fit_on": "all", "head": "layer"},
    "molecules": {"head": "linear"},
}


def settings_0_1(recipe: Mapping[str, Any], kind: str) -> Settings:
    """The settings of a recipe of version 0.1, for ``"nodes"`` or ``"molecules"``."""
    return load_settings({**_IMPLIED[kind], **recipe})


# The settings of version 0.1, by their names then.
_NAMES_0_1 = (
    *("layer", "normalize", "adapt", "directed", "depth", "hidden", "heads", "dropout", "pooling"),
    *("featurizer", "pair_threshold", "learning_rate", "weight_decay", "epochs", "patience"),
    *("batch_size", "weighted", "scale_targets", "ensemble", "seed", "split", "split_column"),
    *("stratify", "split_seed", "task", "target", "smiles_column", "id_column", "source_column"),
    *("target_column", "edges", "text", "categories", "numbers", "ignore", "missing", "unknown"),
    *("duplicates", "on_invalid", "encoding"),
)


def recipe_0_1(settings: Settings) -> dict[str, Any]:
    """Settings as version 0.1 would have written them, to recognise its results."""
    flat = settings.flat()
    values = {name: flat[RENAMED.get(name, name)] for name in _NAMES_0_1}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
