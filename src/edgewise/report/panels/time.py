"""How good predictions are by time: the score of each stretch, and that of a constant."""

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from edgewise.report.blocks import CaptionedFigure, Key
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.run_results import SUBSETS, RunResults
from edgewise.report.theme import COLOUR, chart, figure
from edgewise.report.wording import METRICS, SHARES, count

STRETCHES, FEWEST = 6, 20  # of each subset at most; rows of a stretch, unless there are fewer
_COLOURS = dict(zip(SUBSETS, ("series-0", "series-1", "series-2"), strict=True))
# Seconds since 1970, between 1973 and 2286: shown as dates.
_SECONDS = (1e8, 1e10)


def time_content(given: PanelInput) -> dict[str, Any] | None:
    """The headline metric of stretches of time; nothing where rows have no times."""
    problem = None if given.opened is None else given.opened.problem
    times = None if problem is None else problem.unit.row_times(problem)
    if times is None:
        return None
    results = given.results
    constant = _constant(results)
    drawn, axes = figure(width=6.6, height=2.7)
    keys: list[Key] = []
    scores: list[float] = []
    baselines: list[tuple[float, float]] = []
    for subset in results.present:
        found = [
            (times[rows].mean(), results.task.score(results.predicted[rows], results.truth[rows]),
             _score(results, constant, rows))
            for rows in _stretches(times, results.rows(subset))
        ]  # fmt: skip
        when, score, baseline = np.array(found, dtype=float).T
        colour = COLOUR[_COLOURS[subset]]
        axes.plot(when, score, color=colour, marker="o", markersize=5, linewidth=1.4)
        keys.append(Key(_COLOURS[subset], "dot", subset))
        scores += score.tolist()
        baselines += zip(when.tolist(), baseline.tolist(), strict=True)
    when, baseline = np.array(sorted(baselines)).T
    if np.isfinite(baseline).any():
        axes.plot(when, baseline, color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)))
        keys.append(Key("muted", "dashes", "the same prediction for all rows"))
    headline = results.task.headline
    _finish(axes, times, headline)
    better = "lower" if results.task.lower_is_better else "higher"
    text = (
        f"The {METRICS[headline]} of {count(len(scores), 'stretch', 'stretches')} of time, in "
        f"each subset with about equally many rows; {better} is better. Rows are predicted along "
        "earlier edges."
    )
    title = f"{METRICS[headline]} by time"
    label = f"{METRICS[headline]} of each stretch of time"
    shown = CaptionedFigure(title, chart(drawn, "by-time", label), keys, scrolls=True)
    return {"text": [text], "figures": [shown], "side_by_side": False}


def _stretches(times: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """Rows in the order of time, in about equal parts; equal times are never parted."""
    ordered = rows[np.argsort(times[rows], kind="stable")]
    parts = min(STRETCHES, max(1, len(rows) // FEWEST))
    places = np.arange(1, parts) * len(ordered) // parts
    cuts = np.unique(np.searchsorted(times[ordered], times[ordered][places]))
    return [part for part in np.split(ordered, cuts) if len(part)]


def _constant(results: RunResults) -> np.ndarray | None:
    """What is predicted for all rows alike: the mean of the training rows."""
    truth = torch.from_numpy(np.asarray(results.truth[results.rows("train")]))
    decoded = results.task.decoded_truth(truth)
    if decoded is None:
        return None
    known = np.isfinite(decoded)
    return np.where(known, decoded, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def _score(results: RunResults, constant: np.ndarray | None, rows: np.ndarray) -> float:
    if constant is None:
        return math.nan
    return results.task.score(np.tile(constant, (len(rows), 1)), results.truth[rows])


def _finish(axes: Axes, times: np.ndarray, headline: str) -> None:
    axes.set_xlabel("time")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_ylabel(METRICS[headline])
    if headline in SHARES:
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    first, last = float(times.min()), float(times.max())
    if _SECONDS[0] < first and last < _SECONDS[1]:
        axes.xaxis.set_major_formatter(lambda value, _: _day(value))
    else:
        axes.xaxis.set_major_formatter("{x:g}")


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


TIME = Panel("time", "By time", time_content)
