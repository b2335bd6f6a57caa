"""Sentences on data that may make a score mean less than it says: leaks, row numbers, no edges.

A column here is an array: floats are numbers with NaN for missing, integers are the codes of words
or classes with -1 for missing. All tests are exact, so no unlucky draw of ordinary data is told.
"""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from edgewise.core.errors import preview

FEWEST = 10  # labelled rows from which on something is said
_CHANCE = 0.01  # that any of the columns looks so in shuffled rows, at most
_GLANCE = 64  # rows that rule out nearly every column
_INDEX_NAMES = re.compile(r"|Unnamed: \d+(\.\d+)*|level_\d+|__index_level_\d+__")
_COUNTERS = frozenset({"index", "idx", "id", "row", "row_id", "rowid", "nr", "no", "number", "#"})


def leak_notices(
    features: Mapping[str, np.ndarray],
    targets: Mapping[str, np.ndarray],
    *,
    of: str = "column",
    at: str = "",
    units: np.ndarray | None = None,
) -> list[str]:
    """A sentence for each target that some columns give away.

    Args:
        features: Columns that are learnt from, by name.
        targets: What is to be predicted, by name, a value for each row.
        of: What a column is called.
        at: Whose target it is, where that is not plain.
        units: What each row is about, where several rows share a target.
    """
    found = []
    for target, truth in targets.items():
        kinds: dict[str, list[str]] = {}
        for name, column in features.items():
            kind = image_of(column, truth, columns=len(features), units=units)
            if kind:
                kinds.setdefault(kind, []).append(name)
        found += [
            f"{of}{'s' * (len(names) > 1)} {quoted(names)} {'are' if len(names) > 1 else 'is'} "
            f"{kind} of the target {target!r}{at} wherever both are known; leave out with "
            "--ignore what is not known before the target"
            for kind, names in kinds.items()
        ]
    return found


def image_of(
    column: np.ndarray, truth: np.ndarray, *, columns: int = 1, units: np.ndarray | None = None
) -> str:
    """``a copy``, ``a monotone image`` or ``a one-to-one image`` of a target, or nothing.

    Numbers must be a monotone function of a target of numbers; otherwise values and classes must
    belong together one to one. What a column of shuffled rows would also be, with a probability
    above 1 in 100 over all columns, is nothing: too few rows, too few different values.

    Args:
        column: The column.
        truth: The target.
        columns: How many such columns there are.
        units: What each row is about, where several rows share a target.
    """
    first = _known(column[:_GLANCE]) & _known(truth[:_GLANCE])
    if not _related(column[:_GLANCE][first], truth[:_GLANCE][first]):
        return ""
    both = _known(column) & _known(truth)
    column, truth = column[both], truth[both]
    if not _related(column, truth):
        return ""
    once = slice(None) if units is None else np.unique(units[both], return_index=True)[1]
    counts = np.unique(column[once], return_counts=True)[1]
    monotone = _is_number(column) and _is_number(truth)
    orders = math.log(2) if monotone else math.lgamma(len(counts) + 1)
    arrangements = math.lgamma(counts.sum() + 1) - sum(math.lgamma(n + 1) for n in counts)
    if counts.sum() < FEWEST or math.log(columns) + orders - arrangements > math.log(_CHANCE):
        return ""
    if not monotone:
        return "a one-to-one image"
    return "a copy" if (column == truth).all() else "a monotone image"


def index_notices(columns: Mapping[str, np.ndarray], of: str) -> list[str]:
    """A sentence on columns that only count the rows, as pandas writes them.

    Args:
        columns: Those that are learnt from, by name.
        of: What they are.
    """
    names = [name for name, column in columns.items() if _counts_rows(name, column)]
    if not names:
        return []
    return [
        f"column{'s' * (len(names) > 1)} {quoted(names)} of the {of} look{'s' * (len(names) == 1)} "
        f"like row numbers (a pandas index), and {'are' if len(names) > 1 else 'is'} learnt from; "
        "leave out with --ignore what says nothing"
    ]


def edge_notices(edges: int, where: str) -> list[str]:
    """A sentence on a graph without edges."""
    if edges:
        return []
    return [f"{where} has no edges, so each node is predicted from its own features alone"]


def quoted(names: Sequence[str]) -> str:
    """``'size'``, or a list of some names."""
    return repr(names[0]) if len(names) == 1 else preview([repr(name) for name in names])


def _counts_rows(name: str, column: np.ndarray) -> bool:
    if _INDEX_NAMES.fullmatch(name):
        return True
    if name.lower() not in _COUNTERS or not _is_number(column) or len(column) < 2:
        return False
    return column[0] in (0, 1) and bool((column == np.arange(len(column)) + column[0]).all())


def _related(column: np.ndarray, truth: np.ndarray) -> bool:
    """Whether a column is a monotone function of a target or, with words, a one-to-one map."""
    if len(column) < 2:
        return True
    if _is_number(column) and _is_number(truth):
        order = np.argsort(truth, kind="stable")
        step, rises = np.diff(column[order]), np.diff(truth[order]) > 0
        return bool((step[~rises] == 0).all() and ((step >= 0).all() or (step <= 0).all()))
    values, value = np.unique(column, return_inverse=True)
    classes, label = np.unique(truth, return_inverse=True)
    if len(values) != len(classes):
        return False
    return len(np.unique(value * len(classes) + label)) == len(classes)


def _known(column: np.ndarray) -> np.ndarray:
    return ~np.isnan(column) if _is_number(column) else column >= 0


def _is_number(column: np.ndarray) -> bool:
    return bool(np.issubdtype(column.dtype, np.floating))
