"""Columns of a table to numbers: scales, categories and words, learnt once and kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.tables import MISSING, Table, as_number

if TYPE_CHECKING:
    import scipy.sparse

_WORDS_IN_A_TEXT = 3  # a column with more words than this per cell is text
_MOST_CATEGORIES = 100


@dataclass(frozen=True)
class Numbers:
    """A number, shifted and scaled to mean 0 and standard deviation 1."""

    name: str
    mean: float
    scale: float
    fill: bool  # whether a missing cell becomes the mean

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.name,)

    def encode(self, table: Table) -> np.ndarray:
        value = np.array(table.numbers(self.name))
        (gaps,) = np.nonzero(np.isnan(value))
        if len(gaps) and not self.fill:
            raise EdgewiseError(
                f"{table.where(int(gaps[0]))}: column {self.name!r} is empty here and in "
                f"{len(gaps)} row(s) in all; fill the cells, or pass missing='mean'"
            )
        return np.nan_to_num((value - self.mean) / self.scale, nan=0.0)[:, None]

    def unseen(self, table: Table) -> int:
        return int(np.isnan(table.numbers(self.name)).sum())


@dataclass(frozen=True)
class Categories:
    """One column per category; a value that was not learnt, or is missing, is all zeros."""

    name: str
    values: tuple[str, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, table: Table) -> np.ndarray:
        number = {value: i for i, value in enumerate(self.values)}
        cells = [cell.strip() for cell in table.column(self.name)]
        known = [(row, number[cell]) for row, cell in enumerate(cells) if cell in number]
        out = np.zeros((len(cells), len(self.values)))
        if known:
            out[tuple(np.array(known).T)] = 1
        return out

    def unseen(self, table: Table) -> int:
        known = set(self.values)
        return sum(cell.strip() not in known for cell in table.column(self.name))


@dataclass(frozen=True)
class Text:
    """TF-IDF of the words in a cell, by scikit-learn."""

    name: str
    words: tuple[str, ...]
    idf: tuple[float, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"{self.name}:{word}" for word in self.words)

    def encode(self, table: Table) -> np.ndarray:
        return self._weighted(table).astype(np.float32).toarray()

    def unseen(self, table: Table) -> int:
        return int((self._weighted(table).getnnz(axis=1) == 0).sum())

    def _weighted(self, table: Table) -> "scipy.sparse.csr_matrix":
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(vocabulary=list(self.words))
        vectorizer.idf_ = np.array(self.idf)
        return vectorizer.transform(_texts(table, self.name))


@dataclass(frozen=True)
class Weights:
    """A number on an edge, as one non-negative channel, or two where it has both signs.

    Divided by the largest size seen, so that zero stays zero: no edge in this channel.
    """

    name: str
    largest: float
    signed: bool

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"{self.name} +", f"{self.name} -") if self.signed else (self.name,)

    def encode(self, table: Table) -> np.ndarray:
        value = np.nan_to_num(np.array(table.numbers(self.name))) / self.largest
        if self.signed:
            return np.stack([np.maximum(value, 0), np.maximum(-value, 0)], axis=1)
        (below,) = np.nonzero(value < 0)
        if len(below):
            raise EdgewiseError(
                f"{table.where(int(below[0]))}: column {self.name!r} is negative, but no edge "
                "was when this was learnt; train again with these edges"
            )
        return value[:, None]

    def unseen(self, table: Table) -> int:
        return int(np.isnan(table.numbers(self.name)).sum())


Column = Numbers | Categories | Text | Weights
_CLASSES: dict[str, Any] = {c.__name__: c for c in (Numbers, Categories, Text, Weights)}


def guess_kind(table: Table, name: str) -> str:
    """``numbers``, ``categories`` or ``text``, by what the cells hold."""
    cells = [c.strip() for c in table.column(name) if c.strip() not in MISSING]
    odd = [cell for cell in cells if as_number(cell) is None]
    if not odd:
        return "numbers"
    if mostly_numbers(cells, odd):
        row = [cell.strip() for cell in table.column(name)].index(odd[0])
        raise EdgewiseError(
            f"{table.where(row)}: column {name!r} holds {odd[0]!r}, and numbers elsewhere; mend or "
            "empty the cell, or say that the column holds categories"
        )
    if sum(len(cell.split()) for cell in cells) / len(cells) > _WORDS_IN_A_TEXT:
        return "text"
    distinct = len(set(cells))
    if distinct <= _MOST_CATEGORIES:
        return "categories"
    raise EdgewiseError(
        f"{table.path}: column {name!r} holds {distinct} different words, such as "
        f"{preview(sorted(set(cells)), limit=3)}; say how to read it: as categories, as text, or "
        "not at all (ignore)"
    )


def mostly_numbers(cells: Sequence[str], odd: Sequence[str]) -> bool:
    """Whether cells that are no numbers look like slips among many that are."""
    return 10 * len(odd) <= len(cells)


def learn_numbers(table: Table, name: str, *, fill: bool) -> Numbers:
    value = np.array(table.numbers(name))
    known = value[~np.isnan(value)]
    mean = float(known.mean()) if len(known) else 0.0
    return Numbers(name, mean, scale_of(known), fill)


def scale_of(values: np.ndarray) -> float:
    """The standard deviation to divide by; 1 where all values are equal but for rounding."""
    if not len(values):
        return 1.0
    spread = float(values.std())
    return spread if spread > 1e-12 * float(np.abs(values).max()) else 1.0


def learn_categories(table: Table, name: str) -> Categories:
    values = {cell.strip() for cell in table.column(name)} - MISSING
    return Categories(name, tuple(sorted(values)))


def learn_text(table: Table, name: str, *, words: int) -> Text:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(max_features=words)
    try:
        vectorizer.fit(_texts(table, name))
    except ValueError as error:
        raise EdgewiseError(
            f"{table.path}: column {name!r} holds no words to learn from; ignore it"
        ) from error
    order = vectorizer.get_feature_names_out().tolist()
    return Text(name, tuple(order), tuple(vectorizer.idf_.tolist()))


def learn_weights(table: Table, name: str) -> Weights:
    value = np.nan_to_num(np.array(table.numbers(name)))
    largest = float(np.abs(value).max(initial=0.0))
    return Weights(name, largest or 1.0, bool((value < 0).any()))


def encoded(columns: Sequence[Column], table: Table) -> np.ndarray:
    """All columns side by side, ``[rows, outputs]``, float32."""
    parts = [column.encode(table).astype(np.float32, copy=False) for column in columns]
    return np.concatenate(parts, axis=1)


def to_json(column: Column) -> dict[str, Any]:
    fields = {key: list(v) if isinstance(v, tuple) else v for key, v in vars(column).items()}
    return {"kind": type(column).__name__, **fields}


def from_json(content: dict[str, Any]) -> Column:
    fields: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in content.items()
    }
    column: Column = _CLASSES[fields.pop("kind")](**fields)
    numbers = [v for v in fields.values() if isinstance(v, float)]
    if not all(math.isfinite(value) for value in numbers):
        raise ValueError(f"column {column.name!r} has a scale that is not finite")
    return column


def _texts(table: Table, name: str) -> list[str]:
    return ["" if cell.strip() in MISSING else cell for cell in table.column(name)]
