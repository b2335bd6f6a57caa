"""Which task columns of a table ask for: one guess, the same for all units."""

import math
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.registries import TASKS
from edgewise.data.columns import mostly_numbers
from edgewise.data.tables import MISSING, Table, as_number
from edgewise.tasks.base import Task


def find_task(table: Table, names: tuple[str, ...], wanted: str = "auto") -> tuple[Task, Tensor]:
    """The task of some columns, and their truth.

    Columns of 0 and 1 alone are binary labels; a column of words, or of at most 20 different whole
    numbers, holds classes; other numbers are values. ``wanted`` says otherwise.
    """
    for name in names:
        table.column(name)  # an absent one is told first
    if len(set(names)) < len(names):
        raise EdgewiseError(f"a target is named twice in {preview(names)}; name each once")
    chosen = wanted
    if wanted == "auto":
        refuse_empty(table, names)
        chosen = next((name for name in TASKS if TASKS[name].claims(table, names)), "")
        if not chosen:
            worded = [name for name in names if holds_words(table, name)]
            raise EdgewiseError(
                f"{table.path}: the target(s) {preview(worded)} hold words, and classes are "
                "learnt one column at a time; train a model for each"
            )
    task: Task = TASKS[chosen].learn(table, names)
    return task, task.read(table)


def find_label_task(
    name: str, labels: Tensor, class_names: tuple[str, ...] | None, wanted: str = "auto"
) -> tuple[Task, Tensor]:
    """The task of a graph's own labels: whole numbers are classes, others are values."""
    guessed = "regression" if labels.is_floating_point() else "classification"
    kind = TASKS[guessed if wanted == "auto" else wanted]
    task: Task = kind.of_labels(name, labels, class_names)
    return task, task.read_labels(labels, class_names)


def holds_words(table: Table, name: str) -> bool:
    """Whether a column holds words; a slip among many numbers is a mistake, not a word."""
    cells = [cell.strip() for cell in table.column(name) if cell.strip() not in MISSING]
    odd = [cell for cell in cells if as_number(cell) is None]
    return bool(odd) and not mostly_numbers(cells, odd)


def distinct_numbers(table: Table, name: str) -> set[float]:
    """The different numbers of a column."""
    return {float(value) for value in np.asarray(table.numbers(name)) if not math.isnan(value)}


def refuse_empty(table: Table, names: Sequence[str]) -> None:
    """Refuse target columns of which nothing is known."""
    empty = [name for name in names if all(cell.strip() in MISSING for cell in table.column(name))]
    if empty:
        raise EdgewiseError(
            f"{table.path}: the target column(s) {preview(empty)} are empty; label some rows"
        )
