"""A map of what the last layer meets: rows that look alike to the model lie together."""

from typing import Any

import numpy as np

from edgewise.fitted import Fitted
from edgewise.problems import Problem
from edgewise.report.markup import Markup, element, shortened
from edgewise.report.results import Results
from edgewise.report.theme import (
    COLOUR,
    GLYPHS,
    MARKERS,
    SERIES,
    STEPS,
    chart,
    figure,
    framed,
    legend,
    series,
    thinned,
)
from edgewise.report.wording import count, number, share

MOST_POINTS = 3000


def map_section(results: Results, model: Fitted, problem: Problem) -> Markup:
    """The two directions along which the embeddings differ most."""
    rows = thinned(np.flatnonzero(results.subset != ""), MOST_POINTS)
    place, explained = _components(model.embeddings(problem, rows))
    groups, told = _groups(results, rows)
    judged = results.subset[rows] == results.judged
    drawn, axes = figure(4.8, 3.7)
    keys = []
    for colour, marker, words, members in groups:
        style: dict[str, Any] = {"color": COLOUR[colour], "marker": marker, "linestyle": "none"}
        faint: dict[str, Any] = {"markersize": 2.8, "markeredgewidth": 0, "alpha": 0.4}
        solid: dict[str, Any] = {"markersize": 5.4, "markeredgecolor": COLOUR["paper"]}
        axes.plot(*place[members & ~judged].T, **style, **faint, zorder=2)
        axes.plot(*place[members & judged].T, **style, **solid, markeredgewidth=0.5, zorder=3)
        keys.append((colour, GLYPHS[marker], words))
    axes.set_xlabel(f"first direction, {share(explained[0])} of the variance")
    axes.set_ylabel(f"second direction, {share(explained[1])}")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.03)
    picture = chart(drawn, "map", f"Map of the embeddings of {count(len(rows), 'row')}, {told}")
    every = int((results.subset != "").sum())
    drawn_rows = f"{len(rows):,} of {every:,} rows" if len(rows) < every else f"All {every:,} rows"
    note = (
        f"{drawn_rows}, {told}. Large and solid: {results.judged} rows; small and faint: the "
        "others. A principal component analysis of what goes into the last layer"
        + (" of the first member." if len(results.history) > 1 else ".")
    )
    beside = element("div", legend(keys), element("p", note))
    return framed("Map of the embeddings", element("div", picture, beside, class_="beside"))


def _components(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row on two principal components, and the share of the variance on each."""
    from sklearn.decomposition import PCA

    place, explained = np.zeros((len(embeddings), 2)), np.zeros(2)
    wide = embeddings.astype(np.float64)
    number_of = min(2, *wide.shape)
    if np.ptp(wide, axis=0).any():  # a single point has no directions
        pca = PCA(number_of, svd_solver="randomized", random_state=0).fit(wide)
        place[:, :number_of] = pca.transform(wide)
        explained[:number_of] = pca.explained_variance_ratio_
    return place, explained


Group = tuple[str, str, str, np.ndarray]  # colour, marker, words, and which of the rows


def _groups(results: Results, rows: np.ndarray) -> tuple[list[Group], str]:
    if results.task.kind == "classification":
        return _by_class(results, rows), "coloured by class"
    if results.task.kind == "regression":
        known = (~np.isnan(results.truth[rows])).sum(axis=0)
        target = int(np.argmax(known))
        name = shortened(results.task.names[target], 40)
        return _by_value(results.truth[rows, target]), f"coloured by {name}"
    # The label that most rows have: a rare one would leave the map in one colour.
    label = int(np.argmax((results.truth == 1).sum(axis=0)))
    truth = results.truth[rows, label]
    name = shortened(results.task.names[label], 40)
    groups: list[Group] = [
        ("muted", "o", f"{name}: no", truth == 0),
        ("series-1", "o", f"{name}: yes", truth == 1),
    ]
    return groups, f"coloured by {name}, the label that most rows have"


def _by_class(results: Results, rows: np.ndarray) -> list[Group]:
    truth, classes = results.truth[rows], results.task.classes
    largest = np.argsort(-np.bincount(truth, minlength=len(classes)), kind="stable")[:SERIES]
    kept = range(len(classes)) if len(classes) <= SERIES else sorted(largest.tolist())
    groups: list[Group] = [
        (series(place), MARKERS[place], shortened(classes[k], 40), truth == k)
        for place, k in enumerate(kept)
    ]
    rest = ~np.isin(truth, list(kept))
    if rest.any():
        groups.insert(0, ("muted", "o", f"{len(classes) - len(kept)} smaller classes", rest))
    return groups


def _by_value(value: np.ndarray) -> list[Group]:
    """Steps of equally many rows, so that a few extremes do not take all the colours."""
    known = value[~np.isnan(value)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, STEPS + 1)))
    step = np.clip(np.searchsorted(edges, value, side="right") - 1, 0, max(len(edges) - 2, 0))
    groups: list[Group] = []
    for k in range(max(len(edges) - 1, 1)):
        words = f"{number(float(edges[k]))} to {number(float(edges[min(k + 1, len(edges) - 1)]))}"
        groups.append((f"step-{k}", "o", words, (step == k) & ~np.isnan(value)))
    return groups
