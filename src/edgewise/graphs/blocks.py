"""Stretches of rows that are computed at a time, so that memory is bounded."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int

# What a block holds at most, unless a single row takes more.
MOST_ROWS, MOST_PAIRS = 2**14, 2**16
MOST_COMMON = 2**20  # common neighbours of pairs of nodes


def stretches(
    cost: Int[np.ndarray, " rows"], most_rows: int | None = None, most: int | None = None
) -> Iterator[slice]:
    """Rows one after the other, cut so that no stretch costs too much.

    Args:
        cost: Of each row.
        most_rows: How many rows a stretch has at most.
        most: What they may cost together.
    """
    most_rows, most = most_rows or MOST_ROWS, most or MOST_PAIRS
    total = np.cumsum(cost, dtype=np.int64)
    first = 0
    while first < len(total):
        before = total[first - 1] if first else 0
        end = int(np.searchsorted(total, before + most, side="right"))
        end = min(max(end, first + 1), first + most_rows)
        yield slice(first, min(end, len(total)))
        first = end
