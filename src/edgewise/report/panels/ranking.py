"""The places of links among pairs without one: hits at k by k, and how often each place occurs."""

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from edgewise.report.blocks import CaptionedFigure, Key
from edgewise.report.panels.panel import Panel, PanelInput
from edgewise.report.theme import COLOUR, SERIES, chart, figure, series
from edgewise.report.wording import count, metric
from edgewise.tasks.records import Ranking

MOST_CURVES = 12  # solid, then dashed in the same colours


def ranking_content(given: PanelInput) -> dict[str, Any] | None:
    """Curves of every output, and the distribution of the first one's ranks."""
    _, truth, predicted = given.judged()
    found = given.results.task.rankings(truth, predicted)
    if not found:
        return None
    first = found[0]
    text = (
        f"Each {given.results.judged} link is ranked among {count(first.among - 1, 'pair')} "
        "without an edge; ties share a place."
    )
    return {"text": [text], "figures": [_hits(found), _places(first, named=len(found) > 1)]}


def _hits(found: tuple[Ranking, ...]) -> CaptionedFigure:
    drawn, axes = figure(height=3.2)
    keys = []
    k = np.arange(1, found[0].among + 1)
    axes.plot(k, k / len(k), color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)))
    shown = sorted(found, key=lambda one: -len(one.places))[:MOST_CURVES]
    for number, one in enumerate(one for one in found if one in shown):
        share = (one.places[:, None] <= k).mean(axis=0)
        style = "-" if number < SERIES else (0, (4, 1.5))
        axes.plot(k, share, color=COLOUR[series(number)], linestyle=style, linewidth=1.4)
        shape = "line" if number < SERIES else "dashes"
        reciprocal = metric("mrr", float((1 / one.places).mean()))
        keys.append(Key(series(number), shape, f"{one.name} (MRR {reciprocal})"))
    axes.set_xlim(1, max(len(k), 2))
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.set_xlabel("k")
    axes.set_ylabel("share of links in the first k places")
    keys.append(Key("muted", "dashes", "by chance"))
    left_out = len(found) - len(shown)
    notes = [f"The {left_out} rarest are not drawn."] if left_out else []
    label = f"Share of links among the first k of {len(k)} places, by k"
    return CaptionedFigure("Hits at k", chart(drawn, "hits", label), keys, notes)


def _places(one: Ranking, *, named: bool) -> CaptionedFigure:
    drawn, axes = figure(height=3.2)
    place = np.floor(one.places).astype(int)
    share = np.bincount(place, minlength=one.among + 1)[1:] / len(place)
    axes.bar(np.arange(1, one.among + 1), share, 0.8, color=COLOUR["series-0"], linewidth=0)
    axes.axhline(1 / one.among, color=COLOUR["muted"], linewidth=0.9, linestyle=(0, (4, 3)))
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.set_xlabel("rank")
    axes.set_ylabel("share of links")
    keys = [
        Key("series-0", "square", f"{count(len(place), 'link')}"),
        Key("muted", "dashes", "by chance"),
    ]
    title = f"Distribution of ranks of {one.name}" if named else "Distribution of ranks"
    label = f"How many links have each of {one.among} ranks"
    return CaptionedFigure(title, chart(drawn, "ranks", label), keys)


RANKING = Panel("ranking", "Ranking", ranking_content)
