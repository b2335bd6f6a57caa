"""A table drawn for a terminal; one that is too wide is drawn as several, below each other."""

import re
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table as Drawing
from rich.text import Text

if TYPE_CHECKING:
    from edgewise.paper.tables import PaperTable

_BETWEEN = 3  # characters that a column takes beyond its words


def drawn_for_terminal(table: "PaperTable", width: int) -> Group:
    """A table and its notes, to be printed by a console of rich of that many characters."""
    title = Text(f"\n{table.title}", style="bold")
    parts = [_drawn(table, columns) for columns in _groups(table, width)]
    return Group(title, *parts, *(Text(note, style="dim") for note in table.notes))


def _groups(table: "PaperTable", width: int) -> list[list[int]]:
    """The columns of numbers, cut where they would not fit beside the names of the rows."""
    cells = zip(table.header, *table.rows, strict=True)
    name, *sizes = (max(len(_styled(cell)) for cell in column) + _BETWEEN for column in cells)
    groups: list[list[int]] = []
    left = 0
    for place, size in enumerate(sizes, start=1):
        if not groups or size > left:
            groups.append([])
            left = width - name
        groups[-1].append(place)
        left -= size
    return groups


def _drawn(table: "PaperTable", columns: list[int]) -> Drawing:
    drawing = Drawing(box=box.SIMPLE_HEAD)
    drawing.add_column(table.header[0])
    for place in columns:
        drawing.add_column(table.header[place], justify="right")
    for row in table.rows:
        drawing.add_row(*(_styled(row[place]) for place in (0, *columns)))
    return drawing


def _styled(cell: str) -> Text:
    """The cell with bold in place of the marks of bold, and the paper's number dim."""
    text = Text()
    for part in re.split(r"(\*\*.+?\*\*)", cell):
        bold = part.startswith("**")
        text.append(part[2:-2] if bold else part, "bold" if bold else "")
    text.highlight_regex(r"\([\d.,]+\)$", "dim")
    return text
