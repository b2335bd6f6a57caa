"""Means, spreads and paired differences of results."""

import math
import statistics
from dataclasses import dataclass

from scipy.stats import t as student

from edgewise.paper.printed import BASELINE
from edgewise.paper.results import Results


@dataclass(frozen=True)
class Cell:
    """The mean over runs and their standard deviation."""

    mean: float
    spread: float
    runs: int


@dataclass(frozen=True)
class Difference:
    """The mean difference of two rows over the same splits and seeds, with its 95 % interval."""

    mean: float
    low: float
    high: float
    runs: int

    @property
    def certain(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def cell(results: Results, part: str, dataset: str, split: str, protocol: str, row: str) -> Cell:
    """A cell of a table; no runs where nothing is known."""
    values = list(
        results.values(part, dataset=dataset, split=split, protocol=protocol, row=row).values()
    )
    if not values:
        return Cell(math.nan, math.nan, 0)
    spread = statistics.stdev(values) if len(values) > 1 else math.nan
    return Cell(statistics.fmean(values), spread, len(values))


def difference(
    results: Results, dataset: str, split: str, protocol: str, row: str, baseline: str = ""
) -> Difference:
    """How much better a row is than its baseline in the test part, run by run."""
    where = {"dataset": dataset, "split": split, "protocol": protocol}
    ours = results.values("test", **where, row=row)
    theirs = results.values("test", **where, row=baseline or BASELINE[row])
    pairs = [ours[run] - theirs[run] for run in sorted(ours.keys() & theirs.keys())]
    if len(pairs) < 2:
        return Difference(math.nan, math.nan, math.nan, len(pairs))
    mean = statistics.fmean(pairs)
    error = statistics.stdev(pairs) / math.sqrt(len(pairs))
    half = float(student.ppf(0.975, len(pairs) - 1)) * error
    return Difference(mean, mean - half, mean + half, len(pairs))
