"""Results of experiments as lines of JSON, one file for each data set, written one at a time."""

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.schema import parse_json
from edgewise.paper.experiments import Experiment

_FIELDS = ("dataset", "split", "protocol", "row", "run")
_SHAPE = {
    **dict.fromkeys(_FIELDS, str),
    **{"run": int, "settings": str, "validation": float, "test": float},
}


class ResultStore:
    """What is known so far. Lines whose settings are no longer the paper preset's do not count."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise EdgewiseError(f"{folder} is a file; name a folder for the results")
        self.lines: dict[Experiment, dict[str, Any]] = {}
        self._cells: dict[tuple[str, ...], dict[int, dict[str, Any]]] = {}
        self.outdated = 0
        for path in sorted(self.folder.glob("reproduce-*.jsonl")):
            for number, text in enumerate(_whole_lines(path), start=1):
                self._take(text, f"{path}:{number}")

    def _take(self, text: str, where: str) -> None:
        try:
            line = parse_json(text, _SHAPE)
            experiment = Experiment(**{name: line[name] for name in _FIELDS})
            settings, _ = line["settings"], (float(line["validation"]), float(line["test"]))
            current = settings in experiment.marks
        except (ValueError, KeyError, TypeError) as error:
            raise EdgewiseError(
                f"{where} is not a result ({error}); delete the line, and it is run again"
            ) from error
        if current:
            self._keep(experiment, line)
        else:
            self.outdated += 1

    def missing(self, experiments: Iterable[Experiment]) -> list[Experiment]:
        return [experiment for experiment in experiments if experiment not in self.lines]

    def check_writable(self) -> None:
        """Refuse a folder that cannot take results, before they are made."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise EdgewiseError(
                f"cannot write into {self.folder} ({error.strerror}); choose another --results"
            ) from error

    def add(self, experiment: Experiment, line: dict[str, Any]) -> None:
        """Put a result on disk at once, behind the others."""
        path = self.folder / f"reproduce-{experiment.dataset}.jsonl"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _end_last_line(path)
            with path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise EdgewiseError(
                f"cannot write {path} ({error.strerror}); make room, and call the command again"
            ) from error
        self._keep(experiment, line)

    def _keep(self, experiment: Experiment, line: dict[str, Any]) -> None:
        self.lines[experiment] = line
        e = experiment
        cell = self._cells.setdefault((e.dataset, e.split, e.protocol, e.row), {})
        cell[e.run] = line

    def values(
        self, part: str, dataset: str, split: str, protocol: str, row: str
    ) -> dict[int, float]:
        """The scores of one cell by run."""
        runs = self._cells.get((dataset, split, protocol, row), {})
        return {run: float(line[part]) for run, line in runs.items()}


def _whole_lines(path: Path) -> list[str]:
    try:
        # What is no text becomes a line that is no result, and is refused as such.
        *lines, last = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise EdgewiseError(
            f"{path} cannot be read ({error.strerror}); make it readable, or choose another "
            "--results"
        ) from error
    return [*lines, last] if _is_whole(last) else lines


def _end_last_line(path: Path) -> None:
    """Cut off a line that was left half-written; a whole one gets its end."""
    content = path.read_bytes() if path.exists() else b""
    before, newline, last = content.rpartition(b"\n")
    if _is_whole(last):
        with path.open("ab") as stream:
            stream.write(b"\n")
    elif last:
        os.truncate(path, len(before + newline))


def _is_whole(line: str | bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
