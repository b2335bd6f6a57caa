"""The folder of a search: what it is for, and its journal."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.files import inside, write_atomically
from edgewise.core.schema import read_json
from edgewise.core.settings import Settings
from edgewise.data.sources import Source
from edgewise.tasks.base import Task
from edgewise.training.legacy import UNITS_0_1, settings_0_1
from edgewise.training.weights import reason_of
from edgewise.tuning.journal import Journal, check_study, mend_journal
from edgewise.tuning.space import Range, Searched

FORMAT, FORMAT_0_1 = "edgewise tune 2", "edgewise tune 1"
_SHAPE = {
    **{"format": str, "data": {"sha256": str}, "settings": {str: object}},
    "searched": {str: [(str, bool, float, None)]},
}


def open_study(folder: Path, task: Task, base: Settings) -> optuna.Study:
    """The study in a folder's journal, which is lines of JSON; a new one if there is none."""
    path = inside(folder, "journal.jsonl")
    direction = "minimize" if task.lower_is_better else "maximize"
    try:
        if path.exists():
            mend_journal(path)
        study = optuna.create_study(
            storage=JournalStorage(Journal(path)),
            pruner=pruner_of(base),
            study_name="edgewise",
            direction=direction,  # type: ignore[arg-type]
            load_if_exists=True,
        )
        check_study(study, direction)
    except Exception as error:  # whatever Optuna stumbles over
        raise EdgewiseError(
            f"{path} cannot be used ({reason_of(error)}); search again with another --out"
        ) from error
    return study


def pruner_of(base: Settings) -> optuna.pruners.BasePruner:
    # One epoch of bad luck should end no trial, and the first ones tell little.
    return optuna.pruners.MedianPruner(
        n_warmup_steps=min(base.training.patience, base.training.epochs) // 4
    )


def check_purpose(
    folder: Path, source: Source, base: Settings, repeats: int, space: list[Searched]
) -> list[Searched]:
    """Write down what a new folder is for; refuse to mix two searches in one.

    Returns:
        The space in the ranges that the folder began with: another version may have others.
    """
    path, source, checksum = inside(folder, "study.json"), source.absolute(), source.checksum()
    among = {s.name: s.among if isinstance(s.among, tuple) else astuple(s.among) for s in space}
    # What differs from the defaults: a setting that is added later changes nothing.
    settings = {**base.differences(), "repeats": repeats}
    purpose = {
        "format": FORMAT,
        "data": {"form": source.form, "places": source.places, "sha256": checksum},
        "settings": settings,
        "searched": among,
    }
    if not path.exists():
        unknown = [p.name for p in folder.iterdir() if not p.name.startswith((".lock", ".part-"))]
        if unknown:
            raise EdgewiseError(
                f"{folder} exists already and holds {preview(unknown)}; choose another --out"
            )
        write_atomically(path, json.dumps(purpose, indent=1))
    try:
        before = read_json(path, _SHAPE)
        data, old, searched = before["data"]["sha256"], before["settings"], before["searched"]
        if before["format"] == FORMAT_0_1:
            old = _differences_0_1(old, source)
        elif before["format"] != FORMAT:
            raise EdgewiseError(f"it says {before['format']!r}, expected {FORMAT!r}")
        names = dict.fromkeys((*settings, *old))
        changed = [name for name in names if old.get(name) != settings.get(name)]
        changed += [name for name in among if name not in searched]
        changed += [name for name in searched if name not in among and name not in changed]
        begun = [_begun(one, searched.get(one.name, [])) for one in space] if not changed else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(
            f"{path} cannot be used ({error}); search again with another --out"
        ) from error
    if data != checksum:
        raise EdgewiseError(
            f"{folder} was made for other data than {source} holds now; put the old data back, or "
            "choose another --out"
        )
    if changed:
        cure = "repeat them"
        if changed == ["fit_on"] and before["format"] == FORMAT_0_1:
            cure = "version 0.1 learnt columns from all rows, so --fit-on all goes on with it"
        raise EdgewiseError(
            f"{folder} was made with other settings ({preview(changed)}); {cure}, "
            "or choose another --out"
        )
    return begun


def _begun(searched: Searched, stored: list[Any]) -> Searched:
    """A setting with the values that the folder says."""
    if isinstance(searched.among, tuple):
        among: tuple[Any, ...] | Range = tuple(stored)
        fits = bool(stored) and set(stored) <= set(searched.among)
    else:
        low, high, log = stored
        among, whole = Range(low, high, log), type(searched.among.low)
        fits = type(low) is type(high) is whole and low <= high and isinstance(log, bool)
    if not fits:
        raise EdgewiseError(f"{searched.name} cannot be searched among {preview(stored)}")
    return replace(searched, among=among)


def _differences_0_1(settings: dict[str, Any], source: Source) -> dict[str, Any]:
    (kind,) = (kind for kind, unit in UNITS_0_1.items() if unit == source.unit)
    recipe = {name: value for name, value in settings.items() if name != "repeats"}
    return {**settings_0_1(recipe, kind).differences(), "repeats": settings["repeats"]}


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Without Optuna's log, and its notes about itself."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)
