"""What a single cell holds: nothing, a number, or something that only looks like one."""

import math
import re
from collections.abc import Collection

# What pandas.read_csv takes for missing, and what people write beside it. Ids and SMILES are
# exempt: a node may well be named NA.
MISSING = frozenset(
    {
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
        *("?", "-", "na", "none"),
    }
)
TOO_LARGE = 1e18  # squares of larger numbers leave single precision
_DIGITS = r"(?:\d{1,3}(?:[,.'\u2019\u00a0\u202f ]\d{3})+|\d+)(?:[.,]\d+)?|[.,]\d+"
_WRITTEN_NUMBER = re.compile(
    r"[<>=~\u2248\u2264\u2265]*\s*[$\u20ac\u00a3\u00a5]?\s*[+\u2212-]?\s*"
    rf"(?:(?:{_DIGITS})(?:[eE][+-]?\d+)?|inf|infinity)\s*[%\u2030$\u20ac\u00a3\u00a5]?",
    re.IGNORECASE,
)


def as_number(cell: str, decimal: str = ".", missing: Collection[str] = MISSING) -> float | None:
    """The number in a cell, NaN for a missing one, None for anything else.

    Infinity and numbers whose squares would leave single precision count as something else.
    """
    text = cell.strip()
    if text in missing:
        return math.nan
    if "_" in text:  # Python would read 1_2 as 12
        return None
    if decimal != ".":
        if "." in text:  # a point may separate thousands here, so it is not guessed at
            return None
        text = text.replace(decimal, ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < TOO_LARGE else None


def looks_like_a_number(cell: str) -> bool:
    """Whether a person reads a number in a cell: ``3,417``, ``>5``, ``$5``, ``5%``, ``1,234``."""
    return _WRITTEN_NUMBER.fullmatch(cell.strip()) is not None
