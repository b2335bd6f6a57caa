"""Runs side by side: those that differ only in their seeds become one line, their mean."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError, preview
from edgewise.runs.folder import Run, open_run

_SEEDS = ("seed", "split_seed")


@dataclass(frozen=True)
class Line:
    """Runs with the same data and settings."""

    name: str
    runs: int
    differs: dict[str, Any]  # the settings in which the lines are not all equal
    metric: str
    validation: tuple[float, float]  # mean and standard deviation over the runs
    test: tuple[float, float]
    seconds: float  # mean


def compare(folders: Sequence[str | Path]) -> list[Line]:
    """One line for each group of runs that are the same but for their seeds.

    The best on validation stands first.
    """
    runs = [open_run(folder) for folder in folders]
    if len({str(Path(folder).resolve()) for folder in folders}) < len(folders):
        raise EdgewiseError("a run is named twice; name each once")
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(_without_seeds(run), []).append(run)
    metrics = {run.folder: run.metrics for run in runs}
    halves = [str(folder) for folder, found in metrics.items() if not found["finished"]]
    if halves:
        raise EdgewiseError(
            f"run(s) {preview(halves)} were interrupted; finish each with edgewise train --resume, "
            "or leave it out"
        )
    names = {(m["headline"], m["lower_is_better"]) for m in metrics.values()}
    if len(names) > 1:
        raise EdgewiseError(
            f"the runs are of different tasks ({', '.join(sorted(name for name, _ in names))}); "
            "compare runs of one"
        )
    ((metric, lower),) = names
    settings = [_settings(group[0]) for group in groups.values()]
    differing = [k for k in settings[0] if len({str(s[k]) for s in settings}) > 1]
    lines = [
        Line(
            name=_common_name(group),
            runs=len(group),
            differs={k: _settings(group[0])[k] for k in differing},
            metric=metric,
            validation=_mean_and_std([metrics[run.folder]["validation"][metric] for run in group]),
            test=_mean_and_std([metrics[run.folder]["test"][metric] for run in group]),
            seconds=statistics.fmean(metrics[run.folder]["seconds"] for run in group),
        )
        for group in groups.values()
    ]
    worst = math.inf if lower else -math.inf
    # Not by the test scores, which are for looking at, not for choosing.
    scores = {id(line): line.validation[0] for line in lines}
    means = {key: worst if math.isnan(score) else score for key, score in scores.items()}
    return sorted(lines, key=lambda line: means[id(line)], reverse=not lower)


def _settings(run: Run) -> dict[str, Any]:
    kept = {k: v for k, v in run.settings.flat().items() if k not in _SEEDS}
    return {"data": run.source.name, **kept}


def _without_seeds(run: Run) -> str:
    return f"{run.checksum} {sorted(_settings(run).items(), key=lambda item: item[0])}"


def _common_name(group: list[Run]) -> str:
    names = [str(run.folder) for run in group]
    if len(names) == 1:
        return names[0]
    return f"{names[0]} and {len(names) - 1} more"


def _mean_and_std(values: list[float | None]) -> tuple[float, float]:
    known = [value for value in values if value is not None]
    if not known:
        return math.nan, math.nan
    return statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else math.nan
