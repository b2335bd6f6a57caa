"""The column to be predicted: classes or numbers, with gaps where it is not known."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.cells import as_number
from edgewise.data.columns import check_words
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
    if task not in (None, "classification", "regression"):
        raise EdgewiseError(f"task={task!r} is not known; choose classification or regression")
    codes, cells = table.categories(name)
    if not cells:
        raise EdgewiseError(f"{table.path}: the label column {name!r} is empty; label some rows")
    if task == "regression":
        table.numbers(name)  # every cell must be one
        return Labels(name, None)
    if not categories:
        check_words(table, name, slips=task is None)
    values = {cell: as_number(cell, table.decimal, table.missing) for cell in cells}
    numeric = all(value is not None for value in values.values())
    whole = numeric and all(float(value or 0).is_integer() for value in values.values())
    if task is None and numeric and not (whole and len(cells) <= _MOST_NUMBERED_CLASSES):
        raise EdgewiseError(
            f"{table.path}: the label column {name!r} holds {len(cells)} different numbers, which "
            "may be quantities or classes; say so with task = regression or classification"
        )
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
    if numeric and len(set(values.values())) < len(cells):
        raise EdgewiseError(
            f"{table.path}: the label column {name!r} spells a number in two ways, such as 1 and "
            f"1.0, among {preview(sorted(cells))}; write each class one way"
        )
    order = sorted(cells, key=(lambda cell: (values[cell], cell)) if numeric else None)
    return Labels(name, tuple(order))
