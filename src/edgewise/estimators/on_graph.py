"""What estimators for the nodes and for the edges of one graph share: X says which of them."""

import copy
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.splits import Split
from edgewise.estimators.base import Estimator, check_lengths, given_parts
from edgewise.estimators.targets import settled
from edgewise.graphs.graph import Graph
from edgewise.tasks.base import Task
from edgewise.units.base import Problem

Some = TypeVar("Some", bound="RowsOfGraph")


class RowsOfGraph(Estimator):
    """Rows of a graph that is given once, and shared by all clones."""

    graph: Any

    def __sklearn_clone__(self: Some) -> Some:
        bare = copy.copy(self)
        bare.graph = None
        fresh = super(RowsOfGraph, bare).__sklearn_clone__()
        fresh.graph = self.graph  # frozen, and too large to be copied for every fold
        return fresh

    def fit(self: Some, X: Any = None, y: Any = None, validation: Any = None) -> Some:
        """Learn the labels of some rows; no label of any other row is seen.

        Args:
            X: Numbers of nodes or edges; nodes also by their ids as words, where the graph has
                ``node_ids``. None: all.
            y: A label for each of them. Without X and y, those of the nodes of the graph.
            validation: ``(X, y)`` of the rows for early stopping. Without it, the share
                ``validation_fraction`` of X is used.
        """
        settings, graph = self._settings(), self._graph(None)
        if X is None and y is None:
            X, y = self._known(graph)
        parts = given_parts(X, y, validation)
        chosen = [self._rows(X, graph) for X, _ in parts]
        for rows, (_, labels), where in zip(chosen, parts, ("X", "validation"), strict=False):
            check_lengths(len(rows), labels, where)
        every = torch.cat(chosen)
        _check_once(every, self._unit)
        target = self._target_of(parts)
        truth = target.task.unknown_truth(self._count(graph)).to(target.truth.dtype)
        truth[every] = target.truth.reshape(len(every), *truth.shape[1:])
        known = torch.zeros(len(truth), dtype=torch.bool)
        known[target.task.labelled_rows(truth)] = True
        train, *stop = (rows[known[rows]].sort().values for rows in chosen)
        seed = settings.training.seed
        split = self._split(target, train, stop[0] if stop else None, truth, seed)
        problem = self._problem(graph, target.task, truth, split, settings)
        return self._fit_problem(problem, target)

    def _count(self, graph: Graph) -> int:
        """How many rows a graph has."""
        raise NotImplementedError

    def _rows(self, X: Any, graph: Graph) -> Tensor:
        """Where the rows of X stand in the graph."""
        raise NotImplementedError

    def _known(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        """The rows whose label the graph knows, and the labels."""
        raise NotImplementedError

    def _problem(
        self, graph: Graph, task: Task, truth: Tensor, split: Split, settings: Settings
    ) -> Problem:
        raise NotImplementedError

    def _graph(self, other: Any) -> Graph:
        graph = self.graph if other is None else other
        if isinstance(graph, Graph):
            return graph
        what = "missing" if graph is None else f"a {type(graph).__name__}"
        raise EdgewiseError(
            f"graph is {what}; give an edgewise.Graph (from_pyg, from_networkx and from_scipy make "
            f"one): {type(self).__name__}(graph=graph)"
        )


def named_rows(X: Any, word: str, give: str) -> np.ndarray:
    """What names the rows of X, one thing for each.

    Args:
        X: ``[rows]`` or ``[rows, 1]``.
        word: What a row is.
        give: What is to be given, for messages.
    """
    names = np.asarray(X).astype(object)
    if names.ndim == 2 and names.shape[1] == 1:
        names = names[:, 0]
    if names.ndim != 1:
        raise EdgewiseError(f"X has the shape {list(names.shape)}; give {give}, one for each row")
    return settled(names, f"the {word}s in X") if len(names) else names.astype(np.int64)


def number_rows(numbers: np.ndarray, count: int, word: str, other: str = "") -> Tensor:
    """Numbers of nodes or edges, each of which the graph has.

    Args:
        numbers: One for each row of X.
        count: How many there are.
        word: What they are.
        other: What else may be given, for messages.
    """
    if numbers.dtype.kind not in "iu":
        also = f", {other}" if other else ""
        raise EdgewiseError(f"X holds {numbers.dtype}; give {word} numbers, whole and from 0{also}")
    outside = numbers[(numbers < 0) | (numbers >= count)].tolist()
    if outside:
        raise EdgewiseError(
            f"X names {word}(s) {preview(outside)}, but the graph has the {word}s 0 to {count - 1}"
        )
    return torch.from_numpy(numbers.astype(np.int64))


def one_label_each(y: np.ndarray, word: str = "node") -> np.ndarray:
    """A label for each row, ``[rows]``."""
    if y.ndim == 2 and y.shape[1] != 1:
        raise EdgewiseError(
            f"y has {y.shape[1]} columns, but {word}s have one target; fit one model for each"
        )
    return y.reshape(-1)


def _check_once(rows: Tensor, word: str) -> None:
    found, count = rows.unique(return_counts=True)
    if len(found) < len(rows):
        twice = preview(found[count > 1].tolist())
        raise EdgewiseError(
            f"{word}(s) {twice} are given more than once; name each {word} once, for training or "
            "for validation"
        )
