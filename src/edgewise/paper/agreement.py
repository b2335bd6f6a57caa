"""The paper against ours, drawn: every cell of Table 2 and of Table 3."""

import math
import statistics
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from edgewise.paper.printed import (
    CITATION,
    MOLECULES,
    ROWS_2,
    ROWS_3,
    SPLITS,
    TABLE_2,
    TABLE_3,
    TITLES,
)
from edgewise.paper.result_store import ResultStore
from edgewise.paper.summary import cell
from edgewise.report.blocks import CaptionedFigure, Key
from edgewise.report.theme import (
    COLOUR,
    GLYPHS,
    MARKERS,
    axes_in_row,
    chart,
    figure,
    series,
)
from edgewise.report.wording import count

_PARTS = ("validation", "test")
_METRIC = {
    "tox21": "ROC-AUC, more is better",
    "lipo": "RMSE, less is better",
    "freesolv": "RMSE, less is better",
}


@dataclass(frozen=True)
class Pair:
    """A cell of Table 2: the mean that the paper prints, and ours, in percent."""

    row: str
    dataset: str
    split: str
    printed: float
    ours: float


def agreement_content(results: ResultStore) -> dict[str, Any]:
    """A scatter plot for each protocol of Table 2, a dot plot for each data set of Table 3."""
    nodes = [_scatter(found, p) for p in ("fixed", "random") if (found := pairs(results, p))]
    molecules = [_dots(results, d) for d in MOLECULES if _molecule_rows(results, d)]
    return {"groups": [group for group in (nodes, molecules) if group]}


def pairs(results: ResultStore, protocol: str) -> list[Pair]:
    """Every cell of Table 2 that has runs."""
    found = []
    for dataset in CITATION:
        for split in SPLITS:
            for row in ROWS_2:
                ours = cell(results, "test", dataset, split, protocol, row)
                if ours.runs:
                    printed = TABLE_2[row, dataset, split].mean
                    found.append(Pair(row, dataset, split, printed, 100 * ours.mean))
    return found


def _scatter(found: list[Pair], protocol: str) -> CaptionedFigure:
    drawn, axes = figure(height=4.0)
    for pair in found:
        place = CITATION.index(pair.dataset)
        colour = COLOUR[series(place)]
        inside = COLOUR["paper"] if pair.split == "sparse" else colour
        style: dict[str, Any] = {"markersize": 5, "markeredgewidth": 1.1, "alpha": 0.85}
        style |= {"markerfacecolor": inside, "markeredgecolor": colour}
        axes.plot([pair.printed], [pair.ours], MARKERS[place], **style)
    values = [value for pair in found for value in (pair.printed, pair.ours)]
    ends = (min(values) - 1, max(values) + 1)
    axes.plot(ends, ends, color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("mean that the paper prints, %")
    axes.set_ylabel("our mean, %")
    present = [d for d in CITATION if any(pair.dataset == d for pair in found)]
    keys = [
        Key(series(CITATION.index(d)), GLYPHS[MARKERS[CITATION.index(d)]], TITLES[d])
        for d in present
    ]
    shapes = {"dot": "dense", "ring": "sparse", "dashes": "equal"}
    keys += [Key("muted", shape, words) for shape, words in shapes.items()]
    title = f"Table 2, {protocol} split{'s' if protocol == 'random' else ''}"
    picture = chart(drawn, f"agreement-{protocol}", f"{title}: {_summary(found)}")
    return CaptionedFigure(title, picture, keys, [_summary(found)])


def _summary(found: list[Pair]) -> str:
    """How near most of them are, and which is the farthest."""
    half = statistics.median(abs(pair.ours - pair.printed) for pair in found)
    far = max(found, key=lambda pair: abs(pair.ours - pair.printed))
    side = "above" if far.ours > far.printed else "below"
    return (
        f"Half of the {count(len(found), 'cell')} lie within {half:.1f} points of the paper. The "
        f"farthest is {far.row} on {TITLES[far.dataset]} {far.split}, "
        f"{abs(far.ours - far.printed):.1f} points {side} it."
    )


def _molecule_rows(results: ResultStore, dataset: str) -> list[str]:
    return [r for r in ROWS_3 if cell(results, "test", dataset, "molecules", "random", r).runs]


def _dots(results: ResultStore, dataset: str) -> CaptionedFigure:
    drawn, both = axes_in_row(2, height=2.5)
    both[0].set_ylim(len(ROWS_3) - 0.5, -0.5)
    both[0].set_yticks(range(len(ROWS_3)), list(ROWS_3))
    for axes, part in zip(both, _PARTS, strict=True):
        axes.set_title(part)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        for place, row in enumerate(ROWS_3):
            ours = cell(results, part, dataset, "molecules", "random", row)
            printed = TABLE_3[row, dataset, part]
            if ours.runs:
                _dot(axes, ours.mean, ours.std, place - 0.15, ours=True)
            _dot(axes, printed.mean, printed.std, place + 0.15, ours=False)
    drawn.supxlabel(_METRIC[dataset], fontsize=9, color=COLOUR["muted"])
    keys = [Key("series-0", "dot", "ours"), Key("muted", "ring", "paper")]
    title = f"Table 3, {TITLES[dataset]}"
    picture = chart(drawn, f"agreement-{dataset}", f"{title}; the numbers are in the table")
    note = "Lines are one standard deviation to either side."
    return CaptionedFigure(title, picture, keys, [note])


def _dot(axes: Axes, mean: float, std: float, y: float, *, ours: bool) -> None:
    colour = COLOUR["series-0" if ours else "muted"]
    if not math.isnan(std):
        axes.plot([mean - std, mean + std], [y, y], color=colour, linewidth=1.6)
    inside = colour if ours else COLOUR["paper"]
    edge: dict[str, Any] = {"markeredgecolor": colour, "markeredgewidth": 1.2}
    axes.plot([mean], [y], "o", markersize=5, markerfacecolor=inside, **edge)
