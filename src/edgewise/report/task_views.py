"""What a report needs to know of a task, as plain data: one class for each kind of task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edgewise.report.task_records import (
    BinaryQuestion,
    CalibrationPairs,
    ClassCount,
    Group,
    ValuePairs,
    ValueStatistics,
    WorstError,
)

Cells = Mapping[str, Sequence[str]]  # of a table, by column
Outcomes = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # truth, predictions, deviations
STD_SUFFIXES = ("std", "spread")  # of columns; the second is what version 0.1.0 wrote


@dataclass(frozen=True)
class TaskView:
    """The columns that are predicted, and the classes of a classification.

    Truth and predictions have the form of :class:`~edgewise.tasks.Task`. A method returns
    nothing where its question makes no sense for the task.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...] = ()

    panels: ClassVar[tuple[str, ...]]  # of a report, by their names in the registry
    output_word: ClassVar[str]
    output_metrics: ClassVar[tuple[str, ...]]  # columns of the table of classes, labels or targets
    per_output: ClassVar[str] = "per_target"  # where the metrics of each are
    error_is_probability: ClassVar[bool] = True

    def listed_names(self, most: int = 4) -> str:
        """The predicted columns in words."""
        shown = ", ".join(self.names[:most])
        return shown if len(self.names) <= most else f"{shown} and {len(self.names) - most} more"

    def class_counts(self, truth: np.ndarray) -> tuple[ClassCount, ...]:
        """How often each class or label occurs in these rows."""
        return ()

    def value_statistics(self, truth: np.ndarray) -> tuple[ValueStatistics, ...]:
        """Mean, standard deviation and range of each target in these rows."""
        return ()

    def binary_questions(
        self, truth: np.ndarray, predicted: np.ndarray
    ) -> tuple[BinaryQuestion, ...]:
        """The questions whose ROC curve can be drawn: both answers occur."""
        return ()

    def calibration_pairs(
        self, truth: np.ndarray, predicted: np.ndarray
    ) -> CalibrationPairs | None:
        """What calibration is measured on."""
        return None

    def confusion(self, truth: np.ndarray, predicted: np.ndarray) -> np.ndarray | None:
        """Rows of each true class (down) that were predicted as each class (across)."""
        return None

    def value_pairs(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[ValuePairs, ...]:
        """Observed and predicted values of each target."""
        return ()


@dataclass(frozen=True)
class ClassificationView(TaskView):
    """One of several classes."""

    panels = (
        *("learning", "classes", "probabilities", "balance", "embeddings", "worst-errors"),
        *("metrics", "settings", "provenance"),
    )
    output_word = "class"
    output_metrics = ("precision", "recall", "f1", "rows")
    per_output = "per_class"

    def describe(self) -> str:
        plural = "class" if len(self.classes) == 1 else "classes"
        return f"Classification of {self.listed_names()} into {len(self.classes):,} {plural}"

    def read_columns(self, cells: Cells) -> Outcomes:
        """Truth, probabilities and standard deviations from a table of predictions."""
        number = {name: k for k, name in enumerate(self.classes)}
        truth = np.array([number.get(name, -1) for name in cells["true"]])
        predicted = np.stack([_numbers(cells[f"p_{name}"]) for name in self.classes], axis=1)
        found = [suffix for suffix in STD_SUFFIXES if suffix in cells]
        return truth, predicted, _numbers(cells[found[0]])[:, None] if found else None

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
        return _answered_both_ways(
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


@dataclass(frozen=True)
class MultilabelView(TaskView):
    """A binary label for each name; NaN in the truth is unknown."""

    panels = (
        *("learning", "labels", "probabilities", "balance", "embeddings", "worst-errors"),
        *("metrics", "settings", "provenance"),
    )
    output_word = "label"
    output_metrics = (
        *("roc_auc", "average_precision", "accuracy", "log_loss", "positives", "rows"),
    )

    def describe(self) -> str:
        plural = "label" if len(self.names) == 1 else "labels"
        return f"Prediction of {len(self.names):,} binary {plural}: {self.listed_names()}"

    def read_columns(self, cells: Cells) -> Outcomes:
        return _target_columns(cells, self.names, "probability")

    def shown_std(self, predicted: np.ndarray, std: np.ndarray) -> np.ndarray:
        return std

    def class_counts(self, truth: np.ndarray) -> tuple[ClassCount, ...]:
        return tuple(
            ClassCount(name, int((column > 0).sum()), int((~np.isnan(column)).sum()))
            for name, column in zip(self.names, truth.T, strict=True)
        )

    def binary_questions(
        self, truth: np.ndarray, predicted: np.ndarray
    ) -> tuple[BinaryQuestion, ...]:
        known = ~np.isnan(truth)
        return _answered_both_ways(
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


@dataclass(frozen=True)
class RegressionView(TaskView):
    """A value for each name; NaN in the truth is unknown."""

    panels = (
        *("learning", "predictions", "value-statistics", "embeddings", "worst-errors"),
        *("metrics", "settings", "provenance"),
    )
    output_word = "target"
    output_metrics = ("rmse", "mae", "r2", "rows")
    error_is_probability = False

    def describe(self) -> str:
        return f"Regression of {self.listed_names()}"

    def read_columns(self, cells: Cells) -> Outcomes:
        return _target_columns(cells, self.names, "predicted")

    def shown_std(self, predicted: np.ndarray, std: np.ndarray) -> np.ndarray:
        return std

    def value_statistics(self, truth: np.ndarray) -> tuple[ValueStatistics, ...]:
        found = []
        for name, column in zip(self.names, truth.T, strict=True):
            v = column[~np.isnan(column)]
            if len(v):
                numbers = (v.mean(), v.std(), v.min(), np.median(v), v.max())
                found.append(ValueStatistics(name, len(v), *map(float, numbers)))
        return tuple(found)

    def value_pairs(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[ValuePairs, ...]:
        found = []
        for k, name in enumerate(self.names):
            rows = np.flatnonzero(~np.isnan(truth[:, k]))
            found.append(ValuePairs(name, rows, truth[rows, k], predicted[rows, k]))
        return tuple(found)

    def worst_errors(
        self, truth: np.ndarray, predicted: np.ndarray, rows: np.ndarray, most: int
    ) -> tuple[WorstError, ...]:
        """The largest errors, each in standard deviations of its target, the worst first."""
        error = predicted[rows] - truth[rows]
        size = np.abs(error) / (np.nanstd(truth, axis=0) + 1e-300)
        places = np.argwhere(~np.isnan(error))
        places = places[np.argsort(-size[places[:, 0], places[:, 1]], kind="stable")][:most]
        return tuple(
            WorstError(
                row=int(rows[k]),
                observed=float(truth[rows[k], j]),
                predicted=float(predicted[rows[k], j]),
                size=float(error[k, j]),
                output=int(j),
                target=self.names[j] if len(self.names) > 1 else "",
            )
            for k, j in places
        )

    def embedding_groups(
        self, truth: np.ndarray, categories: int, steps: int
    ) -> tuple[str, tuple[Group, ...]]:
        """Groups for colouring: steps of equally many rows, by the target that most rows have."""
        target = int(np.argmax((~np.isnan(truth)).sum(axis=0)))
        value = truth[:, target]
        known = ~np.isnan(value)
        # Equally many rows, so that a few extremes do not take all the colours.
        edges = np.unique(np.quantile(value[known], np.linspace(0, 1, steps + 1)))
        step = np.clip(np.searchsorted(edges, value, side="right") - 1, 0, max(len(edges) - 2, 0))
        groups = []
        for k in range(max(len(edges) - 1, 1)):
            interval = (float(edges[k]), float(edges[min(k + 1, len(edges) - 1)]))
            groups.append(Group(interval, (step == k) & known, "step"))
        return self.names[target], tuple(groups)


AnyTaskView = ClassificationView | MultilabelView | RegressionView
TASK_VIEWS: dict[str, type[AnyTaskView]] = {
    "classification": ClassificationView,
    "multilabel": MultilabelView,
    "regression": RegressionView,
}


def task_view(task: Any) -> AnyTaskView:
    """The view of a :class:`~edgewise.tasks.Task`."""
    return TASK_VIEWS[task.kind](task.names, task.classes)


def _answered_both_ways(questions: Any) -> tuple[BinaryQuestion, ...]:
    return tuple(q for q in questions if q.truth.any() and not q.truth.all())


def _target_columns(cells: Cells, names: Sequence[str], word: str) -> Outcomes:
    def columns(suffix: str) -> np.ndarray:
        return np.stack([_numbers(cells[f"{name}_{suffix}"]) for name in names], axis=1)

    found = [suffix for suffix in STD_SUFFIXES if f"{names[0]}_{suffix}" in cells]
    return columns("true"), columns(word), columns(found[0]) if found else None


def _numbers(column: Sequence[str]) -> np.ndarray:
    return as_stored(np.array([float(cell) if cell else np.nan for cell in column]))


def as_stored(numbers: np.ndarray) -> np.ndarray:
    """Numbers with the precision of float32, which is what the nine digits of a file give back."""
    return numbers.astype(np.float32).astype(np.float64)
