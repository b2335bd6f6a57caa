"""Tasks with a number in a column of its own for each name; what binary labels and values share."""

import math
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.data.tables import Table
from edgewise.tasks.base import Columns, Task, cells
from edgewise.tasks.metrics import Metrics
from edgewise.tasks.prediction import Prediction
from edgewise.tasks.records import Cells, Outcomes, target_columns


class Columnar(Task):
    """Tasks with a number in a column of its own for each name.

    One of your own defines :meth:`loss`, :meth:`decode`, :meth:`column_metrics` and ``headline``,
    one of those metrics; see docs/extending.md.
    """

    word: ClassVar[str] = "predicted"  # what the column of a prediction is called

    @classmethod
    def learn(
        cls, table: Table, names: tuple[str, ...], categories: Collection[str] = ()
    ) -> "Columnar":
        task = cls(names)
        task.read(table)  # every cell must be a number
        return task

    @classmethod
    def of_labels(
        cls, name: str, labels: Tensor, class_names: tuple[str, ...] | None
    ) -> "Columnar":
        return cls((name,))

    def read(self, table: Table) -> Tensor:
        columns = [np.asarray(table.numbers(name)) for name in self.names]
        # Column by column in memory, so that sums over a column round alike however it was read.
        stacked = np.stack(columns).astype(np.float32).reshape(len(columns), len(table))
        return torch.from_numpy(stacked).T

    def read_labels(self, labels: Tensor, class_names: tuple[str, ...] | None) -> Tensor:
        if not labels.is_floating_point():
            raise EdgewiseError(
                f"the labels of the graph are class numbers, but the model learnt {self}"
            )
        return labels.float().reshape(-1, 1)

    def label_channels(self, truth: Tensor) -> Tensor:
        value = truth.nan_to_num(nan=0.0)
        return torch.cat([value.clamp(min=0), (-value).clamp(min=0)], dim=1)

    def decoded_truth(self, truth: Tensor) -> np.ndarray | None:
        return truth.numpy()

    def metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        per_target = {}
        for i, name in enumerate(self.names):
            known = ~np.isnan(truth[:, i])
            per_target[name] = self.column_metrics(predicted[known, i], truth[known, i])
        return {**_mean(list(per_target.values())), "per_target": per_target}

    def score(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        scores = []
        for i in range(len(self.names)):
            known = ~np.isnan(truth[:, i])
            if known.any():
                scores.append(self.column_score(predicted[known, i], truth[known, i]))
        defined = [score for score in scores if not math.isnan(score)]
        return sum(defined) / len(defined) if defined else math.nan

    def column_metrics(self, predicted: np.ndarray, truth: np.ndarray) -> Metrics:
        """The metrics of one column, where it is known."""
        raise NotImplementedError

    def column_score(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        """The headline metric of one column alone."""
        value = self.column_metrics(predicted, truth)[self.headline]
        return math.nan if value is None else float(value)

    def choose(self, predicted: np.ndarray, classes: Any) -> np.ndarray:
        return predicted

    def read_columns(self, cells: Cells) -> Outcomes:
        return target_columns(cells, self.names, self.word)

    def predicted_columns(self, prediction: Prediction) -> Columns:
        columns: Columns = {}
        for i in range(len(self.names)):
            columns |= self.target_columns(prediction, i)
        return columns

    def target_columns(self, prediction: Prediction, i: int) -> Columns:
        """The columns of one target."""
        columns: Columns = {f"{self.names[i]}_{self.word}": cells(prediction.mean[:, i])}
        if prediction.deviation is not None:
            columns[f"{self.names[i]}_std"] = cells(prediction.deviation[:, i])
        return columns

    def observed_columns(self, truth: np.ndarray) -> Columns:
        return {f"{name}_true": cells(truth[:, i]) for i, name in enumerate(self.names)}

    def compared_columns(self, prediction: Prediction, truth: np.ndarray) -> Columns:
        columns: Columns = {}
        for i, name in enumerate(self.names):
            columns[f"{name}_true"] = cells(truth[:, i])
            columns |= self.target_columns(prediction, i)
        return columns


def _mean(parts: list[Metrics]) -> Metrics:
    """The mean of each metric over the parts that have it; counts are summed."""
    names = list(dict.fromkeys(name for part in parts for name in part))
    joined: Metrics = {}
    for name in names:
        values = [part[name] for part in parts if part.get(name) is not None]
        if name in ("rows", "positives"):
            joined[name] = sum(values)
        else:
            joined[name] = sum(values) / len(values) if values else None
    return joined
