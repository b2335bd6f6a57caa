"""Values, one or several for each row."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.declarations import TrainingSettings
from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.columns import scale_of
from edgewise.data.tables import Table
from edgewise.tasks.base import Columns, cells, zero_without
from edgewise.tasks.columnar import Columnar
from edgewise.tasks.metrics import Metrics, regression_metrics
from edgewise.tasks.prediction import Prediction
from edgewise.tasks.reading import holds_words, refuse_empty
from edgewise.tasks.records import Group, ValuePairs, ValueStatistics, WorstError


@dataclass(frozen=True)
class Regression(Columnar):
    """Values; the truth is ``[rows, names]`` with NaN where it is not known.

    Args:
        names: The columns that are predicted.
        center: Subtracted from the values before they are learnt.
        scale: Their divisor.
    """

    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    name = "regression"
    headline = "rmse"
    lower_is_better = True
    settings = frozenset({"scale_targets", "coverage"})
    role = "Regressor"
    word = "predicted"
    panels = (
        *("learning", "predictions", "uncertainty", "time", "value-statistics", "embeddings"),
        *("worst-errors", "metrics", "settings", "provenance"),
    )
    output_word = "target"
    output_metrics = ("rmse", "mae", "r2", "rows")
    error_is_probability = False
    region_word, region_size = "prediction interval", "mean width"

    def __str__(self) -> str:
        return f"regression of {preview(self.names)}"

    @classmethod
    def claims(cls, table: Table, names: Sequence[str]) -> bool:
        """Columns of numbers."""
        return not any(holds_words(table, name) for name in names)

    @classmethod
    def learn(
        cls, table: Table, names: tuple[str, ...], categories: Collection[str] = ()
    ) -> "Regression":
        task = cls(names)
        task.read(table)  # every cell must be a number
        refuse_empty(table, names)
        return task

    def fitted(self, truth: Tensor, settings: TrainingSettings) -> "Regression":
        center, scale = [0.0] * self.width, [1.0] * self.width
        if settings.scale_targets:
            for i, column in enumerate(truth.double().T):
                known = column[~column.isnan()]
                if len(known):
                    center[i] = float(known.mean())
                    scale[i] = scale_of(known.numpy())
        return replace(self, center=tuple(center), scale=tuple(scale))

    def label_channels(self, truth: Tensor) -> Tensor:
        center, scale = self._scaling(truth)
        return super().label_channels((truth - center) / scale)

    def loss(self, outputs: Tensor, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        known = self.known(truth)
        found, expected, columns = outputs[known], truth[known], known.nonzero()[:, 1]
        center, scale = self._scaling(found)
        loss = (found - (expected - center[columns]) / scale[columns]).square().mean()
        return zero_without(known, loss, outputs)

    def decode(self, outputs: Tensor) -> Tensor:
        center, scale = self._scaling(outputs)
        return outputs * scale + center

    def _scaling(self, like: Tensor) -> tuple[Tensor, Tensor]:
        center, scale = (
            torch.tensor(v, dtype=like.dtype, device=like.device) for v in (self.center, self.scale)
        )
        return center, scale

    def column_metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        return regression_metrics(predicted, truth)

    def column_score(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        return math.sqrt(float(np.square(predicted.astype(np.float64) - truth).mean()))

    @property
    def score_names(self) -> tuple[str, ...]:
        return self.names

    def nonconformity(self, prediction: Prediction, truth: np.ndarray) -> np.ndarray:
        """The absolute error; of an ensemble, divided by how far its members are apart."""
        return np.abs(truth - prediction.mean) / _difficulty(prediction)

    def region_sizes(self, prediction: Prediction) -> np.ndarray:
        assert prediction.conformal is not None
        return 2 * _difficulty(prediction) * np.array(prediction.conformal.quantiles)

    def intervals(self, prediction: Prediction) -> np.ndarray:
        half = self.region_sizes(prediction) / 2
        return np.stack([prediction.mean - half, prediction.mean + half], axis=2)

    def target_columns(self, prediction: Prediction, i: int) -> Columns:
        columns = super().target_columns(prediction, i)
        if prediction.conformal is not None:
            ends = self.intervals(prediction)[:, i]
            columns[f"{self.names[i]}_lower"] = cells(ends[:, 0])
            columns[f"{self.names[i]}_upper"] = cells(ends[:, 1])
        return columns

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Regression":
        center, scale = (tuple(map(float, content[name])) for name in ("center", "scale"))
        task = cls(tuple(map(str, content["names"])), center, scale)
        if not len(center) == len(scale) == task.width:
            raise EdgewiseError("a regression needs one center and one scale for each value")
        if not all(map(math.isfinite, center)) or not all(0 < s < math.inf for s in scale):
            raise EdgewiseError("a center is not finite, or a scale is not above 0")
        return task

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


def _difficulty(prediction: Prediction) -> np.ndarray:
    """The standard deviation of an ensemble plus half its mean over the training rows, or 1.

    The sum keeps the interval of a row that all members agree on from vanishing.
    """
    if prediction.deviation is None or prediction.conformal is None:
        return np.ones_like(prediction.mean)
    difficulty: np.ndarray = prediction.deviation + np.array(prediction.conformal.offsets)
    return np.maximum(difficulty, 1e-12)
