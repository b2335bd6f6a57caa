"""Which classes are taken for which, how well each is found, and how many rows each has."""

from collections.abc import Sequence

import numpy as np

from edgewise.report.markup import Markup, element, shortened, table
from edgewise.report.results import SUBSETS, Results
from edgewise.report.theme import COLOUR, WIDTH, chart, figure, framed, legend
from edgewise.report.wording import METRICS, metric, number, share

MOST_CLASSES = 24


def confusion_section(results: Results) -> Markup:
    """Confusion matrix and table of the classes."""
    rows = results.rows(results.judged)
    rows = rows[results.truth[rows] >= 0]
    truth, found = results.truth[rows], results.predicted[rows].argmax(axis=1)
    classes = results.task.classes
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (truth, found), 1)
    shown = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES])
    note = (
        element("p", f"The {len(shown)} largest of {len(classes)} classes are drawn.")
        if len(shown) < len(classes)
        else ""
    )
    keys = [("good", "square", "right"), ("bad", "square", "wrong")]
    matrix = framed(
        "Confusion matrix",
        _matrix(
            counts[np.ix_(shown, shown)], [classes[k] for k in shown], counts.sum(axis=1)[shown]
        ),
        legend(keys),
        element("p", "The stronger the colour, the larger the share of the row."),
        note,
    )
    scores = results.metrics[results.judged]["per_class"]
    columns = ("precision", "recall", "f1", "rows")
    cells = [
        (name, *(metric(column, scores[name][column]) for column in columns)) for name in classes
    ]
    header = ("class", *(METRICS[column] for column in columns))
    per_class = element(
        "figure", element("figcaption", "Each class"), table(header, cells, label="Each class")
    )
    return element("div", matrix, per_class, class_="pair")


def _matrix(counts: np.ndarray, names: Sequence[str], totals: np.ndarray) -> Markup:
    size = len(names)
    side = WIDTH if size <= 12 else WIDTH * 1.6
    drawn, axes = figure(side, side * 0.96)
    for i, j in np.argwhere(counts):
        part = counts[i, j] / totals[i]
        colour = COLOUR["good" if i == j else "bad"]
        axes.fill(
            [j - 0.5, j + 0.5, j + 0.5, j - 0.5],
            [i - 0.5, i - 0.5, i + 0.5, i + 0.5],
            color=colour,
            alpha=round(0.1 + 0.9 * float(part), 2),
            linewidth=0,
        )
        if size <= 16:
            ink = COLOUR["paper" if part > 0.45 else "ink"]
            axes.text(j, i, f"{counts[i, j]}", ha="center", va="center", color=ink, fontsize=9)
    labels = [shortened(name, 22) for name in names]
    axes.set_xticks(range(size), labels, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(size), labels)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    right = int(np.trace(counts))
    label = f"Confusion matrix of {size} classes: {right} of {int(counts.sum())} are right"
    return chart(drawn, "confusion", label)


def balance_section(results: Results) -> Markup:
    """The share of each class or label in each subset, or how the values are spread."""
    if results.task.kind == "regression":
        return _value_spread(results)
    present = [name for name in SUBSETS if len(results.rows(name))]
    cells = []
    for k, name in enumerate(results.task.outputs):
        row: list[str] = [name]
        for subset in present:
            truth = results.truth[results.rows(subset)]
            if results.task.kind == "classification":
                positives, known = int((truth == k).sum()), int((truth >= 0).sum())
            else:
                positives, known = int((truth[:, k] > 0).sum()), int((~np.isnan(truth[:, k])).sum())
            row.append(_bar(positives, known))
        cells.append(row)
    what = "class" if results.task.kind == "classification" else "label"
    body = table((what, *present), cells, words=len(present) + 1, label=f"Rows of each {what}")
    return element("div", body, class_="balance")


def _bar(part: int, whole: int) -> Markup:
    of_all = part / whole if whole else 0.0
    bar = element("i", style=f"width:{100 * of_all:.1f}%")
    words = element("span", element("b", f"{part:,}"), f" {share(of_all)}")
    return element("span", words, element("span", bar, class_="track"), class_="bar")


def _value_spread(results: Results) -> Markup:
    cells = []
    for k, name in enumerate(results.task.names):
        for subset in SUBSETS:
            rows = results.known(results.rows(subset), k)
            if len(rows):
                v = results.truth[rows, k]
                told = (v.mean(), v.std(), v.min(), np.median(v), v.max())
                cells.append((name, subset, f"{len(v):,}", *(number(float(x)) for x in told)))
    header = ("target", "part", "rows", "mean", "spread", "least", "median", "most")
    return table(header, cells, words=2, label="Values in each part")
