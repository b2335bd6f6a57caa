"""How probabilities rank, and how they agree with what is observed: ROC and calibration."""

from typing import Any

import numpy as np

from edgewise.report.blocks import CaptionedFigure, Key
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.theme import COLOUR, SERIES, chart, figure, series
from edgewise.report.wording import count, metric
from edgewise.tasks.metrics import calibration
from edgewise.tasks.records import BinaryQuestion, CalibrationPairs

FEW = 10  # rows whose share says little
MOST_CURVES = 12  # solid, then dashed in the same colours


def probabilities_content(given: PanelInput) -> dict[str, Any]:
    """ROC curves of every class or label, and predicted against observed frequencies."""
    _, truth, predicted = given.judged()
    view = given.results.task
    questions = view.binary_questions(truth, predicted)
    pairs = view.calibration_pairs(truth, predicted)
    figures = [_roc(questions, view.output_word)] if questions else []
    if pairs is not None:
        figures.append(_calibration(pairs))
    text = [] if questions else [f"No {view.output_word} has both answers, so no ROC curve."]
    return {"text": text, "figures": figures}


def _roc(asked: tuple[BinaryQuestion, ...], word: str) -> CaptionedFigure:
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
        keys.append(Key(series(k), shape, f"{question.name} {area}"))
    axes.set_aspect("equal")
    axes.set_xlim(-0.01, 1.01)
    axes.set_ylim(-0.01, 1.01)
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    picture = chart(drawn, "roc", f"{count(len(shown), 'ROC curve')}")
    left_out = len(asked) - len(shown)
    notes = [f"The {left_out} rarest are not drawn."] if left_out else []
    title = f"ROC curve of each {word}" if len(shown) > 1 else f"ROC curve of {shown[0].name}"
    return CaptionedFigure(title, picture, keys, notes)


def _calibration(pairs: CalibrationPairs) -> CaptionedFigure:
    bins = calibration(pairs.probability, pairs.observed)
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
    axes.set_xlabel("predicted probability")
    axes.set_ylabel(f"observed {pairs.event}")
    keys = [Key("series-0", "dot", "ten equal bins"), Key("muted", "bars", "rows in each bin")]
    if few.any():
        keys.insert(1, Key("series-0", "ring", f"fewer than {FEW} rows"))
    keys.append(Key("muted", "dashes", "perfectly calibrated"))
    label = f"Predicted probability against observed {pairs.event}"
    note = f"The {pairs.meaning}. Below the diagonal, the model is overconfident."
    return CaptionedFigure("Calibration", chart(drawn, "calibration", label), keys, [note])


PROBABILITIES = Panel("probabilities", "Probabilities", probabilities_content)
