"""The run folder and what it was started with."""

import json
import platform
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from edgewise import __version__
from edgewise.core.errors import EdgewiseError, NotRegistered
from edgewise.core.files import LOCK, inside, sweep, write_atomically
from edgewise.core.manifest import MANIFEST, check_listed
from edgewise.core.registries import UNITS
from edgewise.core.schema import Maybe, mismatch, read_json
from edgewise.core.settings import Settings, load_settings
from edgewise.data.sources import Source, stored_source
from edgewise.training.legacy import RUN_FORMAT_0_1, UNITS_0_1, settings_0_1
from edgewise.training.predictor import Predictor, load_model
from edgewise.units.base import Opened, Show, Unit

FORMAT = "edgewise run 2"
_NUMBER = (float, None)
_METRICS = {
    **{"finished": bool, "headline": str, "lower_is_better": bool, "seconds": float},
    **{"epochs": [int], "best_epochs": [int], "descriptors_weight": Maybe(float)},
    **{part: {str: (*_NUMBER, {str: {str: _NUMBER}})} for part in ("train", "validation", "test")},
}
_RECIPE = {
    **{"format": str, "preset": str, "command": str, "versions": {str: str}},
    "data": {"form": str, "places": [str], "sha256": str},
    "notices": Maybe([str]),  # runs of version 0.1 have none
    "workers": Maybe(int),
    **{"settings": Maybe({str: {str: object}}), "recipe": Maybe({str: object})},
}
_MARKS = ("recipe.json", MANIFEST)  # of the folder of a run or a saved model
_OWN = frozenset(
    {"predictions.csv", "history.csv", "invalid.csv", "splits.json", "metrics.json", *_MARKS}
    | {"model.json", "model.safetensors", "reader.json", "featurizer.json", "stack.safetensors"}
    | {"training-fingerprints.safetensors", "report.html"}
)
_KINDS_0_1 = {unit: kind for kind, unit in UNITS_0_1.items()}


@dataclass(frozen=True)
class Run:
    """A run folder and what its ``recipe.json`` says."""

    folder: Path
    source: Source
    settings: Settings
    preset: str
    checksum: str  # of the data
    versions: dict[str, str]
    command: str
    notices: tuple[str, ...] = ()  # on the data, see edgewise.data.notices
    workers: int = 1  # processes that train it together

    @property
    def unit(self) -> Unit:
        unit: Unit = UNITS[self.source.unit_for(self.settings.data.predict)]
        return unit

    @property
    def metrics(self) -> dict[str, Any]:
        """What ``metrics.json`` says."""
        path = self.folder / "metrics.json"
        cure = f"edgewise train --resume {self.folder}"
        try:
            content: dict[str, Any] = read_json(inside(self.folder, "metrics.json"), _METRICS)
            _check_metrics(content)
        except FileNotFoundError as error:
            raise EdgewiseError(
                f"{self.folder} has no results yet; finish it with {cure}"
            ) from error
        except (OSError, ValueError) as error:
            raise EdgewiseError(f"{path} is damaged ({error}); delete it and run {cure}") from error
        return content

    @property
    def finished(self) -> bool:
        return (self.folder / "metrics.json").exists() and bool(self.metrics["finished"])

    def model(self) -> Predictor:
        return load_model(self.folder)

    def on(self, device: str) -> "Run":
        """The same run on a device; where none is named, on that of its settings."""
        return replace(self, settings=self.settings.changed(device=device)) if device else self


def _check_metrics(content: dict[str, Any]) -> None:
    """Refuse metrics without what every one of them has."""
    members = len(content["epochs"])
    if not members or len(content["best_epochs"]) != members:
        raise EdgewiseError("it does not say the epochs of each model")
    for part in ("train", "validation", "test"):
        fault = mismatch(content[part], {content["headline"]: _NUMBER}, part)
        if fault:
            raise EdgewiseError(fault)


def start_run(
    folder: str | Path,
    source: Source,
    settings: Settings,
    preset: str,
    command: str,
    notices: tuple[str, ...] = (),
    workers: int = 1,
) -> Run:
    """Make a run folder; one that holds something already is refused."""
    folder, source = Path(folder), source.absolute()
    checksum = source.checksum()
    versions = _versions()
    run = Run(folder, source, settings, preset, checksum, versions, command, notices, workers)
    check_free(folder)
    _write_recipe(run)
    return run


def settled(run: Run, settings: Settings) -> Run:
    """The run with what was decided after its start; it goes on with that."""
    run = replace(run, settings=settings)
    _write_recipe(run)
    return run


def _write_recipe(run: Run) -> None:
    source = run.source
    content = {
        "format": FORMAT,
        "data": {"form": source.form, "places": source.places, "sha256": run.checksum},
        "preset": run.preset,
        "settings": run.settings.to_json(),
        "versions": run.versions,
        "command": run.command,
        "notices": run.notices,
        **({"workers": run.workers} if run.workers > 1 else {}),
    }
    write_atomically(run.folder / "recipe.json", json.dumps(content, indent=1))


def check_free(folder: Path) -> None:
    """Refuse a folder that holds something already."""
    sweep(folder)
    if folder.exists() and (
        not folder.is_dir() or any(path.name != LOCK for path in folder.iterdir())
    ):
        raise EdgewiseError(
            f"{folder} exists already and is not empty; choose another --out, or continue it with "
            f"edgewise train --resume {folder}"
        )


def check_not_own(out: Path, flag: str) -> None:
    """Refuse an output that would take the place of a file that a run wrote."""
    folder = out.parent.resolve()
    if out.name.casefold() not in _OWN or not any((folder / name).exists() for name in _MARKS):
        return
    raise EdgewiseError(
        f"{out} is a file of the run {folder.name} itself, which would be lost; choose another "
        f"{flag}"
    )


def open_run(folder: str | Path) -> Run:
    """Read what a run folder was started with."""
    path = Path(folder) / "recipe.json"
    if path.exists():
        check_listed(Path(folder), ["recipe.json"])
    try:
        content = read_json(inside(Path(folder), "recipe.json"), _RECIPE)
        data = content["data"]
        source = stored_source(data["form"], data["places"])
        if content["format"] == RUN_FORMAT_0_1:
            settings = settings_0_1(content["recipe"], _KINDS_0_1[source.unit])
            settings = settings.changed(coverage=0)  # it goes on without intervals
        elif content["format"] == FORMAT:
            settings = load_settings(content["settings"])
        else:
            raise EdgewiseError(
                f"it says {content['format']!r}, and this version reads {FORMAT!r}; use the "
                "version of Edgewise that wrote it"
            )
        return Run(
            Path(folder),
            source,
            settings,
            content["preset"],
            data["sha256"],
            content["versions"],
            content["command"],
            tuple(content.get("notices", ())),
            content.get("workers", 1),
        )
    except FileNotFoundError as error:
        raise EdgewiseError(
            f"{folder} is not the folder of a run; it has no recipe.json"
        ) from error
    except NotRegistered as error:
        raise EdgewiseError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EdgewiseError(f"{path} cannot be used ({error}); start the run again") from error


def check_data(run: Run) -> None:
    """Refuse to continue with data that are not those the run started with."""
    if run.source.checksum() != run.checksum:
        raise EdgewiseError(
            f"{run.source} has changed since {run.folder} was started; put the old data back, or "
            "start a new run"
        )


def reopen(run: Run, progress: Show | None = None) -> Opened:
    """The problem of a run from the data it started with, split as it was then."""
    check_data(run)
    splits = inside(run.folder, "splits.json")
    if not splits.exists():
        return run.unit.open(run.source, run.settings, progress)
    check_listed(run.folder, ["splits.json"])
    return opened_with(splits, run.unit, run.source, run.settings, progress)


def opened_with(
    splits: Path, unit: Unit, source: Source, settings: Settings, progress: Show | None = None
) -> Opened:
    """A problem whose rows are split as a file of a run says."""
    names = ("split", "split_column", "ignore")
    told = {name: value for name, value in settings.flat().items() if name in names}
    # The column that told the split stays out of the features.
    ignore = (*settings.data.ignore, *filter(None, (settings.split.split_column,)))
    kept = settings.changed(split=str(splits), split_column="", ignore=ignore)
    opened = unit.open(source, kept, progress)
    # What is written about the run says how it was started.
    problem = replace(opened.problem, settings=opened.problem.settings.changed(**told))
    return replace(opened, problem=problem)


def forget_untrained(run: Run) -> None:
    """Take back what a run left in its folder, unless something was trained."""
    if (run.folder / "checkpoint").exists() or (run.folder / "metrics.json").exists():
        return
    for name in ("recipe.json", "splits.json", "invalid.csv"):
        (run.folder / name).unlink(missing_ok=True)


def _versions() -> dict[str, str]:
    found = {"edgewise": __version__, "python": platform.python_version()}
    for package in ("torch", "numpy", "numba", "rdkit"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
