"""What the outputs of a network stand for. A task of your own is a class of this kind."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from edgewise.core.declarations import TrainingSettings
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.registries import TASKS
from edgewise.data.tables import Table
from edgewise.tasks.metrics import Metrics
from edgewise.tasks.prediction import Prediction
from edgewise.tasks.records import (
    BinaryQuestion,
    CalibrationPairs,
    Cells,
    ClassCount,
    Group,
    Outcomes,
    Ranking,
    ValuePairs,
    ValueStatistics,
    WorstError,
)

Columns = dict[str, list[str]]  # of a table, by name


class Numbers(list[str]):
    """Cells that are numbers or empty, for files whose columns have types."""


@dataclass(frozen=True)
class Task:
    """What is predicted from rows: loss, decoding, metrics, and columns of tables.

    The truth of a task is a tensor with a row for each row of the data. Its form is the task's:
    ``[rows]`` class numbers with -1 for unknown, or ``[rows, names]`` numbers with NaN for unknown.

    Args:
        names: The columns that are predicted.
    """

    names: tuple[str, ...]

    name: ClassVar[str]  # by which it is registered
    headline: ClassVar[str]  # the metric that stands for the others
    lower_is_better: ClassVar[bool] = False
    settings: ClassVar[frozenset[str]] = frozenset()  # those that are this task's to take
    role: ClassVar[str] = "Regressor"  # in scikit-learn's words: that, or Classifier
    single_label: ClassVar[bool] = False  # one of several classes for each row
    panels: ClassVar[tuple[str, ...]] = (  # of a report, by their names
        *("learning", "time", "embeddings", "worst-errors", "metrics", "settings", "provenance"),
    )
    output_word: ClassVar[str] = "target"
    output_metrics: ClassVar[tuple[str, ...]] = ()  # columns of the table of outputs
    per_output: ClassVar[str] = "per_target"  # where the metrics of each are
    error_is_probability: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"{self.name} of {preview(self.names)}"

    # Reading.

    @classmethod
    def claims(cls, table: Table, names: Sequence[str]) -> bool:
        """Whether these columns look like this task."""
        return False

    @classmethod
    def learn(
        cls, table: Table, names: tuple[str, ...], categories: Collection[str] = ()
    ) -> "Task":
        """The task of these columns; columns that do not fit are refused."""
        raise NotImplementedError

    @classmethod
    def of_labels(cls, name: str, labels: Tensor, class_names: tuple[str, ...] | None) -> "Task":
        """The task of a graph's own labels: class numbers, or values."""
        raise EdgewiseError(
            f"task = {cls.name}, but the graph has one label for each node; choose another task"
        )

    def read(self, table: Table) -> Tensor:
        """The truth in a table that has the columns."""
        raise NotImplementedError

    def read_labels(self, labels: Tensor, class_names: tuple[str, ...] | None) -> Tensor:
        """The truth in a graph's own labels."""
        raise NotImplementedError

    @property
    def unknown(self) -> float:
        """What stands in the truth where it is not known."""
        return math.nan

    def unknown_truth(self, rows: int) -> Tensor:
        """The truth of rows of which nothing is known."""
        return torch.full((rows, len(self.names)), math.nan)

    # Learning.

    @property
    def width(self) -> int:
        """How many outputs the network has."""
        return len(self.outputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The name of each output."""
        return self.names

    def fitted(self, truth: Tensor, settings: TrainingSettings) -> "Task":
        """The task after a look at the training truth, such as its scale."""
        return self

    def known(self, truth: Tensor) -> Tensor:
        """Where the truth is known, in its own shape."""
        return ~truth.isnan()

    def labelled_rows(self, truth: Tensor) -> Tensor:
        """The rows of which something is known."""
        known = self.known(truth)
        return (known if known.dim() == 1 else known.any(dim=1)).nonzero()[:, 0]

    def balance(self, truth: Tensor) -> Tensor:
        """Weights of the classes for :meth:`loss`, larger for those that are rare in training."""
        raise EdgewiseError(f"{self.name} has no classes to weight; set weighted = false")

    def loss(self, outputs: Tensor, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        """The mean loss over all that is known; 0 if nothing is.

        Args:
            outputs: Of the network, ``[rows, width]``.
            truth: Of the same rows.
            weight: From :meth:`balance`.
        """
        raise NotImplementedError

    def loss_count(self, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        """What :meth:`loss` divides a sum by: parts of a batch count that much in the whole."""
        return self.known(truth).sum()

    def decode(self, outputs: Tensor) -> Tensor:
        """Probabilities or values, ``[rows, width]``, from the outputs of the network."""
        raise NotImplementedError

    def decoded_truth(self, truth: Tensor) -> np.ndarray | None:
        """What :meth:`decode` of a perfect network gives, ``[rows, width]``; NaN for unknown.

        None where the task does not say: descriptors of molecules are not blended in, then.
        """
        return None

    def label_channels(self, truth: Tensor) -> Tensor:
        """The truth as non-negative channels of edges, zeros where it is not known."""
        raise EdgewiseError(f"{self.name} has no labels to show; set label_messages = false")

    # Judging. Predictions are decoded, truth is as above, both numpy.

    def metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        """All metrics over what is known; None for one that cannot be computed."""
        raise NotImplementedError

    def score(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        """The headline metric alone; NaN where it cannot be computed."""
        value = self.metrics(predicted, truth)[self.headline]
        return math.nan if value is None else float(value)

    # Uncertainty, by edgewise.tasks.conformal. A task without score names has none.

    region_word: ClassVar[str] = "prediction set"
    region_size: ClassVar[str] = "mean size"

    @property
    def score_names(self) -> tuple[str, ...]:
        """The nonconformity scores: each is calibrated on its own."""
        return ()

    def nonconformity(self, prediction: Prediction, truth: np.ndarray) -> np.ndarray:
        """How little the truth conforms: ``[rows, score names]``, NaN where it says nothing."""
        raise NotImplementedError

    def region_sizes(self, prediction: Prediction) -> np.ndarray:
        """Widths of intervals, or how many classes a set holds: ``[rows, score names]``."""
        raise NotImplementedError

    def intervals(self, prediction: Prediction) -> np.ndarray:
        """Lower and upper ends of the prediction intervals, ``[rows, names, 2]``."""
        raise EdgewiseError(f"{self.name} has no prediction intervals; predict the values alone")

    def prediction_sets(self, prediction: Prediction) -> np.ndarray:
        """Which classes the prediction sets hold, as bools; the last axis is that of classes."""
        raise EdgewiseError(f"{self.name} has no prediction sets; predict the labels alone")

    # For estimators.

    @property
    def y_ndim(self) -> int:
        """1: the y of an estimator is ``[rows]``; 2: it is ``[rows, names]``."""
        return 1 if len(self.names) == 1 else 2

    def label_arrays(self, classes: np.ndarray | None) -> Any:
        """What an estimator has as ``classes_``, if it has any."""
        return None

    def choose(self, predicted: np.ndarray, classes: Any) -> np.ndarray:
        """The labels that decoded predictions stand for."""
        raise NotImplementedError

    # Writing.

    def predicted_columns(self, prediction: Prediction) -> Columns:
        """The predictions as columns."""
        raise NotImplementedError

    def observed_columns(self, truth: np.ndarray) -> Columns:
        """The truth as columns, empty where it is not known."""
        raise NotImplementedError

    def compared_columns(self, prediction: Prediction, truth: np.ndarray) -> Columns:
        """Truth and prediction side by side."""
        return self.observed_columns(truth) | self.predicted_columns(prediction)

    def read_columns(self, cells: Cells) -> Outcomes:
        """Truth, predictions and standard deviations from columns that were written."""
        raise NotImplementedError

    # For the report: plain data. A method gives nothing where its question makes no sense.

    def describe(self) -> str:
        """The task as the beginning of a sentence."""
        return f"{self.name.capitalize()} of {self.listed_names()}"

    def shown_std(self, predicted: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Of the standard deviations of all outputs, those that are shown."""
        return std

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

    def rankings(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[Ranking, ...]:
        """The places of rows among others that they are ranked with, for each output."""
        return ()

    def value_pairs(self, truth: np.ndarray, predicted: np.ndarray) -> tuple[ValuePairs, ...]:
        """Observed and predicted values of each target."""
        return ()

    def worst_errors(
        self, truth: np.ndarray, predicted: np.ndarray, rows: np.ndarray, most: int
    ) -> tuple[WorstError, ...]:
        """The largest errors among some rows, the worst first."""
        return ()

    def embedding_groups(
        self, truth: np.ndarray, categories: int, steps: int
    ) -> tuple[str, tuple[Group, ...]]:
        """What colours a map of the rows, and the groups of rows with one colour each."""
        return self.names[0], (Group("all rows", np.ones(len(truth), dtype=bool)),)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Task":
        """The task that :meth:`to_json` wrote; one that makes no sense is refused."""
        return cls(tuple(map(str, content["names"])))


def load_task(content: Mapping[str, Any]) -> Task:
    """A task as a model was saved with it."""
    task: Task = TASKS[str(content["kind"])].from_json(content)
    if not task.width:
        raise EdgewiseError(f"the task {task.name!r} has no outputs")
    return task


def cells(values: Iterable[Any]) -> Numbers:
    """Numbers as cells of a table, empty for NaN."""
    # Nine digits tell every two float32 numbers apart.
    return Numbers("" if math.isnan(value) else f"{value:.9g}" for value in values)


def set_cells(sets: np.ndarray, names: Sequence[str]) -> list[str]:
    """Prediction sets as cells, ``a|b``; an empty set is an empty cell."""
    return ["|".join(n for n, inside in zip(names, row, strict=True) if inside) for row in sets]


def zero_without(counted: Tensor, loss: Tensor, outputs: Tensor) -> Tensor:
    """The loss, or 0 where nothing counts; no device is asked which of the two it is."""
    return torch.where(counted.any(), loss, outputs.sum() * 0)


def balanced_weights(labels: Tensor, classes: int) -> Tensor:
    r"""The paper's class weights, :math:`\sum_k n_k / (K n_k)`; 0 for a class without examples."""
    counts = torch.bincount(labels, minlength=classes).float()
    weights = counts.sum() / (classes * counts)
    return weights.masked_fill(counts == 0, 0.0)
