"""Which classes are taken for which, and how well each is found."""

from collections.abc import Sequence

import numpy as np

from edgewise.report.markup import Markup, element, shortened, table
from edgewise.report.results import Results
from edgewise.report.theme import COLOUR, WIDTH, chart, figure, framed, legend
from edgewise.report.wording import METRICS, metric

MOST_CLASSES = 24
CROWDED = 12  # with more classes the matrix takes the whole width
_KEYS = (("good", "square", "right"), ("bad", "square", "wrong"))
_MEASURES = ("precision", "recall", "f1", "rows")


def confusion_section(results: Results) -> Markup:
    """Confusion matrix and table of the classes."""
    rows = results.rows(results.judged)
    rows = rows[results.truth[rows] >= 0]
    classes = results.task.classes
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (results.truth[rows], results.predicted[rows].argmax(axis=1)), 1)
    totals = counts.sum(axis=1)
    shown = np.sort(np.argsort(-totals, kind="stable")[:MOST_CLASSES])
    told = "The stronger the colour, the larger the share of the row."
    if len(shown) < len(classes):
        told += f" The {len(shown)} largest of {len(classes)} classes are drawn."
    picture = _matrix(counts[np.ix_(shown, shown)], [classes[k] for k in shown], totals[shown])
    crowded = len(shown) > CROWDED
    if crowded:
        picture = element("div", picture, class_="scroll wide")
    matrix = framed("Confusion matrix", picture, legend(_KEYS), element("p", told))
    scores = results.metrics[results.judged]["per_class"]
    cells = [(name, *(metric(m, scores[name][m]) for m in _MEASURES)) for name in classes]
    body = table(("class", *(METRICS[m] for m in _MEASURES)), cells, label="Each class")
    per_class = framed("Each class", body)
    return element("div", matrix, per_class, class_="stack" if crowded else "pair")


def _matrix(counts: np.ndarray, names: Sequence[str], totals: np.ndarray) -> Markup:
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
    label = f"Confusion matrix of {size} classes: {right} of {every} rows are right"
    return chart(drawn, "confusion", label)
