"""Values, one or several for each row."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import TrainingSettings
from edgewise.data.columns import scale_of
from edgewise.data.tables import Table
from edgewise.tasks.base import Columnar
from edgewise.tasks.metrics import Metrics, regression_metrics
from edgewise.tasks.reading import holds_words, refuse_empty


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
    settings = frozenset({"scale_targets"})
    role = "Regressor"
    word = "predicted"

    def __str__(self) -> str:
        return f"regression of {preview(self.names)}"

    @classmethod
    def claims(cls, table: Table, names: Sequence[str]) -> bool:
        """Columns of numbers."""
        return not any(holds_words(table, name) for name in names)

    @classmethod
    def learn(cls, table: Table, names: tuple[str, ...]) -> "Regression":
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

    def loss(self, outputs: Tensor, truth: Tensor, weight: Tensor | None = None) -> Tensor:
        known = self.known(truth)
        if not known.any():
            return outputs.sum() * 0
        found, wanted, columns = outputs[known], truth[known], known.nonzero()[:, 1]
        center, scale = self._scaling(found)
        return (found - (wanted - center[columns]) / scale[columns]).square().mean()

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

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Regression":
        center, scale = (tuple(map(float, content[name])) for name in ("center", "scale"))
        task = cls(tuple(map(str, content["names"])), center, scale)
        if not len(center) == len(scale) == task.width:
            raise EdgewiseError("a regression needs one center and one scale for each value")
        return task
