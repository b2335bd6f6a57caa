"""What the templates of a page are given: plain records, which autoescape turns into HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True)
class Drawing:
    """A figure that matplotlib or RDKit drew.

    Args:
        kind: ``"chart"`` or ``"molecule"``.
        size: The four numbers of its view box.
        body: What is inside the SVG element, cleaned.
        label: What it shows, for those who cannot see it.
    """

    kind: str
    size: str
    body: Markup
    label: str


@dataclass(frozen=True)
class Key:
    """What a colour means.

    Args:
        colour: A variable of ``page.css``.
        shape: One of line, dashes, dot, ring, square and bars, or a glyph.
        words: The meaning.
    """

    colour: str
    shape: str
    words: str


@dataclass(frozen=True)
class CaptionedFigure:
    """A drawing with its title, its legend and notes."""

    title: str
    drawing: Drawing
    keys: Sequence[Key] = ()
    notes: Sequence[str] = ()
    scrolls: bool = False  # on a narrow screen, instead of becoming too small to read


@dataclass(frozen=True)
class TableData:
    """A table of words and numbers.

    Args:
        label: What it shows, for those who cannot see it.
        header: The names of the columns.
        rows: Their cells; the first one names its row.
        words: How many columns, from the left, hold words; the others hold numbers.
        title: Above it, where it stands among figures.
        notes: Below it.
    """

    label: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    title: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class ScoreCard:
    """A number that a reader wants first."""

    label: str
    value: str
    detail: str
    main: bool = False


@dataclass(frozen=True)
class Heading:
    """What stands above the links to the sections."""

    brand: str
    title: str
    subtitle: str
    scores: Sequence[ScoreCard]
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page: the template that shows it, and what the template is given."""

    anchor: str
    title: str
    template: str
    content: Mapping[str, Any]
