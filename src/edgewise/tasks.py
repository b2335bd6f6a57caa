"""What is learnt: classes, several yes-or-no labels, or values; their loss and their meaning."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.columns import mostly_numbers, scale_of
from edgewise.data.labels import Labels, learn_labels
from edgewise.data.tables import MISSING, Table, as_number


@dataclass(frozen=True)
class Task:
    """What the outputs of a network stand for.

    The truth of a classification is ``[rows]`` class numbers with -1 where it is not known; of
    the other kinds, ``[rows, names]`` numbers with NaN where it is not known.

    Args:
        kind: ``"classification"`` (one of several classes), ``"multilabel"`` (yes or no, for
            each name) or ``"regression"`` (a value for each name).
        names: The columns that are predicted.
        classes: The classes of a classification.
        center: Subtracted from the values of a regression before they are learnt.
        scale: Their divisor.
    """

    kind: str
    names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """How many outputs the network has."""
        return len(self.classes) if self.kind == "classification" else len(self.names)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The name of each output."""
        return self.classes if self.kind == "classification" else self.names

    @property
    def headline(self) -> str:
        """The metric that stands for the others."""
        return {"classification": "accuracy", "multilabel": "roc_auc", "regression": "rmse"}[
            self.kind
        ]

    @property
    def lower_is_better(self) -> bool:
        return self.kind == "regression"

    def __str__(self) -> str:
        return {
            "classification": f"classification of {self.names[0]} into {len(self.classes)} classes",
            "multilabel": f"{len(self.names)} yes-or-no label(s): {preview(self.names)}",
            "regression": f"regression of {preview(self.names)}",
        }[self.kind]

    def known(self, truth: Tensor) -> Tensor:
        """Where the truth is known, in its own shape."""
        return truth >= 0 if self.kind == "classification" else ~truth.isnan()

    def labelled_rows(self, truth: Tensor) -> Tensor:
        """The rows of which something is known."""
        known = self.known(truth)
        return (known if known.dim() == 1 else known.any(dim=1)).nonzero()[:, 0]

    def loss(self, outputs: Tensor, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        """The mean loss over all that is known; 0 if nothing is.

        Args:
            outputs: Of the network, ``[rows, width]``.
            truth: Of the same rows.
            weight: From :meth:`balance`.
        """
        known = self.known(truth)
        if not known.any():
            return outputs.sum() * 0
        if self.kind == "classification":
            if weight is not None and not weight[truth[known]].any():
                return outputs.sum() * 0  # classes that training does not have
            return cross_entropy(outputs, truth, weight=weight, ignore_index=-1)
        found, wanted = outputs[known], truth[known]
        columns = known.nonzero()[:, 1]
        if self.kind == "multilabel":
            of_entry = None if weight is None else weight[columns, wanted.long()]
            return binary_cross_entropy_with_logits(found, wanted, weight=of_entry)
        center, scale = (torch.tensor(v, dtype=found.dtype) for v in (self.center, self.scale))
        return (found - (wanted - center[columns]) / scale[columns]).square().mean()

    def balance(self, truth: Tensor) -> Tensor:
        """The paper's class weights from the training truth: rare classes weigh more.

        ``[classes]`` for a classification, ``[names, 2]`` for yes-or-no labels.
        """
        if self.kind == "regression":
            raise EdgewiseError("a regression has no classes to weigh; set weighted = false")
        if self.kind == "classification":
            return balanced_weights(truth[truth >= 0], len(self.classes))
        columns = (column[~column.isnan()].long() for column in truth.T)
        return torch.stack([balanced_weights(column, 2) for column in columns])

    def meaning(self, outputs: Tensor) -> Tensor:
        """Probabilities or values, from the outputs of the network."""
        if self.kind == "classification":
            return outputs.softmax(dim=1)
        if self.kind == "multilabel":
            return outputs.sigmoid()
        center, scale = (torch.tensor(v, dtype=outputs.dtype) for v in (self.center, self.scale))
        return outputs * scale + center

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Task":
        kind = str(content["kind"])
        names, classes = (tuple(map(str, content[name])) for name in ("names", "classes"))
        center, scale = (tuple(map(float, content[name])) for name in ("center", "scale"))
        task = cls(kind, names, classes, center, scale)
        if kind not in ("classification", "multilabel", "regression") or not task.width:
            raise EdgewiseError(f"task {kind!r} with {task.width} outputs is not known")
        if kind == "regression" and not len(task.center) == len(task.scale) == task.width:
            raise EdgewiseError("a regression needs one center and one scale for each value")
        return task


def balanced_weights(labels: Tensor, classes: int) -> Tensor:
    r"""The paper's class weights, :math:`\sum_k n_k / (K n_k)`; 0 for a class without examples."""
    counts = torch.bincount(labels, minlength=classes).float()
    weights = counts.sum() / (classes * counts)
    return weights.masked_fill(counts == 0, 0.0)


def with_scale(task: Task, truth: Tensor, scale_targets: bool) -> Task:
    """The task with center and spread of its values, from the training truth."""
    if task.kind != "regression":
        return task
    center, scale = [0.0] * task.width, [1.0] * task.width
    if scale_targets:
        for i, column in enumerate(truth.double().T):
            known = column[~column.isnan()]
            if len(known):
                center[i] = float(known.mean())
                scale[i] = scale_of(known.numpy())
    return Task(task.kind, task.names, (), tuple(center), tuple(scale))


def guess_task(table: Table, names: tuple[str, ...], wanted: str = "auto") -> tuple[Task, Tensor]:
    """What the columns of a table ask for, and their truth.

    Columns of 0 and 1 are yes-or-no labels, other numbers are values, and one column of words
    holds classes.
    """
    if wanted == "classification" or (
        wanted == "auto" and len(names) == 1 and _words(table, names[0])
    ):
        if len(names) != 1:
            raise EdgewiseError(
                f"a classification has one target, not {len(names)}; for several columns of 0 "
                "and 1 set task = multilabel"
            )
        labels = learn_labels(table, names[0], "classification")
        assert labels.classes is not None
        return Task("classification", names, labels.classes), labels.encode(table)
    truth = truth_of(Task("regression", names), table)
    binary = bool((truth.isnan() | (truth == 0) | (truth == 1)).all())
    kind = wanted if wanted != "auto" else "multilabel" if binary else "regression"
    if kind == "multilabel" and not binary:
        row, column = (~(truth.isnan() | (truth == 0) | (truth == 1))).nonzero()[0].tolist()
        name = names[column]
        raise EdgewiseError(
            f"{table.where(row)}: column {name!r} holds {table.column(name)[row]!r}, expected 0 or "
            "1 for a yes-or-no label; set task = regression for values"
        )
    empty = [name for name, gaps in zip(names, truth.isnan().all(dim=0), strict=True) if gaps]
    if empty:
        raise EdgewiseError(f"{table.path}: the target column(s) {preview(empty)} are empty")
    return Task(kind, names), truth


def truth_of(task: Task, table: Table) -> Tensor:
    """The truth in a table, for a task that is known already."""
    for name in task.names:
        table.column(name)  # an absent one is a mistake, not unknown truth
    if task.kind == "classification":
        return Labels(task.names[0], task.classes).encode(table)
    columns = np.array([table.numbers(name) for name in task.names])
    return torch.tensor(columns, dtype=torch.float32).reshape(len(columns), len(table)).T


def _words(table: Table, name: str) -> bool:
    """Whether a column holds words; a slip among many numbers is a mistake, not a word."""
    cells = [cell.strip() for cell in table.column(name) if cell.strip() not in MISSING]
    odd = [cell for cell in cells if as_number(cell) is None]
    return bool(odd) and not mostly_numbers(cells, odd)
