"""Results of experiments as lines of JSON, one file for each data set, written one at a time."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from edgewise.errors import EdgewiseError
from edgewise.paper.experiments import Experiment

_FIELDS = ("dataset", "split", "protocol", "row", "run")


class Results:
    """What is known so far. Lines whose settings are no longer the paper preset's do not count."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise EdgewiseError(f"{folder} is a file; name a folder for the results")
        self.lines: dict[Experiment, dict[str, Any]] = {}
        self._cells: dict[tuple[str, ...], dict[int, dict[str, Any]]] = {}
        self.outdated = 0
        for path in sorted(self.folder.glob("reproduce-*.jsonl")):
            # What is no text becomes a line that is no result, and is refused as such.
            whole, _, _ = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")
            for number, text in enumerate(whole.splitlines(), start=1):
                self._take(text, f"{path}:{number}")

    def _take(self, text: str, where: str) -> None:
        try:
            line = json.loads(text)
            experiment = Experiment(**{name: line[name] for name in _FIELDS})
            settings, _ = line["settings"], (float(line["validation"]), float(line["test"]))
            current = settings == experiment.settings
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

    def add(self, experiment: Experiment, line: dict[str, Any]) -> None:
        """Put a result on disk at once, behind the others."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"reproduce-{experiment.dataset}.jsonl"
        _end_last_line(path)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
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


def _end_last_line(path: Path) -> None:
    """Cut off a line that was left half-written."""
    if path.exists():
        whole = path.read_bytes()
        if whole and not whole.endswith(b"\n"):
            os.truncate(path, whole.rfind(b"\n") + 1)
