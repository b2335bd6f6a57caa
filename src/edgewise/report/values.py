"""Predicted against true values, and how the errors are spread."""

import math
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from edgewise.report.markup import Markup, element, table
from edgewise.report.results import Results
from edgewise.report.theme import COLOUR, chart, figure, framed, legend, thinned
from edgewise.report.wording import METRICS, count, metric, number

MOST_TARGETS = 12
MOST_POINTS = 1500
MOST_BINS = 60
MEASURES = ("rmse", "mae", "r2", "rows")


def values_section(results: Results) -> Markup:
    """Two figures for each target."""
    names = results.task.names
    scores = results.metrics[results.judged]["per_target"]
    parts = []
    if len(names) > MOST_TARGETS:
        parts.append(element("p", f"The first {MOST_TARGETS} of {len(names)} targets are drawn."))
    if len(names) > 1:
        cells = [(name, *(metric(m, scores[name].get(m)) for m in MEASURES)) for name in names]
        header = ("target", *(METRICS[m] for m in MEASURES))
        parts.insert(0, table(header, cells, label="Each target"))
    for k, name in enumerate(names[:MOST_TARGETS]):
        judged = results.known(results.rows(results.judged), k)
        if not len(judged):
            parts.append(element("p", f"No {results.judged} row has a known {name}."))
            continue
        if len(names) > 1:
            parts.append(element("h3", name))
        score = scores[name]
        told = ", ".join(f"{METRICS[m]} {metric(m, score.get(m))}" for m in MEASURES[:-1])
        pair = (_against(results, k, judged, told), _errors(results, k, judged))
        parts.append(element("div", *pair, class_="pair"))
    return element("div", *parts)


def _against(results: Results, output: int, judged: np.ndarray, told: str) -> Markup:
    drawn, axes = figure(height=3.7)
    truth, predicted = results.truth[:, output], results.predicted[:, output]
    keys = []
    if results.judged != "train":
        train = thinned(results.known(results.rows("train"), output), MOST_POINTS)
        style: dict[str, Any] = {"markersize": 2.5, "markeredgewidth": 0, "alpha": 0.35}
        axes.plot(truth[train], predicted[train], "o", color=COLOUR["muted"], **style)
        keys.append(("muted", "dot", "training"))
    some = thinned(judged, MOST_POINTS)
    edge: dict[str, Any] = {"markeredgecolor": COLOUR["paper"], "markeredgewidth": 0.4}
    axes.plot(truth[some], predicted[some], "o", color=COLOUR["series-0"], markersize=4.5, **edge)
    keys.insert(0, ("series-0", "dot", results.judged))
    both = [*truth[some], *predicted[some], *(truth[train] if len(keys) > 1 else ())]
    low, high = min(both), max(both)
    margin = 0.04 * (high - low) or 1.0
    ends = (low - margin, high + margin)
    axes.plot(ends, ends, color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    axes.set_aspect("equal")
    axes.set_xlabel("true")
    axes.set_ylabel("predicted")
    name = results.task.names[output]
    label = f"Predicted against true {name} of {count(len(judged), 'row')}: {told}"
    notes = [element("p", told)]
    if len(some) < len(judged):
        notes.append(element("p", f"{len(some):,} of {len(judged):,} rows are drawn."))
    picture = chart(drawn, f"against-{output}", label)
    return framed("Predicted against true", picture, legend(keys), *notes)


def _errors(results: Results, output: int, judged: np.ndarray) -> Markup:
    error = results.predicted[judged, output] - results.truth[judged, output]
    drawn, axes = figure(height=3.7)
    bins = min(MOST_BINS, max(5, math.ceil(math.sqrt(len(error)))))
    edges = np.histogram_bin_edges(error, bins).tolist()
    axes.hist(error, edges, color=COLOUR["series-0"], edgecolor=COLOUR["paper"], linewidth=0.5)
    axes.axvline(0, color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)))
    mean = float(error.mean())
    axes.set_xlabel("predicted less true")
    axes.set_ylabel("rows")
    axes.grid(axis="x", visible=False)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    half = float(np.median(np.abs(error)))
    told = f"Mean error {number(mean)}; half of the rows are off by less than {number(half)}."
    name = results.task.names[output]
    picture = chart(drawn, f"errors-{output}", f"Histogram of the errors of {name}. {told}")
    return framed("Errors", picture, element("p", told))
