"""Loss and validation score of each epoch."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from edgewise.report.blocks import CaptionedFigure, Drawing, Key
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.run_results import History, RunResults
from edgewise.report.theme import COLOUR, chart, figure
from edgewise.report.wording import METRICS, SHARES, count, listed, metric

_TRAIN, _VALIDATION = "series-0", "series-1"


def learning_content(given: PanelInput) -> dict[str, Any]:
    """Losses and validation score of all members, with the epoch whose weights were kept."""
    results = given.results
    validated = any(np.isfinite(h.validation_loss).any() for h in results.history)
    keys = [Key(_TRAIN, "line", "training")]
    if validated:
        keys.append(Key(_VALIDATION, "line", "validation"))
    best = Key(_VALIDATION if validated else _TRAIN, "ring", "best epoch")
    figures = [CaptionedFigure("Loss", _losses(results, validated), [*keys, best])]
    if validated:
        title = f"Validation {METRICS[results.task.headline]}"
        keys = [Key(_VALIDATION, "line", "validation"), best]
        figures.append(CaptionedFigure(title, _scores(results), keys))
    return {"text": [_sentence(results), *_of_blend(results)], "figures": figures}


def _of_blend(results: RunResults) -> list[str]:
    """That predictions are not those of the networks alone, where a regression has its share."""
    share = results.metrics.get("descriptors_weight")
    if share is None:
        return []
    return [
        f"Predictions are a blend: {1 - share:.2f} of the network and {share:.2f} of a kernel "
        "regression on fingerprints and descriptors, as the validation rows chose. The curves are "
        "those of the network."
    ]


def _sentence(results: RunResults) -> str:
    best = [history.best for history in results.history]
    epochs = [len(history.epoch) for history in results.history]
    seconds = results.metrics["seconds"]
    took = f"{seconds:.1f} seconds" if seconds < 120 else f"{seconds / 60:.1f} minutes"
    took = took if seconds >= 1 else "less than a second"
    if len(best) == 1:
        return (
            f"Trained for {count(epochs[0], 'epoch')} in {took}; the weights are those of epoch "
            f"{best[0]:,}."
        )
    each = f"{epochs[0]:,} epochs each" if len(set(epochs)) == 1 else f"{listed(epochs)} epochs"
    return (
        f"{len(best)} members, trained for {each} in {took}; their weights "
        f"are those of epochs {listed(best)}."
    )


def _losses(results: RunResults, validated: bool) -> Drawing:
    drawn, axes = figure()
    lowest, highest = np.inf, 0.0
    for history in results.history:
        style = _curve(results, history)
        axes.plot(history.epoch, history.train_loss, color=COLOUR[_TRAIN], **style)
        curves = [history.train_loss]
        colour, of_best = _TRAIN, history.train_loss
        if validated:
            colour, of_best = _VALIDATION, history.validation_loss
            axes.plot(history.epoch, of_best, color=COLOUR[colour], **style)
            curves.append(of_best)
        _mark_best(axes, history.best, of_best[history.best - 1], colour)
        lowest = min(lowest, *(float(curve.min()) for curve in curves))
        highest = max(highest, *(float(curve.max()) for curve in curves))
    if lowest > 0 and highest / lowest > 50:
        axes.set_yscale("log")
        # Its own labels are formulas, which are not set: names of users may look like some.
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    _finish(axes, "loss", max(len(history.epoch) for history in results.history))
    return chart(drawn, "losses", "Training and validation loss at each epoch")


def _scores(results: RunResults) -> Drawing:
    name = results.task.headline
    drawn, axes = figure()
    for history in results.history:
        score = history.validation_score
        axes.plot(history.epoch, score, color=COLOUR[_VALIDATION], **_curve(results, history))
        if np.isfinite(score[history.best - 1]):
            _mark_best(axes, history.best, score[history.best - 1], _VALIDATION)
    if name in SHARES:
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    _finish(axes, METRICS[name], max(len(history.epoch) for history in results.history))
    reached = metric(name, results.history[0].validation_score[results.history[0].best - 1])
    return chart(
        drawn, "scores", f"Validation {METRICS[name]} at each epoch, {reached} at the best one"
    )


def _curve(results: RunResults, history: History) -> dict[str, Any]:
    # Many members make thin lines; a single epoch makes no line at all.
    marker = "o" if len(history.epoch) == 1 else ""
    return {"linewidth": 1.5 if len(results.history) == 1 else 0.9, "marker": marker}


def _mark_best(axes: Axes, epoch: int, value: float, colour: str) -> None:
    axes.axvline(epoch, color=COLOUR["muted"], linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    ring: dict[str, Any] = {"markerfacecolor": COLOUR["paper"], "markeredgecolor": COLOUR[colour]}
    axes.plot(
        [epoch], [value], "o", markersize=6, clip_on=False, markeredgewidth=1.6, zorder=5, **ring
    )


def _finish(axes: Axes, label: str, epochs: int) -> None:
    axes.set_xlabel("epoch")
    axes.set_ylabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.set_xlim(min(1, epochs - 1), max(epochs, 2) * 1.01)


LEARNING = Panel("learning", "Learning curves", learning_content)
