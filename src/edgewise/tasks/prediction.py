"""What a model predicts, and how sure it is: records that tasks read and models save."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.core.schema import Maybe

CONFORMAL_SHAPE = {
    **{"coverage": float, "quantiles": [(float, None)], "rows": [int]},
    "offsets": Maybe([float]),
}


@dataclass(frozen=True)
class Conformal:
    """What split conformal prediction learnt from the validation rows.

    Args:
        coverage: Nominal: the share of new rows whose truth lies in their interval or set.
        quantiles: Of the nonconformity scores, one for each of the task's score names; infinite
            where there were too few rows.
        rows: How many validation rows each was learnt from.
        offsets: Of an ensemble, added to its standard deviation, one for each output.
    """

    coverage: float
    quantiles: tuple[float, ...]
    rows: tuple[int, ...]
    offsets: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "coverage": self.coverage,
            "quantiles": [q if math.isfinite(q) else None for q in self.quantiles],
            "rows": list(self.rows),
            "offsets": list(self.offsets),
        }


def load_conformal(content: Mapping[str, Any], scores: int, outputs: int) -> Conformal:
    """What :meth:`Conformal.to_json` wrote, for so many scores and outputs."""
    quantiles = tuple(math.inf if q is None else float(q) for q in content["quantiles"])
    rows, offsets = tuple(content["rows"]), tuple(map(float, content.get("offsets", ())))
    if not len(quantiles) == len(rows) == scores or len(offsets) not in (0, outputs):
        raise EdgewiseError("its conformal quantiles are not those of its task")
    if not 0 < content["coverage"] < 1 or min((*quantiles, *rows, *offsets), default=0) < 0:
        raise EdgewiseError("its conformal quantiles make no sense")
    return Conformal(float(content["coverage"]), quantiles, rows, offsets)


_AT_ONCE = 2**16  # rows of a table that are text at the same time


def stretches(count: int) -> Iterator[slice]:
    """The rows of a table, some at a time: text takes many times the memory of its numbers."""
    for first in range(0, max(count, 1), _AT_ONCE):
        yield slice(first, min(first + _AT_ONCE, count))


@dataclass(frozen=True, eq=False)
class Prediction:
    """What an ensemble predicts: the mean of its members, and how far they are apart."""

    mean: np.ndarray  # probabilities or values, [rows, outputs]
    deviation: np.ndarray | None  # standard deviation over the members; None for a single one
    conformal: Conformal | None = None  # None: not calibrated, so no intervals and no sets

    def of_rows(self, rows: np.ndarray | slice) -> "Prediction":
        """The prediction of some rows alone."""
        return self._each(lambda values: values[rows])

    def placed(self, count: int, rows: np.ndarray) -> "Prediction":
        """As rows of a longer table, NaN in the others."""

        def place(values: np.ndarray) -> np.ndarray:
            longer = np.full((count, values.shape[1]), np.nan)
            longer[rows] = values
            return longer

        return self._each(place)

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> "Prediction":
        deviation = None if self.deviation is None else change(self.deviation)
        return Prediction(change(self.mean), deviation, self.conformal)
