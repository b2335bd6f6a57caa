"""HTML in which everything is escaped unless it is markup already."""

import re
from collections.abc import Iterable, Sequence
from html import escape

# Characters that HTML cannot hold, not even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is HTML, and is not escaped again."""

    __slots__ = ()


def plain(text: str) -> str:
    """The text without characters that an HTML file cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)


def as_markup(text: str) -> Markup:
    """The text as it should be read, whoever wrote it."""
    return text if isinstance(text, Markup) else Markup(escape(plain(text)))


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """An element; ``class_`` and ``aria_label`` become ``class`` and ``aria-label``.

    Example:
        >>> element("p", "1 < 2", class_="note")
        '<p class="note">1 &lt; 2</p>'
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{as_markup(value)}"'
        for name, value in attributes.items()
    )
    return Markup(f"<{tag}{named}>{joined(children)}</{tag}>")


def joined(parts: Iterable[str], separator: str = "") -> Markup:
    """The parts one after the other."""
    return Markup(separator.join(as_markup(part) for part in parts))


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1, label: str
) -> Markup:
    """A table in a box of its own, so that a wide one scrolls without the page.

    Args:
        header: The names of the columns.
        rows: Their cells; the first one names its row.
        words: How many columns, from the left, hold words; the others hold numbers.
        label: What the table shows, for those who cannot see it.
    """
    styles = [{} if i < words else {"class_": "number"} for i in range(len(header))]

    def line(cells: Sequence[str], tag: str) -> Markup:
        cells = [*map(_breakable, cells[:words]), *cells[words:]]
        first = element("th", cells[0], scope="col" if tag == "th" else "row", **styles[0])
        scope = {"scope": "col"} if tag == "th" else {}
        rest = zip(cells[1:], styles[1:], strict=True)
        return element("tr", first, *(element(tag, cell, **scope, **style) for cell, style in rest))

    head = element("thead", line(header, "th"))
    body = element("tbody", joined((line(row, "td") for row in rows), "\n"))
    # A box that scrolls must be reachable by the keyboard.
    return element(
        "div",
        element("table", head, body),
        class_="scroll",
        role="region",
        aria_label=label,
        tabindex="0",
    )


def _breakable(text: str) -> Markup:
    """Text that may go on in the next line where a name has a joint."""
    if isinstance(text, Markup):
        return text
    return Markup(re.sub(r"(?<=\w[_./:\\-])(?=\w)", "<wbr>", as_markup(text)))


def shortened(text: str, length: int) -> str:
    """One line of at most ``length`` characters, without its middle if need be."""
    line = " ".join(plain(text).split())
    if len(line) <= length:
        return line
    # Names that begin alike often differ in their ends.
    end = length // 3
    return line[: length - 1 - end].rstrip() + "…" + line[-end:].lstrip()
