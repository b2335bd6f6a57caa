"""Which task columns of a table ask for: one guess, the same for all units."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.registries import TASKS
from edgewise.data.column_kinds import check_words
from edgewise.data.tables import Table
from edgewise.tasks.base import Task

_LABEL_NAMES = ("label", "class", "y")


def find_task(
    table: Table,
    names: tuple[str, ...],
    wanted: str = "auto",
    categories: Collection[str] = (),
) -> tuple[Task, Tensor]:
    """The task of some columns, and their truth.

    Columns of 0 and 1 alone are binary labels; a column of words, or of at most 20 different whole
    numbers, holds classes; other numbers are values.

    Args:
        table: The rows.
        names: The columns to predict.
        wanted: The name of a task, where it is not to be guessed.
        categories: Columns that hold categories, also where they look like numbers (``>5``).
    """
    table.require(*names)
    if len(set(names)) < len(names):
        raise EdgewiseError(f"a target is named twice in {preview(names)}; name each once")
    refuse_empty(table, names)
    chosen = wanted
    if wanted == "auto":
        for name in names:
            if holds_words(table, name) and name not in categories:
                _refuse_slips(table, name)
        chosen = next((name for name in TASKS if TASKS[name].claims(table, names)), "")
        if not chosen:
            worded = [name for name in names if holds_words(table, name)]
            raise EdgewiseError(
                f"{table.path}: the target(s) {preview(worded)} hold words, and classes are "
                "learnt one column at a time; train a model for each"
            )
    task: Task = TASKS[chosen].learn(table, names, categories)
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
    """Whether some cell of a column is no number."""
    _, first_word = table.parsed_numbers(name)
    return first_word is not None


def _refuse_slips(table: Table, name: str) -> None:
    """Refuse a word that is a slip among numbers: a mistake, not a class."""
    try:
        check_words(table, name)
    except EdgewiseError as found:
        try:
            table.numbers(name)
        except EdgewiseError as slip:
            raise EdgewiseError(f"{slip}; if it is a class, set task = classification") from found
        raise


def distinct_numbers(table: Table, name: str) -> set[float]:
    """The different numbers of a column."""
    values = table.numbers(name)
    return set(np.unique(values[~np.isnan(values)]).tolist())


def refuse_empty(table: Table, names: Sequence[str]) -> None:
    """Refuse target columns of which nothing is known."""
    empty = [name for name in names if not table.categories(name)[1]]
    if empty:
        raise EdgewiseError(
            f"{table.path}: the target column(s) {preview(empty)} are empty; label some rows"
        )


def guessed_targets(columns: Iterable[str]) -> tuple[str, ...]:
    """The column that is called as targets are, if there is one such column."""
    found = tuple(name for name in columns if name.lower() in _LABEL_NAMES)
    return found if len(found) == 1 else ()


def guessed_target(table: Table) -> str:
    """The column to predict, where nobody names one."""
    found = guessed_targets(table.columns)
    if not found:
        raise EdgewiseError(
            f"{table.path}: name the column to be predicted with --target; its columns are "
            f"{preview(list(table.columns), limit=12)}"
        )
    return found[0]


def table_truth(task: Task, table: Table) -> Tensor | EdgewiseError | None:
    """The truth of a table, the reason why not, or nothing."""
    if not all(name in table.columns for name in task.names):
        return None
    try:
        return task.read(table)
    except EdgewiseError as error:
        return error
