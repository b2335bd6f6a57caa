"""How figures look: drawn in stand-in colours that the page's light or dark mode fills in."""

import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgewise.report.blocks import Drawing
from edgewise.report.wording import plain

SERIES = 8
STEPS = 7
# Each is a variable of page.css; matplotlib is given its place in this list as a colour.
_NAMES = ["ink", "muted", "line", "paper", "good", "bad", "on-mid"]
_NAMES += [f"series-{k}" for k in range(SERIES)] + [f"step-{k}" for k in range(STEPS)]
COLOUR = {name: f"#fe00{place:02x}" for place, name in enumerate(_NAMES)}
GLYPHS = {"o": "●", "s": "■", "^": "▲", "D": "◆", "v": "▼", "P": "✚", "X": "✖", "p": "⬟"}
MARKERS = "".join(GLYPHS)
WIDTH = 4.3  # inches of a figure that fills half of a wide page, or a phone's

_ONE_AT_A_TIME = threading.Lock()


def _style(palette: Mapping[str, str]) -> dict[Any, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "edgewise",
        "text.parse_math": False,  # a class may be called $x
        "font.family": "DejaVu Sans",  # wider than what pages are set in, so nothing will overlap
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.labelsize": 9,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "text.color": palette["ink"],
        "axes.labelcolor": palette["muted"],
        "axes.titlecolor": palette["ink"],
        "axes.edgecolor": palette["line"],
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.unicode_minus": True,
        "grid.color": palette["line"],
        "grid.linewidth": 0.6,
        "xtick.color": palette["line"],
        "ytick.color": palette["line"],
        "xtick.labelcolor": palette["muted"],
        "ytick.labelcolor": palette["muted"],
        "lines.linewidth": 1.5,
        "lines.solid_capstyle": "round",
    }


@contextmanager
def drawing(palette: Mapping[str, str] = COLOUR) -> Iterator[None]:
    """Within it, matplotlib draws in the report's style; one report at a time, in any thread.

    Args:
        palette: The stand-in colours of pages, or :func:`light_colours` for files of their own.
    """
    # The way to SVG reads matplotlib's global settings and no others.
    with _ONE_AT_A_TIME, matplotlib.rc_context(_style(palette)), warnings.catch_warnings():
        # The reader's fonts draw the text, so what the measuring font lacks does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def figure(width: float = WIDTH, height: float = 2.9) -> tuple[Figure, Axes]:
    """An empty figure of that many inches, and its axes."""
    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, drawn.subplots()


def axes_in_row(count: int, width: float = WIDTH, height: float = 2.9) -> tuple[Figure, list[Axes]]:
    """An empty figure of that many inches, and its axes side by side, on the same scales."""
    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, list(drawn.subplots(1, count, sharex=True, sharey=True, squeeze=False)[0])


def series(number: int) -> str:
    """The colour of a class or curve, by its number."""
    return f"series-{number % SERIES}"


def thinned(rows: np.ndarray, most: int) -> np.ndarray:
    """At most that many of the rows, always the same ones, in their order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


@cache
def light_colours() -> dict[str, str]:
    """The colours of the light mode, for figures that are files of their own."""
    style = files("edgewise.report").joinpath("templates/page.css").read_text(encoding="utf-8")
    light, _ = style.split("@media (prefers-color-scheme: dark)")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))


def chart(drawn: Figure, name: str, label: str) -> Drawing:
    """A figure as inline SVG.

    Args:
        drawn: The figure.
        name: Its own on the page, for the ids within.
        label: What it shows, for those who cannot see it.
    """
    stream = BytesIO()
    drawn.savefig(stream, format="svg", metadata={"Date": None})
    text = plain(stream.getvalue().decode("utf-8"))
    size = re.search(r'viewBox="([^"]*)"', text)
    assert size is not None
    body = text[text.index(">", size.end()) + 1 : text.rindex("</svg>")]
    for part in (r"<metadata>.*?</metadata>", r"<style.*?</style>", r"<!--.*?-->"):
        body = re.sub(part, "", body, flags=re.DOTALL)
    # Within tags alone: what a user's own words look like must not matter.
    body = re.sub(r"<[^>]+>", lambda tag: _in_page_form(tag.group()), body)
    return Drawing("chart", size[1], Markup(_with_own_ids(body, name).strip()), label)


def _in_page_form(tag: str) -> str:
    """A tag in the page's colours and fonts, on one line, in hundredths of a point."""
    tag = " ".join(tag.replace("xlink:href", "href").split())
    tag = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", tag)
    tag = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number.group()):.2f}", tag)
    return in_page_colours(tag)


def in_page_colours(style: str) -> str:
    """The style with variables of the page for stand-in colours."""
    return re.sub(
        r"#fe00([0-9a-f]{2})", lambda m: f"var(--{_NAMES[int(m[1], 16)]})", style, flags=re.I
    )


def _with_own_ids(body: str, name: str) -> str:
    """Ids that no other figure has, and only where something refers to them."""
    tags = re.findall(r"<[^>]+>", body)
    used = {target for tag in tags for target in re.findall(r"#([^\")]+)", tag)}
    own = {old: f"{name}-{place}" for place, old in enumerate(sorted(used))}

    def renamed(tag: re.Match[str]) -> str:
        kept = re.sub(
            r' id="([^"]*)"', lambda m: f' id="{own[m[1]]}"' if m[1] in own else "", tag[0]
        )
        return re.sub(r"#([^\")]+)", lambda m: f"#{own[m[1]]}", kept)

    return re.sub(r"<[^>]+>", renamed, body)
