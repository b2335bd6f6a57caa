"""One of several classes for each row."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.labels import Labels, learn_labels
from edgewise.data.tables import Table
from edgewise.tasks.base import Columns, Prediction, Task, balanced_weights, cells
from edgewise.tasks.metrics import Metrics, classification_metrics
from edgewise.tasks.reading import distinct_numbers, holds_words

MOST_NUMBERED_CLASSES = 20


@dataclass(frozen=True)
class Classification(Task):
    """Classes; the truth is ``[rows]`` class numbers with -1 where it is not known."""

    classes: tuple[str, ...] = ()

    name = "classification"
    headline = "accuracy"
    settings = frozenset({"weighted"})
    role = "Classifier"
    single_label = True

    def __str__(self) -> str:
        return f"classification of {self.names[0]} into {len(self.classes)} classes"

    @classmethod
    def claims(cls, table: Table, names: Sequence[str]) -> bool:
        """One column of words, or of few different whole numbers."""
        if len(names) != 1:
            return False
        if holds_words(table, names[0]):
            return True
        numbers = distinct_numbers(table, names[0])
        whole = all(float(number).is_integer() for number in numbers)
        return whole and len(numbers) <= MOST_NUMBERED_CLASSES

    @classmethod
    def learn(cls, table: Table, names: tuple[str, ...]) -> "Classification":
        if len(names) != 1:
            raise EdgewiseError(
                f"a classification has one target, not {len(names)}; for several columns of 0 "
                "and 1 set task = multilabel"
            )
        classes = learn_labels(table, names[0], "classification").classes
        assert classes is not None
        return cls(names, classes)

    @classmethod
    def of_labels(
        cls, name: str, labels: Tensor, class_names: tuple[str, ...] | None
    ) -> "Classification":
        if labels.is_floating_point():
            raise EdgewiseError(
                "task = classification, but the labels of the graph are values; change one"
            )
        count = int(labels.max()) + 1 if len(labels) else 0
        return cls((name,), class_names or tuple(map(str, range(count))))

    def read(self, table: Table) -> Tensor:
        table.column(self.names[0])  # an absent one is a mistake, not unknown truth
        return Labels(self.names[0], self.classes).encode(table)

    def read_labels(self, labels: Tensor, class_names: tuple[str, ...] | None) -> Tensor:
        """Class numbers of a graph as this task numbers them: by the names of the classes."""
        if labels.is_floating_point():
            raise EdgewiseError(f"the labels of the graph are values, but the model learnt {self}")
        numbers = labels.numpy()
        names = class_names or tuple(map(str, range(numbers.max(initial=-1) + 1)))
        present = [names[number] for number in np.unique(numbers[numbers >= 0])]
        unknown = [name for name in present if name not in self.classes]
        if unknown:
            raise EdgewiseError(
                f"the model does not know the class(es) {preview(unknown)}; it learnt "
                f"{preview(self.classes)}, so give the graph class_names such as these"
            )
        ours = [self.classes.index(name) if name in self.classes else -1 for name in names]
        return torch.from_numpy(np.array([*ours, -1])[numbers])  # -1, unknown, finds the last

    @property
    def unknown(self) -> float:
        return -1

    def unknown_truth(self, rows: int) -> Tensor:
        return torch.full((rows,), -1)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.classes

    def known(self, truth: Tensor) -> Tensor:
        return truth >= 0

    def balance(self, truth: Tensor) -> Tensor:
        return balanced_weights(truth[truth >= 0], len(self.classes))

    def loss(self, outputs: Tensor, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        known = self.known(truth)
        if not known.any() or (weight is not None and not weight[truth[known]].any()):
            return outputs.sum() * 0  # nothing known, or only classes that training does not have
        return cross_entropy(outputs, truth, weight=weight, ignore_index=-1)

    def decode(self, outputs: Tensor) -> Tensor:
        return outputs.softmax(dim=1)

    def metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        known = truth >= 0
        return classification_metrics(predicted[known], truth[known], self.classes)

    def score(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        known = truth >= 0
        hits = predicted[known].argmax(axis=1) == truth[known]
        return float(hits.mean()) if len(hits) else math.nan

    def label_arrays(self, classes: np.ndarray | None) -> np.ndarray | None:
        return classes

    def choose(self, predicted: np.ndarray, classes: Any) -> np.ndarray:
        return np.asarray(classes)[predicted.argmax(axis=1)]

    def predicted_columns(self, prediction: Prediction) -> Columns:
        best = prediction.mean.argmax(axis=1)
        columns = {"predicted": [self.classes[k] for k in best]}
        if prediction.deviation is not None:
            columns["std"] = cells(prediction.deviation[np.arange(len(best)), best])
        probabilities = {f"p_{c}": cells(prediction.mean[:, k]) for k, c in enumerate(self.classes)}
        return columns | probabilities

    def observed_columns(self, truth: np.ndarray) -> Columns:
        return {"true": [self.classes[k] if k >= 0 else "" for k in truth]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Classification":
        names, classes = (tuple(map(str, content[name])) for name in ("names", "classes"))
        return cls(names, classes)
