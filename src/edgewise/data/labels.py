"""The column to be predicted: classes or numbers, with gaps where it is not known."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.cells import as_number
from edgewise.data.column_kinds import check_words
from edgewise.data.tables import Table

_MOST_NUMBERED_CLASSES = 20  # and the fewest that may be too many for their rows


@dataclass(frozen=True)
class Labels:
    """How a label column is read."""

    name: str
    classes: tuple[str, ...] | None  # None: numbers

    def encode(self, table: Table) -> Tensor:
        """One label per row; all unknown if the table lacks the column."""
        if self.name not in table.columns:
            unknown = math.nan if self.classes is None else -1
            return torch.full((len(table),), unknown)
        if self.classes is None:
            return torch.tensor(table.numbers(self.name), dtype=torch.float32)
        codes, words = table.words(self.name)
        number = {value: i for i, value in enumerate(self.classes)}
        strange = [
            i for i, word in enumerate(words) if word not in number and word not in table.missing
        ]
        if strange:
            row = int(np.isin(codes, strange).argmax())
            raise EdgewiseError(
                f"{table.where(row)}: the label {words[codes[row]]!r} is not among the classes "
                f"{preview(self.classes)} that were learnt; empty the cell to have it predicted"
            )
        return torch.from_numpy(np.array([*(number.get(w, -1) for w in words), -1])[codes])

    def gaps(self, y: Tensor) -> int:
        """How many labels are not known."""
        return int((y.isnan() if self.classes is None else y < 0).sum())

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Labels":
        classes = content["classes"]
        return cls(str(content["name"]), None if classes is None else tuple(map(str, classes)))


def learn_labels(
    table: Table, name: str, task: str | None = None, *, categories: bool = False
) -> Labels:
    """Learn the classes, or that the column holds numbers.

    Args:
        table: The nodes table.
        name: Its label column.
        task: ``"classification"`` or ``"regression"``; without it, words and up to 20 different
            whole numbers are classes, and for any other column of numbers it must be given.
        categories: Whether the cells are declared to be categories, also where they look
            like numbers, such as ``>5``.
    """
    if task is None:
        _refuse_quantities(table, name, categories)
        return learn_classes(table, name, categories=categories)
    if task not in _LEARN:
        raise EdgewiseError(f"task={task!r} is not known; choose {' or '.join(_LEARN)}")
    return _LEARN[task](table, name, categories=categories)


def learn_values(table: Table, name: str, *, categories: bool = False) -> Labels:
    """A column in which every cell is a number, or missing."""
    _refuse_empty(table, name)
    table.numbers(name)
    return Labels(name, None)


def learn_classes(table: Table, name: str, *, categories: bool = False) -> Labels:
    """The classes of a column, numbers in their order and words by the alphabet."""
    _refuse_empty(table, name)
    if not categories:
        check_words(table, name, slips=False)
    codes, cells = table.categories(name)
    if len(cells) == 1:
        raise EdgewiseError(
            f"{table.path}: the label column {name!r} holds one class only, {next(iter(cells))!r}; "
            "there is nothing to tell apart"
        )
    labelled = int((codes >= 0).sum())
    if len(cells) > _MOST_NUMBERED_CLASSES and labelled < 2 * len(cells):
        raise EdgewiseError(
            f"{table.path}: the label column {name!r} holds {len(cells)} different classes in "
            f"{labelled} labelled rows, such as {preview(sorted(cells), limit=3)}; name another "
            "column with --target, or for numbers set task = regression"
        )
    values = _numbers(table, cells)
    if values is None:
        return Labels(name, tuple(sorted(cells)))
    if len(set(values.values())) < len(cells):
        raise EdgewiseError(
            f"{table.path}: the label column {name!r} spells a number in two ways, such as 1 and "
            f"1.0, among {preview(sorted(cells))}; write each class one way"
        )
    return Labels(name, tuple(sorted(cells, key=lambda cell: (values[cell], cell))))


_LEARN: dict[str, Callable[..., Labels]] = {
    "classification": learn_classes,
    "regression": learn_values,
}


def _refuse_quantities(table: Table, name: str, categories: bool) -> None:
    """Refuse a column that may hold classes or quantities, where nobody said which."""
    _refuse_empty(table, name)
    if not categories:
        check_words(table, name)
    _, cells = table.categories(name)
    values = _numbers(table, cells)
    if values is None:
        return
    whole = all(value.is_integer() for value in values.values())
    if not (whole and len(cells) <= _MOST_NUMBERED_CLASSES):
        raise EdgewiseError(
            f"{table.path}: the label column {name!r} holds {len(cells)} different numbers, which "
            "may be quantities or classes; say so with task = regression or classification"
        )


def _refuse_empty(table: Table, name: str) -> None:
    if not table.categories(name)[1]:
        raise EdgewiseError(f"{table.path}: the label column {name!r} is empty; label some rows")


def _numbers(table: Table, cells: Iterable[str]) -> dict[str, float] | None:
    """The number that each cell is; None if one of them is a word."""
    values = {cell: as_number(cell, table.decimal, table.missing) for cell in cells}
    known = {cell: float(value) for cell, value in values.items() if value is not None}
    return known if len(known) == len(values) else None
