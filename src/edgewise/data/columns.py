"""Columns of a table to numbers: scales, categories and words, learnt once and kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.core.schema import mismatch
from edgewise.data.tables import Table

if TYPE_CHECKING:
    import scipy.sparse


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
        self.refuse_gaps(table)
        value = table.numbers(self.name)
        return np.nan_to_num((value - self.mean) / self.scale, nan=0.0)[:, None]

    def refuse_gaps(self, table: Table) -> None:
        """Refuse empty cells, unless they become the mean."""
        (gaps,) = np.nonzero(np.isnan(table.numbers(self.name)))
        if len(gaps) and not self.fill:
            raise EdgewiseError(
                f"{table.where(int(gaps[0]))}: column {self.name!r} is empty here and in "
                f"{len(gaps)} row(s) in all; fill the cells, or use their mean with --missing mean"
            )

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
        number = self._numbers(table)
        (known,) = np.nonzero(number >= 0)
        out = np.zeros((len(number), len(self.values)), dtype=np.float32)
        out[known, number[known]] = 1
        return out

    def unseen(self, table: Table) -> int:
        return int((self._numbers(table) < 0).sum())

    def _numbers(self, table: Table) -> np.ndarray:
        # Words, not categories: an older reader may have learnt one that now stands for missing.
        codes, words = table.words(self.name)
        number = {value: i for i, value in enumerate(self.values)}
        return np.array([*(number.get(word, -1) for word in words), -1])[codes]


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
        if not self.words:
            return np.zeros((len(table), 0), dtype=np.float32)
        return self._weighted(table).astype(np.float32).toarray()

    def unseen(self, table: Table) -> int:
        if not self.words:
            return len(table)
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
        value = np.nan_to_num(table.numbers(self.name)) / self.largest
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
_SHAPES: dict[str, Any] = {
    "Numbers": {"name": str, "mean": float, "scale": float, "fill": bool},
    "Categories": {"name": str, "values": [str]},
    "Text": {"name": str, "words": [str], "idf": [float]},
    "Weights": {"name": str, "largest": float, "signed": bool},
}


def learn_numbers(
    table: Table, name: str, *, fill: bool, rows: np.ndarray | None = None
) -> Numbers:
    value = _chosen(table.numbers(name), rows)
    known = value[~np.isnan(value)]
    mean = float(known.mean()) if len(known) else 0.0
    return Numbers(name, mean, scale_of(known), fill)


def scale_of(values: np.ndarray) -> float:
    """The standard deviation to divide by; 1 where all values are equal but for rounding."""
    if not len(values):
        return 1.0
    deviation = float(values.std())
    return deviation if deviation > 1e-12 * float(np.abs(values).max()) else 1.0


def learn_categories(table: Table, name: str, rows: np.ndarray | None = None) -> Categories:
    codes, words = table.categories(name)
    present = np.unique(_chosen(codes, rows))
    return Categories(name, tuple(sorted(words[code] for code in present if code >= 0)))


def learn_text(table: Table, name: str, *, words: int, rows: np.ndarray | None = None) -> Text:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(max_features=words)
    texts = _texts(table, name)
    try:
        vectorizer.fit(texts if rows is None else [texts[row] for row in rows.tolist()])
    except ValueError as error:
        if rows is not None and learn_text(table, name, words=words).words:
            return Text(name, (), ())  # whether a table is refused does not depend on the split
        raise EdgewiseError(
            f"{table.path}: column {name!r} holds no words to learn from; ignore it"
        ) from error
    order = vectorizer.get_feature_names_out().tolist()
    return Text(name, tuple(order), tuple(vectorizer.idf_.tolist()))


def learn_weights(table: Table, name: str, rows: np.ndarray | None = None) -> Weights:
    value = np.nan_to_num(table.numbers(name))
    largest = float(np.abs(_chosen(value, rows)).max(initial=0.0))
    # Signs come from all rows: whether a table is refused does not depend on the split.
    return Weights(name, largest or 1.0, bool((value < 0).any()))


def encoded(columns: Sequence[Column], table: Table) -> np.ndarray:
    """All columns side by side, ``[rows, outputs]``, float32; one of ones if there are none."""
    width = sum(len(column.outputs) for column in columns)
    if not width:
        return np.ones((len(table), 1), dtype=np.float32)
    out = np.empty((len(table), width), dtype=np.float32)
    start = 0
    for column in columns:
        part = column.encode(table)
        out[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return out


def raw_values(table: Table, column: Column) -> np.ndarray:
    """The cells of a column before they are encoded: numbers, or the codes of words."""
    if isinstance(column, Numbers | Weights):
        return table.numbers(column.name)
    return table.categories(column.name)[0]


def to_json(column: Column) -> dict[str, Any]:
    fields = {key: list(v) if isinstance(v, tuple) else v for key, v in vars(column).items()}
    return {"kind": type(column).__name__, **fields}


def from_json(content: dict[str, Any]) -> Column:
    kind = content["kind"]
    if kind not in _CLASSES:
        raise ValueError(f"there is no kind of column {kind!r}")
    fault = mismatch(content, _SHAPES[kind], f"column {content.get('name')!r}")
    if fault:
        raise ValueError(fault)
    fields: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in content.items() if key != "kind"
    }
    if not (fields.get("scale", 1) > 0 and fields.get("largest", 1) > 0):
        raise ValueError(f"column {fields['name']!r} has a scale that is not above 0")
    column: Column = _CLASSES[kind](**fields)
    if isinstance(column, Text) and not (
        len(set(column.words)) == len(column.words) == len(column.idf)
    ):
        raise ValueError(f"column {column.name!r} has words twice, or without a weight")
    return column


def _texts(table: Table, name: str) -> list[str]:
    return ["" if cell.strip() in table.missing else cell for cell in table.column(name)]


def _chosen(values: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    return values if rows is None else values[rows]
