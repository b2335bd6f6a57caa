"""CSV cells that a spreadsheet shows as they are, and never runs as formulas.

A cell of text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break gets a single
quote in front, as OWASP advises; numbers such as ``-1.5`` stay. The quote can be taken back.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

# Wide forms of the four signs work as the signs do in some locales.
_SIGNS = "=+\\-@\t\r\n＝＋－＠"  # noqa: RUF001
_ACTIVE = re.compile(f"'*[{_SIGNS}]")
_QUOTED = re.compile(f"'+[{_SIGNS}]")
_NUMBER = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?%?")
_FIRST = frozenset("=+-@\t\r\n＝＋－＠'")  # noqa: RUF001


def inert(cell: str) -> str:
    """The cell, with a quote in front if a spreadsheet would run it.

    Example:
        >>> [inert(cell) for cell in ("=1+1", "-1.5", "-logP", "[Na+]", "'=1")]
        ["'=1+1", '-1.5', "'-logP", '[Na+]', "''=1"]
    """
    if cell[:1] not in _FIRST or not _ACTIVE.match(cell) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"


def as_given(cell: str) -> str:
    """The cell that :func:`inert` was given."""
    return cell[1:] if cell[:1] == "'" and _QUOTED.match(cell) else cell


def inert_rows(rows: Iterable[Sequence[str]]) -> Iterable[list[str]]:
    """Rows of a table, each cell harmless."""
    return ([inert(cell) for cell in row] for row in rows)


def csv_text(columns: Mapping[str, Sequence[str]]) -> str:
    """A table as CSV, each cell harmless."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([inert(name) for name in columns])
    writer.writerows(inert_rows(zip(*columns.values(), strict=True)))
    return text.getvalue()
