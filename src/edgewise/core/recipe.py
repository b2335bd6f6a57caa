"""Every knob of a training run and its default: flags, config files and saved settings follow."""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.files import write_atomically

NORMALIZATIONS = ("doubly_stochastic", "symmetric", "row", "gcn")
TASKS = ("auto", "classification", "multilabel", "regression")


def _knob(
    default: Any,
    help: str,
    group: str,
    choices: tuple[str, ...] = (),
    low: float | int = -math.inf,
    high: float | int = math.inf,
) -> Any:
    """A field with its help text and what values it may take, ``low`` and ``high`` included."""
    return field(
        default=default,
        metadata={"help": help, "group": group, "choices": choices, "low": low, "high": high},
    )


_BELOW_ONE = 0.999999


@dataclass(frozen=True)
class Architecture:
    """What a network is made of, apart from the widths that the data decide."""

    layer: str = _knob(
        "conv", "conv, which is EGNN(C), or attention, EGNN(A)", "model", ("conv", "attention")
    )
    normalize: str = _knob(
        "doubly_stochastic", "how edge channels are normalised", "model", NORMALIZATIONS
    )
    adapt: bool = _knob(True, "attention: each layer's edges are the next one's", "model")
    directed: bool = _knob(True, "nodes: direction as channels, three for one", "model")
    depth: int = _knob(2, "number of layers", "model", low=1, high=100)
    hidden: int = _knob(
        64, "width of a hidden layer, per edge channel and head", "model", low=1, high=10_000
    )
    heads: int = _knob(
        1, "attention without adaptation: heads of the hidden layers", "model", low=1
    )
    dropout: float = _knob(
        0.6, "on the input of each layer and on attention", "model", low=0, high=_BELOW_ONE
    )


@dataclass(frozen=True)
class Recipe(Architecture):
    """How to read the data, split them, build a model and train it.

    The defaults are for nodes of one graph. :func:`make_recipe` gives those of a preset, for
    nodes or for molecules.
    """

    pooling: str = _knob("max", "molecules: atoms to molecule", "model", ("max", "mean", "sum"))
    featurizer: str = _knob("paper", "molecules: numbers of an atom", "model", ("paper", "rich"))
    pair_threshold: int = _knob(
        10, "molecules: bonds a pair of elements needs for a channel of its own", "model", low=0
    )

    learning_rate: float = _knob(0.005, "of Adam", "training", low=1e-12)
    weight_decay: float = _knob(0.0005, "L2 on weights, not on biases", "training", low=0)
    epochs: int = _knob(1000, "at most; early stopping usually ends sooner", "training", low=1)
    patience: int = _knob(
        100, "epochs without a lower validation loss before stopping", "training", low=1
    )
    batch_size: int = _knob(64, "molecules in a step", "training", low=1, high=1_000_000)
    weighted: bool = _knob(False, "weigh classes by how rare they are in training", "training")
    scale_targets: bool = _knob(
        True, "regression: learn targets of mean 0 and spread 1", "training"
    )
    ensemble: int = _knob(1, "models, whose predictions are averaged", "training", low=1, high=1000)
    seed: int = _knob(0, "of the split, the initial weights and dropout", "training", low=0)

    split: str = _knob(
        "dense",
        "dense (60/20/20), sparse (5/15/80), molecules (80/10/10), scaffold, three shares such "
        "as 0.7,0.1,0.2, or a JSON file of row numbers",
        "split",
    )
    split_column: str = _knob("", "column that says train, validation or test", "split")
    stratify: bool = _knob(False, "keep the shares of classes or values in each subset", "split")
    split_seed: int | None = _knob(None, "of the split alone, if not the seed", "split", low=0)

    task: str = _knob("auto", "what is learnt, if it cannot be guessed", "data", TASKS)
    target: tuple[str, ...] = _knob((), "column to be predicted, may be repeated", "data")
    smiles_column: str = _knob("", "molecules: column of SMILES, if not called so", "data")
    id_column: str = _knob("id", "nodes table: column that names each node", "data")
    source_column: str = _knob("source", "edges table: where an edge starts", "data")
    target_column: str = _knob("target", "edges table: where an edge ends", "data")
    edges: str = _knob("directed", "what an edge is", "data", ("directed", "undirected"))
    text: tuple[str, ...] = _knob((), "column to read as text, may be repeated", "data")
    categories: tuple[str, ...] = _knob((), "column to read as categories", "data")
    numbers: tuple[str, ...] = _knob((), "column to read as numbers", "data")
    ignore: tuple[str, ...] = _knob((), "column to leave out", "data")
    missing: str = _knob("error", "empty cells among node numbers", "data", ("error", "mean"))
    unknown: str = _knob("error", "edges to unknown nodes", "data", ("error", "drop"))
    duplicates: str = _knob("error", "repeated edges", "data", ("error", "sum", "max"))
    on_invalid: str = _knob("skip", "molecules that cannot be read", "data", ("skip", "error"))
    encoding: str = _knob("utf-8", "of text files", "data")

    def __post_init__(self) -> None:
        for knob in fields(self):
            object.__setattr__(self, knob.name, _checked(knob, getattr(self, knob.name)))
        if self.layer == "conv" and self.heads > 1:
            raise EdgewiseError("heads belong to attention; set layer = attention, or heads = 1")

    def to_json(self) -> dict[str, Any]:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


KINDS = ("nodes", "molecules")
_MOLECULES: dict[str, Any] = {"directed": False, "split": "molecules"}
# What a preset changes in the defaults above, for nodes and for molecules.
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "default": {
        "nodes": {},
        "molecules": {
            **_MOLECULES,
            "hidden": 32,
            "dropout": 0.0,
            "learning_rate": 0.002,
            "weight_decay": 0.0001,
            "epochs": 300,
            "patience": 50,
            "batch_size": 32,
        },
    },
    "paper": {
        "nodes": {},
        "molecules": {
            **_MOLECULES,
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


def make_recipe(kind: str, preset: str = "default", **settings: Any) -> Recipe:
    """The settings of a preset for ``"nodes"`` or ``"molecules"``, with some of them changed.

    Edges that are undirected have no direction to encode, unless ``directed`` is given as well.

    Example:
        >>> make_recipe("molecules", "paper", layer="attention").hidden
        16
    """
    if preset not in PRESETS:
        raise EdgewiseError(f"there is no preset {preset!r}; choose one of {', '.join(PRESETS)}")
    implied = {"directed": False} if settings.get("edges") == "undirected" else {}
    return load_recipe({**PRESETS[preset][kind], **implied, **settings})


def read_config(path: str | Path) -> dict[str, Any]:
    """The settings in a TOML file: names of :class:`Recipe` fields, and ``preset`` if it likes."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise EdgewiseError(f"{path} cannot be read ({error.strerror}); check the name") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EdgewiseError(
            f"{path} is not TOML ({error}); write lines like hidden = 64"
        ) from error
    _known({k: v for k, v in content.items() if k != "preset"}, f"{path}: ")
    return content


def write_config(path: str | Path, settings: Mapping[str, Any]) -> None:
    """Write settings as TOML that :func:`read_config` reads; ``None`` is left out."""
    # JSON's strings, numbers, booleans and flat lists are TOML's, too.
    written = {k: json.dumps(v, ensure_ascii=False) for k, v in settings.items() if v is not None}
    lines = [f"{k} = {v}" for k, v in written.items()]
    write_atomically(path, "\n".join([*lines, ""]))


def load_recipe(content: Mapping[str, Any]) -> Recipe:
    """A recipe from settings as a file or a flag gives them, such as :meth:`Recipe.to_json`."""
    _known(content, "")
    knobs = {knob.name: knob for knob in fields(Recipe)}
    return Recipe(**{name: _checked(knobs[name], value) for name, value in content.items()})


def _known(settings: Mapping[str, Any], where: str) -> None:
    names = [knob.name for knob in fields(Recipe)]
    strangers = [name for name in settings if name not in names]
    if strangers:
        raise EdgewiseError(
            f"{where}there is no setting {preview(strangers)}; the settings are {', '.join(names)}"
        )


def _checked(knob: Any, value: Any) -> Any:
    """The value in the field's type, or a sentence."""
    limits, wanted = knob.metadata, knob.type
    if wanted == tuple[str, ...]:
        items = (value,) if isinstance(value, str) else value
        if isinstance(items, list | tuple) and all(isinstance(item, str) for item in items):
            return tuple(items)
        raise EdgewiseError(f"{knob.name} = {value!r} is not a list of column names")
    if wanted == int | None and value is None:
        return None
    number = wanted in (int, float, int | None)
    right = {bool: bool, str: str, float: int | float}.get(wanted, int)
    if not isinstance(value, right) or (number and isinstance(value, bool)):
        name = {bool: "true or false", str: "a word", float: "a number"}.get(
            wanted, "a whole number"
        )
        raise EdgewiseError(f"{knob.name} = {value!r} is not {name}")
    if limits["choices"] and value not in limits["choices"]:
        raise EdgewiseError(
            f"{knob.name} = {value!r} is not known; choose one of {', '.join(limits['choices'])}"
        )
    if number and not (math.isfinite(float(value)) and limits["low"] <= value <= limits["high"]):
        most = {_BELOW_ONE: " and below 1", math.inf: ""}.get(
            limits["high"], f" and at most {limits['high']:,}"
        )
        raise EdgewiseError(
            f"{knob.name} = {value} is out of range; it must be at least {limits['low']:g}{most}"
        )
    return float(value) if wanted is float else value
