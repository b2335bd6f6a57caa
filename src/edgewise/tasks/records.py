"""Plain data that a task gives to a report: counts, pairs, errors, groups. Only numpy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Cells = Mapping[str, Sequence[str]]  # of a table, by column
Outcomes = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # truth, predictions, deviations
STD_SUFFIXES = ("std", "spread")  # of columns; the second is what version 0.1 wrote


@dataclass(frozen=True)
class ClassCount:
    """How many of the rows with a known truth have a class or label."""

    name: str
    positives: int
    known: int


@dataclass(frozen=True)
class ValueStatistics:
    """The known values of a target."""

    name: str
    rows: int
    mean: float
    std: float
    minimum: float
    median: float
    maximum: float


@dataclass(frozen=True, eq=False)
class BinaryQuestion:
    """Is a row of this class, or has it this label? The rows whose answer is known."""

    name: str
    probability: np.ndarray
    truth: np.ndarray  # of bools


@dataclass(frozen=True, eq=False)
class CalibrationPairs:
    """Predicted probabilities, and whether the event was observed."""

    probability: np.ndarray
    observed: np.ndarray  # of bools
    event: str  # what is observed, for the axis
    meaning: str  # of the probability


@dataclass(frozen=True, eq=False)
class ValuePairs:
    """Observed and predicted values of a target, with their rows."""

    name: str
    rows: np.ndarray
    observed: np.ndarray
    predicted: np.ndarray


@dataclass(frozen=True, eq=False)
class Ranking:
    """The places of links among pairs without one, 1 for the first."""

    name: str
    places: np.ndarray
    among: int  # the last place that there is


@dataclass(frozen=True)
class WorstError:
    """A row that was predicted wrongly.

    Args:
        row: Its number.
        observed: A class or label in words, or a value.
        predicted: Likewise.
        size: Probability of the wrong answer, or predicted less observed value.
        output: The number of the label or target; of the predicted class in a classification.
        target: The name of the label or target, where there are several.
        class_numbers: Of the observed and of the predicted class, in a classification.
    """

    row: int
    observed: str | float
    predicted: str | float
    size: float
    output: int
    target: str = ""
    class_numbers: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Group:
    """Rows that get one colour."""

    name: str | tuple[float, float]  # words, or the interval of the values
    members: np.ndarray  # of bools
    role: str = "category"  # or "step" of an ordered scale, or "background"


def answered_both_ways(questions: Iterable[BinaryQuestion]) -> tuple[BinaryQuestion, ...]:
    """The questions that some rows answer with yes and some with no."""
    return tuple(q for q in questions if q.truth.any() and not q.truth.all())


def target_columns(cells: Cells, names: Sequence[str], word: str) -> Outcomes:
    """Truth, predictions and deviations of targets that have columns of their own."""

    def columns(suffix: str) -> np.ndarray:
        return np.stack([numbers_of(cells[f"{name}_{suffix}"]) for name in names], axis=1)

    found = [suffix for suffix in STD_SUFFIXES if f"{names[0]}_{suffix}" in cells]
    return columns("true"), columns(word), columns(found[0]) if found else None


def numbers_of(column: Sequence[str]) -> np.ndarray:
    """The numbers of a column that was written, NaN for an empty cell."""
    numbers = np.array([float(cell) if cell else np.nan for cell in column])
    if (np.abs(numbers) > np.finfo(np.float32).max).any():
        raise ValueError("a number is larger than any that a model gives")
    return as_stored(numbers)


def as_stored(numbers: np.ndarray) -> np.ndarray:
    """Numbers with the precision of float32, which is what the nine digits of a file give back."""
    return numbers.astype(np.float32).astype(np.float64)
