"""Predicted against observed values, and the distribution of the errors."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from edgewise.report.blocks import CaptionedFigure, Key
from edgewise.report.output_table import output_table
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.theme import COLOUR, chart, figure, thinned
from edgewise.report.wording import METRICS, count, metric, number
from edgewise.tasks.records import ValuePairs

MOST_TARGETS = 12
MOST_POINTS = 1500
MOST_BINS = 60


@dataclass(frozen=True)
class DrawnTarget:
    """A target and its two figures; a sentence where there is nothing to draw."""

    name: str
    figures: tuple[CaptionedFigure, ...] = ()
    note: str = ""


def predictions_content(given: PanelInput) -> dict[str, Any]:
    """Two figures for each target."""
    results, (_, truth, predicted) = given.results, given.judged()
    task, training = results.task, results.rows("train")
    scores = results.metrics[results.judged][task.per_output]
    judged = task.value_pairs(truth, predicted)
    others = task.value_pairs(results.truth[training], results.predicted[training])
    targets = []
    for k, (pairs, train) in enumerate(zip(judged, others, strict=True)):
        if k == MOST_TARGETS:
            break
        if not len(pairs.rows):
            note = f"No {results.judged} row has a known {pairs.name}."
            targets.append(DrawnTarget(pairs.name, note=note))
            continue
        summary = ", ".join(
            f"{METRICS[m]} {metric(m, scores[pairs.name].get(m))}"
            for m in task.output_metrics
            if m != "rows"
        )
        shown = None if results.judged == "train" else train
        against = _against(pairs, shown, k, results.judged, summary)
        targets.append(DrawnTarget(pairs.name, (against, _errors(pairs, k))))
    several = len(judged) > 1
    return {
        "table": output_table(results) if several else None,
        "text": f"The first {MOST_TARGETS} of {len(judged)} targets are drawn."
        if len(judged) > MOST_TARGETS
        else "",
        "several": several,
        "targets": targets,
    }


def _against(
    judged: ValuePairs, train: ValuePairs | None, place: int, subset: str, summary: str
) -> CaptionedFigure:
    drawn, axes = figure(height=3.7)
    keys = [Key("series-0", "dot", subset)]
    both: list[float] = []
    if train is not None:
        some = thinned(np.arange(len(train.rows)), MOST_POINTS)
        style: dict[str, Any] = {"markersize": 2.5, "markeredgewidth": 0, "alpha": 0.35}
        axes.plot(train.observed[some], train.predicted[some], "o", color=COLOUR["muted"], **style)
        keys.append(Key("muted", "dot", "training"))
        both += train.observed[some].tolist()
    some = thinned(np.arange(len(judged.rows)), MOST_POINTS)
    observed, predicted = judged.observed[some], judged.predicted[some]
    edge: dict[str, Any] = {"markeredgecolor": COLOUR["paper"], "markeredgewidth": 0.4}
    axes.plot(observed, predicted, "o", color=COLOUR["series-0"], markersize=4.5, **edge)
    both += [*observed.tolist(), *predicted.tolist()]
    low, high = min(both), max(both)
    margin = 0.04 * (high - low) or 1.0
    ends = (low - margin, high + margin)
    axes.plot(ends, ends, color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    axes.set_aspect("equal")
    axes.set_xlabel("observed")
    axes.set_ylabel("predicted")
    rows = len(judged.rows)
    label = f"Predicted against observed {judged.name} of {count(rows, 'row')}: {summary}"
    notes = [summary]
    if len(some) < rows:
        notes.append(f"{len(some):,} of {rows:,} rows are drawn.")
    picture = chart(drawn, f"against-{place}", label)
    return CaptionedFigure("Predicted against observed", picture, keys, notes)


def _errors(pairs: ValuePairs, place: int) -> CaptionedFigure:
    error = pairs.predicted - pairs.observed
    drawn, axes = figure(height=3.7)
    bins = min(MOST_BINS, max(5, math.ceil(math.sqrt(len(error)))))
    edges = np.histogram_bin_edges(error, bins).tolist()
    axes.hist(error, edges, color=COLOUR["series-0"], edgecolor=COLOUR["paper"], linewidth=0.5)
    axes.axvline(0, color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlabel("predicted less observed")
    axes.set_ylabel("rows")
    axes.grid(axis="x", visible=False)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    mean, half = float(error.mean()), float(np.median(np.abs(error)))
    summary = f"Mean error {number(mean)}; median absolute error {number(half)}."
    picture = chart(drawn, f"errors-{place}", f"Histogram of the errors of {pairs.name}. {summary}")
    return CaptionedFigure("Errors", picture, notes=[summary])


PREDICTIONS = Panel("predictions", "Predictions", predictions_content, "predictions.html.jinja")
