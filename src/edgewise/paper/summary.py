"""Means, standard deviations and paired differences of results."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from scipy.stats import t as student

from edgewise.paper.printed import BASELINE, Printed
from edgewise.paper.result_store import ResultStore


@dataclass(frozen=True)
class Cell:
    """The mean over runs and their standard deviation."""

    mean: float
    std: float
    runs: int


@dataclass(frozen=True)
class Difference:
    """The mean difference of two rows over the same splits and seeds, with its 95 % interval.

    A single run has no interval: its ends are NaN.
    """

    mean: float
    low: float
    high: float
    runs: int

    @property
    def certain(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def cell(
    results: ResultStore, part: str, dataset: str, split: str, protocol: str, row: str
) -> Cell:
    """A cell of a table; no runs where nothing is known."""
    return summarise(results.values(part, dataset, split, protocol, row).values())


def summarise(scores: Iterable[float]) -> Cell:
    """Mean and standard deviation of scores; NaN where there are too few of them."""
    values = list(scores)
    if not values:
        return Cell(math.nan, math.nan, 0)
    std = statistics.stdev(values) if len(values) > 1 else math.nan
    return Cell(statistics.fmean(values), std, len(values))


def reached(found: Cell, printed: Printed) -> bool:
    """Whether an accuracy is no lower than the paper's mean less twice its standard deviation."""
    return 100 * found.mean >= printed.mean - 2 * printed.std


def difference(
    results: ResultStore, dataset: str, split: str, protocol: str, row: str, baseline: str = ""
) -> Difference:
    """How much better a row is than its baseline on the test set, run by run."""
    ours = results.values("test", dataset, split, protocol, row)
    theirs = results.values("test", dataset, split, protocol, baseline or BASELINE[row])
    pairs = [ours[run] - theirs[run] for run in sorted(ours.keys() & theirs.keys())]
    if not pairs:
        return Difference(math.nan, math.nan, math.nan, 0)
    mean = statistics.fmean(pairs)
    if len(pairs) == 1:
        return Difference(mean, math.nan, math.nan, 1)
    error = statistics.stdev(pairs) / math.sqrt(len(pairs))
    half = float(student.ppf(0.975, len(pairs) - 1)) * error
    return Difference(mean, mean - half, mean + half, len(pairs))
