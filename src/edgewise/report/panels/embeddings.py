"""A map of the inputs of the last layer: rows that look alike to the model lie together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.report.blocks import CaptionedFigure, Key
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.theme import (
    COLOUR,
    GLYPHS,
    MARKERS,
    SERIES,
    STEPS,
    chart,
    figure,
    series,
    thinned,
)
from edgewise.report.wording import count, number, share, shortened
from edgewise.tasks.records import Group

MOST_POINTS = 3000


def embeddings_content(given: PanelInput) -> dict[str, Any]:
    """The two directions along which the embeddings differ most."""
    if given.opened is None:
        gone = "The data are unavailable, so there is no map of the embeddings"
        return {"unavailable": f"{gone}: {given.unavailable}."}
    results = given.results
    rows = thinned(np.flatnonzero(results.subset != ""), MOST_POINTS)
    place, explained = _components(given.model.embeddings(given.opened.problem.data, rows))
    by, groups = results.task.embedding_groups(results.truth[rows], SERIES, STEPS)
    colouring = f"coloured by {shortened(by, 40)}"
    judged = results.subset[rows] == results.judged
    drawn, axes = figure(4.8, 3.7)
    keys = []
    for group, (colour, marker) in zip(groups, _looks(groups), strict=True):
        style: dict[str, Any] = {"color": COLOUR[colour], "marker": marker, "linestyle": "none"}
        faint: dict[str, Any] = {"markersize": 2.8, "markeredgewidth": 0, "alpha": 0.4}
        solid: dict[str, Any] = {"markersize": 5.4, "markeredgecolor": COLOUR["paper"]}
        axes.plot(*place[group.members & ~judged].T, **style, **faint, zorder=2)
        solid_rows = place[group.members & judged]
        axes.plot(*solid_rows.T, **style, **solid, markeredgewidth=0.5, zorder=3)
        keys.append(Key(colour, GLYPHS[marker], _words(group)))
    axes.set_xlabel(f"first component, {share(explained[0])} of the variance")
    axes.set_ylabel(f"second component, {share(explained[1])}")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.03)
    label = f"Map of the embeddings of {count(len(rows), 'row')}, {colouring}"
    every = int((results.subset != "").sum())
    drawn_rows = f"{len(rows):,} of {every:,} rows" if len(rows) < every else f"All {every:,} rows"
    note = (
        f"{drawn_rows}, {colouring}. Large and solid: {results.judged} rows; small and faint: the "
        "others. Principal component analysis of the inputs of the last layer"
        + (" of the first member." if len(results.history) > 1 else ".")
    )
    picture = chart(drawn, "map", label)
    return {"figure": CaptionedFigure("Map of the embeddings", picture, keys, [note])}


def _components(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row on two principal components, and the share of the variance on each."""
    place, explained = np.zeros((len(embeddings), 2)), np.zeros(2)
    wide = embeddings.astype(np.float64)
    if not np.ptp(wide, axis=0).any():  # a single point has no directions
        return place, explained
    wide -= wide.mean(axis=0)
    # Of the two products with the same eigenvalues, the smaller one. Importing scikit-learn for its
    # PCA takes longer than this.
    tall = len(wide) >= wide.shape[1]
    values, vectors = np.linalg.eigh(wide.T @ wide if tall else wide @ wide.T)
    number_of = min(2, len(values))
    values, vectors = values[::-1][:number_of].clip(0), vectors[:, ::-1][:, :number_of]
    found = wide @ vectors if tall else vectors * np.sqrt(values)
    farthest = np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0)
    place[:, :number_of] = found * np.where(farthest < 0, -1, 1)  # an eigenvector has no sign
    explained[:number_of] = values / np.square(wide).sum()
    return place, explained


def _looks(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Colour and marker of each group; categories differ in both."""
    found: list[tuple[str, str]] = []
    category = step = 0
    for group in groups:
        if group.role == "background":
            found.append(("muted", "o"))
        elif group.role == "step":
            found.append((f"step-{step}", "o"))
            step += 1
        else:
            found.append((series(category), MARKERS[category]))
            category += 1
    return found


def _words(group: Group) -> str:
    if isinstance(group.name, str):
        return shortened(group.name, 40)
    return " to ".join(number(value) for value in group.name)


EMBEDDINGS = Panel("embeddings", "Embeddings", embeddings_content, "embeddings.html.jinja")
