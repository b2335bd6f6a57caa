"""How probabilities rank and whether they can be believed: ROC curves and calibration."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.metrics import calibration
from edgewise.report.markup import Markup, element
from edgewise.report.results import Results
from edgewise.report.theme import COLOUR, SERIES, chart, figure, framed, legend, series
from edgewise.report.wording import count, metric

FEW = 10  # rows whose share says little
MOST_CURVES = 12  # solid, then dashed in the same colours


@dataclass(frozen=True, eq=False)
class Ranked:
    """One yes-or-no question: is it this class, or has it this label?"""

    name: str
    probability: np.ndarray
    truth: np.ndarray  # of bools


def questions(results: Results) -> list[Ranked]:
    """The questions that the judged rows answer both ways."""
    rows, task = results.rows(results.judged), results.task
    asked = []
    if task.kind == "classification":
        rows = rows[results.truth[rows] >= 0]
        # Of two classes, one is the other's mirror image.
        numbers = [1] if len(task.classes) == 2 else range(len(task.classes))
        for k in numbers:
            asked.append(
                Ranked(task.classes[k], results.predicted[rows, k], results.truth[rows] == k)
            )
    else:
        for k, name in enumerate(task.names):
            known = results.known(rows, k)
            asked.append(Ranked(name, results.predicted[known, k], results.truth[known, k] > 0))
    return [question for question in asked if question.truth.any() and not question.truth.all()]


def ranking_section(results: Results) -> Markup:
    """ROC curves of every class or label, and promised against met probability."""
    asked = questions(results)
    figures = [_roc(asked, results)] if asked else []
    figures.append(_calibration(results))
    nothing = "" if asked else element("p", "No class or label occurs both ways, so no ROC curve.")
    return element("div", nothing, element("div", *figures, class_="pair"))


def _roc(asked: list[Ranked], results: Results) -> Markup:
    from sklearn.metrics import roc_auc_score, roc_curve

    shown = sorted(asked, key=lambda question: -int(question.truth.sum()))[:MOST_CURVES]
    shown = [question for question in asked if question in shown]
    drawn, axes = figure(height=3.7)
    axes.plot([0, 1], [0, 1], color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)))
    keys = []
    for k, question in enumerate(shown):
        false, true, _ = roc_curve(question.truth, question.probability)
        shape = "line" if k < SERIES else "dashes"
        style = "-" if k < SERIES else (0, (4, 1.5))
        axes.plot(false, true, color=COLOUR[series(k)], linestyle=style, linewidth=1.4)
        area = metric("roc_auc", float(roc_auc_score(question.truth, question.probability)))
        keys.append((series(k), shape, f"{question.name} {area}"))
    axes.set_aspect("equal")
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.01)
    axes.set_xlabel("false alarms, share of all others")
    axes.set_ylabel("found, share of all that belong")
    picture = chart(drawn, "roc", f"{count(len(shown), 'ROC curve')}")
    left_out = len(asked) - len(shown)
    note = f"The {left_out} rarest are not drawn." if left_out else ""
    what = "each class against the rest" if results.task.kind == "classification" else "each label"
    title = f"ROC curve of {what}" if len(shown) > 1 else f"ROC curve of {shown[0].name}"
    return framed(title, picture, legend(keys), element("p", note) if note else "")


def _calibration(results: Results) -> Markup:
    rows, task = results.rows(results.judged), results.task
    if task.kind == "classification":
        rows = rows[results.truth[rows] >= 0]
        promised = results.predicted[rows].max(axis=1)
        hit = results.predicted[rows].argmax(axis=1) == results.truth[rows]
        axis_label, told = "share that was right", "the probability of the predicted class"
    else:
        known = ~np.isnan(results.truth[rows])
        promised, hit = results.predicted[rows][known], results.truth[rows][known] > 0
        axis_label, told = (
            "share that was true",
            "the probability of each label, all taken together",
        )
    bins = calibration(promised, hit)
    drawn, axes = figure(height=3.7)
    axes.plot([0, 1], [0, 1], color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)))
    x, y, rows_of = (np.array(column) for column in zip(*bins, strict=True))
    # Bars along the bottom: how many rows stand behind each point.
    place, height = np.minimum(x * 10 // 1, 9) / 10 + 0.05, 0.18 * rows_of / rows_of.max()
    axes.bar(place, height, 0.08, color=COLOUR["muted"], alpha=0.35, linewidth=0)
    axes.plot(x, y, color=COLOUR["series-0"], marker="o", markersize=5.5)
    few = rows_of < FEW
    ring: dict[str, Any] = {"markerfacecolor": COLOUR["paper"], "linestyle": "none"}
    axes.plot(x[few], y[few], color=COLOUR["series-0"], marker="o", markersize=5.5, **ring)
    axes.set_aspect("equal")
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.01)
    axes.set_xlabel("probability that was promised")
    axes.set_ylabel(axis_label)
    keys = [("series-0", "dot", "in tenths"), ("muted", "bars", "rows in each, to scale")]
    if few.any():
        keys.insert(1, ("series-0", "ring", f"fewer than {FEW} rows"))
    keys.append(("muted", "dashes", "perfectly calibrated"))
    picture = chart(drawn, "calibration", "Promised against met probability")
    note = element("p", f"Of {told}. Below the diagonal, the model is too sure of itself.")
    return framed("Calibration", picture, legend(keys), note)
