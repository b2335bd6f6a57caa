"""Figure 2 of the paper: the classes of the training subsets, on the page and as a file."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.paper.networks import Networks
from edgewise.paper.printed import TITLES
from edgewise.report.blocks import CaptionedFigure, Key
from edgewise.report.theme import COLOUR, WIDTH, chart, drawing, figure, light_colours
from edgewise.report.wording import shortened

Classes = Mapping[str, int]  # nodes of each


def balance_content(networks: Networks) -> dict[str, Any]:
    """One figure for each network, and a sentence on each that is missing."""
    figures = [_figure(name, classes) for name, classes in networks.training_classes.items()]
    text = (
        "Figure 2 of the paper, for the dense splitting with 60 % of the nodes in training. "
        "The weighted loss gives each class the same weight."
    )
    notes = [
        f"{TITLES[name]} is left out: {reason}." for name, reason in networks.unavailable.items()
    ]
    return {"text": [text] if figures else [], "figures": figures, "notes": notes}


def write_class_balance(counts: Mapping[str, Classes], path: str | Path) -> None:
    """Draw the classes of each network side by side, in the colours of the light mode.

    Args:
        counts: For each data set, how many nodes each class has.
        path: Where to write; the ending chooses the format.
    """
    colour, ending = light_colours(), Path(path).suffix.removeprefix(".") or "svg"
    picture = BytesIO()
    with drawing(colour), matplotlib.rc_context({"svg.fonttype": "path"}):
        height = _height(max(map(len, counts.values()))) + 0.3
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
        drawn = Figure(figsize=(WIDTH * len(counts), height), layout=layout)
        axes = drawn.subplots(1, len(counts), squeeze=False)[0]
        for axis, (dataset, classes) in zip(axes, counts.items(), strict=True):
            draw_classes(axis, classes, colour)
            axis.set_title(_title(dataset, classes))
        try:
            # Nothing of the moment in it: the same numbers give the same file.
            dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
            paper = colour["paper"]
            drawn.savefig(picture, format=ending, dpi=150, metadata=dated, facecolor=paper)
        except ValueError as error:
            raise EdgewiseError(
                f"cannot draw {path} ({error}); try a name that ends in .svg"
            ) from error
    write_atomically(path, picture.getvalue())


def draw_classes(axes: Axes, classes: Classes, colour: Mapping[str, str]) -> None:
    """A bar for each class: its share of the training nodes, and their number.

    Args:
        axes: Where to draw.
        classes: The number of nodes of each.
        colour: The palette.
    """
    total = sum(classes.values())
    places = range(len(classes))
    shares = [100 * number / total for number in classes.values()]
    axes.barh(places, shares, 0.68, color=colour["series-0"])
    for place, share, number in zip(places, shares, classes.values(), strict=True):
        axes.annotate(
            f"{number:,}",
            (share, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=colour["muted"],
            bbox={"facecolor": colour["paper"], "edgecolor": "none", "pad": 1},
        )
    # What a balanced set would have, so that imbalance is seen, not estimated.
    style: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (4, 3))}
    axes.axvline(100 / len(classes), color=colour["ink"], **style)
    axes.set_yticks(places, [shortened(name.replace("_", " "), 24) for name in classes])
    axes.set_ylim(len(classes) - 0.5, -0.5)
    axes.set_xlim(0, 1.14 * max(shares))
    axes.set_xlabel("share of the training nodes, %")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)


def _figure(dataset: str, classes: Classes) -> CaptionedFigure:
    drawn, axes = figure(height=_height(len(classes)))
    draw_classes(axes, classes, COLOUR)
    title = _title(dataset, classes)
    named = ", ".join(f"{name} {number}" for name, number in classes.items())
    picture = chart(drawn, f"classes-{dataset}", f"{title}: {named}")
    keys = [Key("series-0", "square", "nodes of the class"), Key("ink", "dashes", "balanced")]
    return CaptionedFigure(title, picture, keys)


def _height(classes: int) -> float:
    return 0.8 + 0.27 * classes


def _title(dataset: str, classes: Classes) -> str:
    return f"{TITLES.get(dataset, dataset)}, {sum(classes.values()):,} training nodes"
