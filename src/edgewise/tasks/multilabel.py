"""Binary labels, one or several for each row, each 0 or 1 or unknown."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.tables import Table
from edgewise.tasks.base import Columns, balanced_weights, set_cells, zero_without
from edgewise.tasks.columnar import Columnar
from edgewise.tasks.metrics import Metrics, binary_metrics, roc_auc
from edgewise.tasks.prediction import Prediction
from edgewise.tasks.reading import distinct_numbers, holds_words, refuse_empty
from edgewise.tasks.records import (
    BinaryQuestion,
    CalibrationPairs,
    ClassCount,
    Group,
    WorstError,
    answered_both_ways,
)


@dataclass(frozen=True)
class Multilabel(Columnar):
    """Binary labels; the truth is ``[rows, names]`` zeros and ones, NaN where it is not known."""

    name = "multilabel"
    headline = "roc_auc"
    settings = frozenset({"weighted", "coverage"})
    role = "Classifier"
    word = "probability"
    panels: ClassVar[tuple[str, ...]] = (
        *("learning", "labels", "probabilities", "uncertainty", "time", "balance"),
        *("embeddings", "worst-errors", "metrics", "settings", "provenance"),
    )
    output_word = "label"
    output_metrics: ClassVar[tuple[str, ...]] = (
        *("roc_auc", "average_precision", "accuracy", "log_loss", "positives", "rows"),
    )

    def __str__(self) -> str:
        return f"{len(self.names)} binary label{'s' * (len(self.names) > 1)}: {preview(self.names)}"

    @classmethod
    def claims(cls, table: Table, names: Sequence[str]) -> bool:
        """Columns of 0 and 1 alone."""
        return all(
            not holds_words(table, name) and distinct_numbers(table, name) <= {0, 1}
            for name in names
        )

    @classmethod
    def learn(
        cls, table: Table, names: tuple[str, ...], categories: Collection[str] = ()
    ) -> "Multilabel":
        task = cls(names)
        truth = task.read(table)
        odd = (~(truth.isnan() | (truth == 0) | (truth == 1))).nonzero()
        if len(odd):
            row, column = odd[0].tolist()
            name = names[column]
            raise EdgewiseError(
                f"{table.where(row)}: column {name!r} holds {table.column(name)[row]!r}, expected "
                "0 or 1 for a binary label; set task = regression for values"
            )
        refuse_empty(table, names)
        return task

    def read_labels(self, labels: Tensor, class_names: tuple[str, ...] | None) -> Tensor:
        truth = (
            labels.float()
            if labels.is_floating_point()
            else labels.float().where(labels >= 0, math.nan)
        )
        if not bool((truth.isnan() | (truth == 0) | (truth == 1)).all()):
            raise EdgewiseError(
                "task = multilabel, but the labels of the graph are not 0 and 1; change one"
            )
        return truth.reshape(-1, 1)

    def label_channels(self, truth: Tensor) -> Tensor:
        return torch.cat([truth == 1, truth == 0], dim=1).float()

    def balance(self, truth: Tensor) -> Tensor:
        """``[names, 2]``."""
        columns = (column[~column.isnan()].long() for column in truth.T)
        return torch.stack([balanced_weights(column, 2) for column in columns])

    def loss(self, outputs: Tensor, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        known = self.known(truth)
        found, expected = outputs[known], truth[known]
        of_entry = None
        if weight is not None:
            of_entry = weight[known.nonzero()[:, 1], expected.long()]
        loss = binary_cross_entropy_with_logits(found, expected, weight=of_entry)
        return zero_without(known, loss, outputs)

    def decode(self, outputs: Tensor) -> Tensor:
        return outputs.sigmoid()

    def column_metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        return binary_metrics(predicted, truth)

    def column_score(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        return roc_auc(predicted, truth)

    @property
    def score_names(self) -> tuple[str, ...]:
        # Apart, because a rare label would be left out of all sets, and they would be right.
        return tuple(f"{name} = {answer}" for name in self.names for answer in (0, 1))

    def nonconformity(self, prediction: Prediction, truth: np.ndarray) -> np.ndarray:
        """1 less the probability of the answer, for the rows that have it."""
        score = 1 - _of_answers(prediction)
        return np.where(truth[..., None] == (0, 1), score, math.nan).reshape(len(truth), -1)

    def region_sizes(self, prediction: Prediction) -> np.ndarray:
        return self.prediction_sets(prediction).sum(axis=2).repeat(2, axis=1)

    def prediction_sets(self, prediction: Prediction) -> np.ndarray:
        """``[rows, names, 2]``: whether 0 is in the set of a label, and whether 1 is."""
        assert prediction.conformal is not None
        quantiles = np.array(prediction.conformal.quantiles).reshape(-1, 2)
        return 1 - _of_answers(prediction) <= quantiles

    def target_columns(self, prediction: Prediction, i: int) -> Columns:
        columns = super().target_columns(prediction, i)
        if prediction.conformal is not None:
            sets = self.prediction_sets(prediction)[:, i]
            columns[f"{self.names[i]}_set"] = set_cells(sets, ("0", "1"))
        return columns

    @property
    def y_ndim(self) -> int:
        return 2

    def label_arrays(self, classes: np.ndarray | None) -> list[np.ndarray]:
        return [np.array([0, 1]) for _ in self.names]

    def choose(self, predicted: np.ndarray, classes: Any) -> np.ndarray:
        return (predicted > 0.5).astype(np.int64)

    def describe(self) -> str:
        plural = "label" if len(self.names) == 1 else "labels"
        return f"Prediction of {len(self.names):,} binary {plural}: {self.listed_names()}"

    def class_counts(self, truth: np.ndarray) -> tuple[ClassCount, ...]:
        return tuple(
            ClassCount(name, int((column > 0).sum()), int((~np.isnan(column)).sum()))
            for name, column in zip(self.names, truth.T, strict=True)
        )

    def binary_questions(
        self, truth: np.ndarray, predicted: np.ndarray
    ) -> tuple[BinaryQuestion, ...]:
        known = ~np.isnan(truth)
        return answered_both_ways(
            BinaryQuestion(name, predicted[known[:, k], k], truth[known[:, k], k] > 0)
            for k, name in enumerate(self.names)
        )

    def calibration_pairs(
        self, truth: np.ndarray, predicted: np.ndarray
    ) -> CalibrationPairs | None:
        known = ~np.isnan(truth)
        meaning = "probability of each label, all labels together"
        return CalibrationPairs(predicted[known], truth[known] > 0, "share of positives", meaning)

    def worst_errors(
        self, truth: np.ndarray, predicted: np.ndarray, rows: np.ndarray, most: int
    ) -> tuple[WorstError, ...]:
        """The wrong labels with the highest probability of the wrong answer, the worst first."""
        miss = np.abs(predicted[rows] - truth[rows])
        wrong = np.argwhere(miss > 0.5)
        wrong = wrong[np.argsort(-miss[wrong[:, 0], wrong[:, 1]], kind="stable")][:most]
        answers = ("negative", "positive")
        return tuple(
            WorstError(
                row=int(rows[k]),
                observed=answers[int(truth[rows[k], j])],
                predicted=answers[1 - int(truth[rows[k], j])],
                size=float(miss[k, j]),
                output=int(j),
                target=self.names[j] if len(self.names) > 1 else "",
            )
            for k, j in wrong
        )

    def embedding_groups(
        self, truth: np.ndarray, categories: int, steps: int
    ) -> tuple[str, tuple[Group, ...]]:
        """Groups for colouring: without and with the most frequent label."""
        # A rare label would leave the map in one colour.
        label = int(np.argmax((truth == 1).sum(axis=0)))
        column = truth[:, label]
        groups = (
            Group("negative", column == 0, "background"),
            Group("positive", column == 1),
        )
        return self.names[label], groups


def _of_answers(prediction: Prediction) -> np.ndarray:
    """The probabilities of 0 and of 1, ``[rows, names, 2]``."""
    return np.stack([1 - prediction.mean, prediction.mean], axis=2)
