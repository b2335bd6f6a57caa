"""The confusion matrix, and precision, recall and F1 of each class."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.report.blocks import CaptionedFigure, Drawing, Key
from edgewise.report.output_table import output_table
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.theme import COLOUR, WIDTH, chart, figure
from edgewise.report.wording import shortened

MOST_CLASSES = 24
CROWDED = 12  # with more classes the matrix takes the whole width
_KEYS = (Key("good", "square", "correct"), Key("bad", "square", "wrong"))


def classes_content(given: PanelInput) -> dict[str, Any] | None:
    """Confusion matrix and table of the classes."""
    _, truth, predicted = given.judged()
    counts = given.results.task.confusion(truth, predicted)
    if counts is None:
        return None
    classes = given.results.task.outputs
    totals = counts.sum(axis=1)
    shown = np.sort(np.argsort(-totals, kind="stable")[:MOST_CLASSES])
    note = "The stronger the colour, the larger the share of the row."
    if len(shown) < len(classes):
        note += f" The {len(shown)} largest of {len(classes)} classes are drawn."
    picture = _matrix(counts[np.ix_(shown, shown)], [classes[k] for k in shown], totals[shown])
    crowded = len(shown) > CROWDED
    matrix = CaptionedFigure("Confusion matrix", picture, _KEYS, [note], scrolls=crowded)
    table = output_table(given.results, title="Each class")
    return {"figures": [matrix], "tables": [table], "side_by_side": not crowded}


def _matrix(counts: np.ndarray, names: Sequence[str], totals: np.ndarray) -> Drawing:
    size = len(names)
    side = WIDTH if size <= CROWDED else 7.5
    drawn, axes = figure(side, side * min(0.96, 0.6 + 0.06 * size))
    between, ends = np.arange(size + 1) - 0.5, (-0.5, size - 0.5)
    axes.hlines(between, *ends, color=COLOUR["line"], linewidth=0.6, zorder=0)
    axes.vlines(between, *ends, color=COLOUR["line"], linewidth=0.6, zorder=0)
    for i, j in np.argwhere(counts):
        part = float(counts[i, j] / totals[i])
        axes.fill(
            [j - 0.5, j + 0.5, j + 0.5, j - 0.5],
            [i - 0.5, i - 0.5, i + 0.5, i + 0.5],
            color=COLOUR["good" if i == j else "bad"],
            alpha=round(0.1 + 0.9 * part, 2),
            linewidth=0,
        )
        ink = COLOUR["ink" if part < 0.62 else "on-mid" if part < 0.8 else "paper"]
        axes.text(j, i, f"{counts[i, j]}", ha="center", va="center", color=ink, fontsize=9)
    labels = [shortened(name, 22) for name in names]
    axes.set_yticks(range(size), labels)
    if max(len(label) for label in labels) * size > 40:
        axes.set_xticks(range(size), labels, rotation=40, ha="right", rotation_mode="anchor")
    else:
        axes.set_xticks(range(size), labels)
    axes.set_xlim(ends)
    axes.set_ylim(ends[::-1])
    axes.set_aspect("equal")
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    right, every = int(np.trace(counts)), int(counts.sum())
    label = f"Confusion matrix of {size} classes: {right} of {every} rows are correct"
    return chart(drawn, "confusion", label)


CLASSES = Panel("classes", "Classes", classes_content)
