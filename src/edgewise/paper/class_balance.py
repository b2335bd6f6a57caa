"""Figure 2 of the paper, drawn: the classes of the training subsets."""

from collections.abc import Mapping
from typing import Any

from edgewise.paper.networks import Networks
from edgewise.paper.printed import TITLES
from edgewise.report.markup import Markup, element, shortened
from edgewise.report.theme import COLOUR, chart, figure, framed, legend


def balance_section(networks: Networks) -> Markup:
    """One figure for each network, and a sentence on each that is missing."""
    figures = [_bars(name, classes) for name, classes in networks.training_classes.items()]
    parts = [element("div", *figures, class_="pair")] if figures else []
    if figures:
        told = (
            "Figure 2 of the paper, for the dense splitting with 60 % of the nodes in training. "
            "The weighted loss gives each class the same say."
        )
        parts.insert(0, element("p", told))
    parts += [
        element("p", f"{TITLES[name]} is left out: {reason}.", class_="note")
        for name, reason in networks.unavailable.items()
    ]
    return element("div", *parts)


def _bars(dataset: str, classes: Mapping[str, int]) -> Markup:
    total = sum(classes.values())
    drawn, axes = figure(height=0.8 + 0.27 * len(classes))
    places = range(len(classes))
    shares = [100 * number / total for number in classes.values()]
    axes.barh(places, shares, 0.68, color=COLOUR["series-0"])
    for place, share, number in zip(places, shares, classes.values(), strict=True):
        axes.annotate(
            f"{number:,}",
            (share, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=COLOUR["muted"],
            bbox={"facecolor": COLOUR["paper"], "edgecolor": "none", "pad": 1},
        )
    # What a balanced set would have, so that imbalance is seen, not estimated.
    style: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (4, 3))}
    axes.axvline(100 / len(classes), color=COLOUR["ink"], **style)
    axes.set_yticks(places, [shortened(name.replace("_", " "), 24) for name in classes])
    axes.set_ylim(len(classes) - 0.5, -0.5)
    axes.set_xlim(0, 1.14 * max(shares))
    axes.set_xlabel("share of the training nodes, %")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    told = f"{TITLES[dataset]}, {total:,} training nodes"
    named = ", ".join(f"{name} {number}" for name, number in classes.items())
    picture = chart(drawn, f"classes-{dataset}", f"{told}: {named}")
    keys = [("series-0", "square", "nodes of the class"), ("ink", "dashes", "if all were equal")]
    return framed(told, picture, legend(keys))
