"""One of several classes for each row."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.labels import Labels, learn_classes
from edgewise.data.tables import Table
from edgewise.kernels.log_softmax import log_softmax, softmax
from edgewise.tasks.base import (
    Columns,
    Task,
    balanced_weights,
    cells,
    set_cells,
    zero_without,
)
from edgewise.tasks.metrics import Metrics, classification_metrics
from edgewise.tasks.prediction import Prediction
from edgewise.tasks.reading import distinct_numbers, holds_words
from edgewise.tasks.records import (
    STD_SUFFIXES,
    BinaryQuestion,
    CalibrationPairs,
    Cells,
    ClassCount,
    Group,
    Outcomes,
    WorstError,
    answered_both_ways,
    numbers_of,
)

MOST_NUMBERED_CLASSES = 20


@dataclass(frozen=True)
class Classification(Task):
    """Classes; the truth is ``[rows]`` class numbers with -1 where it is not known."""

    classes: tuple[str, ...] = ()

    name = "classification"
    headline = "accuracy"
    settings = frozenset({"weighted", "coverage"})
    role = "Classifier"
    single_label = True
    panels = (
        *("learning", "classes", "probabilities", "uncertainty", "time", "balance"),
        *("embeddings", "worst-errors", "metrics", "settings", "provenance"),
    )
    output_word = "class"
    output_metrics = ("precision", "recall", "f1", "rows")
    per_output = "per_class"

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
    def learn(
        cls, table: Table, names: tuple[str, ...], categories: Collection[str] = ()
    ) -> "Classification":
        if len(names) != 1:
            raise EdgewiseError(
                f"a classification has one target, not {len(names)}; for several columns of 0 "
                "and 1 set task = multilabel"
            )
        said = names[0] in categories
        classes = learn_classes(table, names[0], categories=said).classes
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

    def label_channels(self, truth: Tensor) -> Tensor:
        return (truth.unsqueeze(1) == torch.arange(len(self.classes))).float()

    def balance(self, truth: Tensor) -> Tensor:
        return balanced_weights(truth[truth >= 0], len(self.classes))

    def loss(self, outputs: Tensor, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        known = self.known(truth)
        # Nothing known, or only classes that training does not have.
        counted = known if weight is None else known & (weight[truth.clamp(min=0)] > 0)
        loss = nll_loss(log_softmax(outputs), truth, weight=weight, ignore_index=-1)
        return zero_without(counted, loss, outputs)

    def loss_count(self, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        known = truth[self.known(truth)]
        return super().loss_count(truth) if weight is None else weight[known].sum()

    def decode(self, outputs: Tensor) -> Tensor:
        return softmax(outputs)

    def decoded_truth(self, truth: Tensor) -> np.ndarray | None:
        chosen = np.eye(len(self.classes))[truth.numpy().clip(min=0)]
        return np.where(truth.numpy()[:, None] >= 0, chosen, np.nan)

    def metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        known = truth >= 0
        return classification_metrics(predicted[known], truth[known], self.classes)

    def score(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        known = truth >= 0
        hits = predicted[known].argmax(axis=1) == truth[known]
        return float(hits.mean()) if len(hits) else math.nan

    @property
    def score_names(self) -> tuple[str, ...]:
        return self.names

    def nonconformity(self, prediction: Prediction, truth: np.ndarray) -> np.ndarray:
        """1 less the probability of the true class."""
        of_truth = prediction.mean[np.arange(len(truth)), np.maximum(truth, 0)]
        return np.where(truth >= 0, 1 - of_truth, math.nan)[:, None]

    def region_sizes(self, prediction: Prediction) -> np.ndarray:
        return self.prediction_sets(prediction).sum(axis=1, keepdims=True)

    def prediction_sets(self, prediction: Prediction) -> np.ndarray:
        assert prediction.conformal is not None
        return 1 - prediction.mean <= prediction.conformal.quantiles[0]

    def label_arrays(self, classes: np.ndarray | None) -> np.ndarray | None:
        return classes

    def choose(self, predicted: np.ndarray, classes: Any) -> np.ndarray:
        return np.asarray(classes)[predicted.argmax(axis=1)]

    def predicted_columns(self, prediction: Prediction) -> Columns:
        best = prediction.mean.argmax(axis=1)
        columns = {"predicted": [self.classes[k] for k in best]}
        if prediction.deviation is not None:
            columns["std"] = cells(prediction.deviation[np.arange(len(best)), best])
        if prediction.conformal is not None:
            columns["prediction_set"] = set_cells(self.prediction_sets(prediction), self.classes)
        probabilities = {f"p_{c}": cells(prediction.mean[:, k]) for k, c in enumerate(self.classes)}
        return columns | probabilities

    def observed_columns(self, truth: np.ndarray) -> Columns:
        return {"true": [self.classes[k] if k >= 0 else "" for k in truth]}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Classification":
        names, classes = (tuple(map(str, content[name])) for name in ("names", "classes"))
        return cls(names, classes)

    def describe(self) -> str:
        plural = "class" if len(self.classes) == 1 else "classes"
        return f"Classification of {self.listed_names()} into {len(self.classes):,} {plural}"

    def read_columns(self, cells: Cells) -> Outcomes:
        """Truth, probabilities and standard deviations from a table of predictions."""
        number = {name: k for k, name in enumerate(self.classes)}
        truth = np.array([number.get(name, -1) for name in cells["true"]])
        predicted = np.stack([numbers_of(cells[f"p_{name}"]) for name in self.classes], axis=1)
        found = [suffix for suffix in STD_SUFFIXES if suffix in cells]
        return truth, predicted, numbers_of(cells[found[0]])[:, None] if found else None

    def shown_std(self, predicted: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Of the standard deviations of all classes, that of the predicted one."""
        return np.take_along_axis(std, predicted.argmax(axis=1)[:, None], axis=1)

    def class_counts(self, truth: np.ndarray) -> tuple[ClassCount, ...]:
        known = int((truth >= 0).sum())
        counts = np.bincount(truth[truth >= 0], minlength=len(self.classes)).tolist()
        return tuple(
            ClassCount(name, count, known) for name, count in zip(self.classes, counts, strict=True)
        )

    def binary_questions(
        self, truth: np.ndarray, predicted: np.ndarray
    ) -> tuple[BinaryQuestion, ...]:
        known = truth >= 0
        # Of two classes, one is the other's mirror image.
        numbers = [1] if len(self.classes) == 2 else range(len(self.classes))
        return answered_both_ways(
            BinaryQuestion(self.classes[k], predicted[known, k], truth[known] == k) for k in numbers
        )

    def calibration_pairs(
        self, truth: np.ndarray, predicted: np.ndarray
    ) -> CalibrationPairs | None:
        known = truth >= 0
        observed = predicted[known].argmax(axis=1) == truth[known]
        meaning = "probability of the predicted class"
        return CalibrationPairs(predicted[known].max(axis=1), observed, "accuracy", meaning)

    def confusion(self, truth: np.ndarray, predicted: np.ndarray) -> np.ndarray | None:
        known = truth >= 0
        counts = np.zeros((len(self.classes), len(self.classes)), dtype=int)
        np.add.at(counts, (truth[known], predicted[known].argmax(axis=1)), 1)
        return counts

    def worst_errors(
        self, truth: np.ndarray, predicted: np.ndarray, rows: np.ndarray, most: int
    ) -> tuple[WorstError, ...]:
        """The wrong rows whose class has the highest probability, the worst first."""
        rows = rows[truth[rows] >= 0]
        found, probability = predicted[rows].argmax(axis=1), predicted[rows].max(axis=1)
        wrong = np.flatnonzero(found != truth[rows])
        wrong = wrong[np.argsort(-probability[wrong], kind="stable")][:most]
        return tuple(
            WorstError(
                row=int(rows[k]),
                observed=self.classes[truth[rows[k]]],
                predicted=self.classes[found[k]],
                size=float(probability[k]),
                output=0,
                class_numbers=(int(truth[rows[k]]), int(found[k])),
            )
            for k in wrong
        )

    def embedding_groups(
        self, truth: np.ndarray, categories: int, steps: int
    ) -> tuple[str, tuple[Group, ...]]:
        """Groups for colouring: the largest classes, and the others together."""
        counts = np.bincount(truth[truth >= 0], minlength=len(self.classes))
        kept = np.sort(np.argsort(-counts, kind="stable")[:categories]).tolist()
        groups = [Group(self.classes[k], truth == k) for k in kept]
        rest = ~np.isin(truth, kept)
        if rest.any():
            name = f"{len(self.classes) - len(kept)} smaller classes"
            groups.insert(0, Group(name, rest, "background"))
        return "class", tuple(groups)
