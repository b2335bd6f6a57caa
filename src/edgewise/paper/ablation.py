"""The ablation, drawn: what each component adds to its baseline, here and in the paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from edgewise.paper.printed import BASELINE, CITATION, SPLITS, TABLE_2, TITLES
from edgewise.paper.result_store import ResultStore
from edgewise.paper.summary import Difference, difference
from edgewise.report.blocks import CaptionedFigure, Key
from edgewise.report.theme import COLOUR, GLYPHS, axes_in_row, chart
from edgewise.report.wording import MINUS

# From the top: what is added to the baseline, and the row that has it and nothing else.
COMPONENTS = {
    "GCN + D": "EGNN(C)-M",
    "GCN + M": "EGNN(C)-D",
    "GCN + both": "EGNN(C)",
    "GAT + D": "EGNN(A)-A-M",
    "GAT + M": "EGNN(A)-A-D",
    "GAT + A": "EGNN(A)-D-M",
    "GAT + all": "EGNN(A)",
}
LOSSES = {"": "unweighted loss", "*": "weighted loss"}
_MARKS = {"fixed": ("series-0", "o"), "random": ("series-1", "D")}
_PLACES = (0.0, 1.0, 2.0, 3.4, 4.4, 5.4, 6.4)  # of the components, with a gap between the baselines
_SLOTS = {"fixed": -0.27, "random": 0.0, "paper": 0.27}
# Intervals of few runs are wide, and the paper's baselines collapse on Cora: neither may squeeze
# the rest. So far beyond a mean an interval counts for the scale, in points, and no farther.
_FARTHEST = 2.0
_LEAST = 1.5  # points to either side of zero, that a scale has at least

Gains = dict[tuple[str, str, str], Difference]  # by protocol, splitting and row


@dataclass(frozen=True)
class DrawnGains:
    """A data set, what its intervals say, and a figure for each splitting."""

    title: str
    text: str
    figures: tuple[CaptionedFigure, ...]


def ablation_content(results: ResultStore) -> dict[str, Any]:
    """Two figures for each data set, one for each splitting."""
    found = {dataset: known_gains(results, dataset) for dataset in CITATION}
    datasets = [
        DrawnGains(
            TITLES[dataset],
            _summary(gains),
            tuple(_figure(gains, dataset, split) for split in SPLITS if _has(gains, split)),
        )
        for dataset, gains in found.items()
        if gains
    ]
    return {"meaning": _MEANING, "datasets": datasets, "caution": _CAUTION}


_MEANING = (
    "Percentage points of test accuracy that a component adds to its baseline when it is added "
    "alone: doubly stochastic normalisation (D), multi-dimensional edge features (M), adaptation "
    "of the edges from layer to layer (A). Lines are 95 % intervals of the mean difference over "
    "pairs of runs with the same split and seed; a single pair has none. Rings are the differences "
    "of the means that the paper prints; where one lies beyond the scale, an arrow with its "
    "number stands at the edge. The figures of a data set have the same scale."
)
_CAUTION = (
    "A difference may hold more than its component. GAT has 8 heads of width 8, as its authors "
    "have it, and every EGNN(A) row one head of width 64 for each channel: A alone is EGNN(A)-D-M "
    "less GAT, so it holds that change of heads as well. And M, which makes three channels of "
    "one, makes the hidden layers three times as wide."
)


def known_gains(results: ResultStore, dataset: str) -> Gains:
    """What is known of each component on a data set, with either loss."""
    rows = [row + star for row in COMPONENTS.values() for star in LOSSES]
    gains = {
        (protocol, split, row): difference(results, dataset, split, protocol, row)
        for protocol in _MARKS
        for split in SPLITS
        for row in rows
    }
    return {place: gain for place, gain in gains.items() if gain.runs}


def printed_gain(dataset: str, split: str, row: str) -> float:
    """The same from the means that the paper prints, in points."""
    return TABLE_2[row, dataset, split].mean - TABLE_2[BASELINE[row], dataset, split].mean


def _has(gains: Gains, split: str) -> bool:
    return any(known == split for _, known, _ in gains)


def _summary(gains: Gains) -> str:
    sentences = []
    for protocol, name in (("fixed", "On the fixed split"), ("random", "Over random splits")):
        sure = [g for (p, _, _), g in gains.items() if p == protocol and not math.isnan(g.low)]
        if sure:
            above, below = sum(g.low > 0 for g in sure), sum(g.high < 0 for g in sure)
            sentences.append(
                f"{name}, {above} of {len(sure)} intervals lie above zero, {below} below, and "
                f"{len(sure) - above - below} include it."
            )
    return " ".join(sentences) or "There are too few runs for intervals."


def limits(gains: Sequence[Difference]) -> tuple[float, float]:
    """A scale, in points, on which our differences can be read."""
    lows, highs = [-_LEAST], [_LEAST]
    for gain in gains:
        mean = 100 * gain.mean
        half = 0.0 if math.isnan(gain.low) else min(100 * gain.high - mean, _FARTHEST)
        lows.append(mean - half)
        highs.append(mean + half)
    margin = 0.06 * (max(highs) - min(lows))
    return min(lows) - margin, max(highs) + margin


def _figure(gains: Gains, dataset: str, split: str) -> CaptionedFigure:
    drawn, both = axes_in_row(2, height=4.1)
    low, high = limits(list(gains.values()))
    both[0].set_xlim(low, high)
    both[0].set_ylim(_PLACES[-1] + 0.55, _PLACES[0] - 0.55)
    both[0].set_yticks(_PLACES, list(COMPONENTS))
    both[0].xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    for axes, (star, loss) in zip(both, LOSSES.items(), strict=True):
        axes.set_title(loss)
        axes.axvline(0, color=COLOUR["muted"], linewidth=0.9, zorder=1)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        for place, row in zip(_PLACES, COMPONENTS.values(), strict=True):
            for protocol in _MARKS:
                gain = gains.get((protocol, split, row + star))
                if gain is not None:
                    _draw_ours(axes, gain, place, protocol)
            _draw_paper(axes, printed_gain(dataset, split, row + star), place)
    drawn.supxlabel("percentage points", fontsize=9, color=COLOUR["muted"])
    shown = [p for p in _MARKS if any((p, split) == key[:2] for key in gains)]
    keys = [
        Key(_MARKS[p][0], GLYPHS[_MARKS[p][1]], f"{p} split{'s' if p == 'random' else ''}")
        for p in shown
    ]
    keys.append(Key("muted", "ring", "paper"))
    label = f"What components add on {TITLES[dataset]}, {split}; the numbers are in the tables"
    picture = chart(drawn, f"ablation-{dataset}-{split}", label)
    return CaptionedFigure(f"{TITLES[dataset]}, {split}", picture, keys)


def _draw_ours(axes: Axes, gain: Difference, place: float, protocol: str) -> None:
    colour, marker = _MARKS[protocol]
    y = place + _SLOTS[protocol]
    axes.plot([100 * gain.low, 100 * gain.high], [y, y], color=COLOUR[colour], linewidth=1.6)
    style: dict[str, Any] = {"markersize": 5.0 if marker == "o" else 4.4, "markeredgewidth": 0}
    axes.plot([100 * gain.mean], [y], marker, color=COLOUR[colour], **style)


def _draw_paper(axes: Axes, gain: float, place: float) -> None:
    low, high = axes.get_xlim()
    y = place + _SLOTS["paper"]
    if low <= gain <= high:
        ring: dict[str, Any] = {"markerfacecolor": COLOUR["paper"], "markeredgewidth": 1.2}
        axes.plot([gain], [y], "o", markersize=4.6, markeredgecolor=COLOUR["muted"], **ring)
        return
    above = gain > high
    edge, marker, side = (high, ">", "right") if above else (low, "<", "left")
    axes.plot([edge], [y], marker, color=COLOUR["muted"], markersize=4.4, clip_on=False)
    axes.annotate(
        f"{gain:+.1f}".replace("-", MINUS),
        (edge, y),
        xytext=(-5 if above else 5, 0),
        textcoords="offset points",
        ha=side,
        va="center",
        fontsize=8,
        color=COLOUR["muted"],
    )
