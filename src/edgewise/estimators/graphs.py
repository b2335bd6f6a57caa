"""Estimators for whole graphs: X is a list of graphs, y is measured or labelled."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from edgewise.core.declarations import DataSettings
from edgewise.core.errors import EdgewiseError
from edgewise.data.graphs_in_memory import graphs_in_memory
from edgewise.estimators.base import Classifier, Estimator, Regressor, check_lengths, given_parts
from edgewise.estimators.parameters import setting_parameters
from edgewise.estimators.targets import Target, binary_target, class_target, value_target
from edgewise.units.graph import graph_problem

_OWN = {
    "validation_fraction": (
        0.1,
        "share of the rows given to fit that is used for early stopping alone",
    ),
    "missing": ("error", "empty attributes among numbers of NetworkX graphs: error, or mean"),
}
_WHERE = ("X", "the X of validation")

Some = TypeVar("Some", bound="GraphEstimator")


class GraphEstimator(Estimator):
    """Graphs, one for each row."""

    _unit, _kind = "graph", "Graph"
    _source_settings = frozenset({"directed", "reciprocal"})
    missing: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self: Some, X: Any, y: Any = None, validation: Any = None) -> Some:
        """Learn from graphs.

        Args:
            X: A list of :class:`~edgewise.Graph`, of PyG ``Data`` (or a PyG data set), or of
                NetworkX graphs, whose attributes become columns as those of tables do.
            y: ``[rows]`` or ``[rows, targets]``, NaN where it is not known; without it the ``y``
                of PyG data.
            validation: ``(X, y)`` of the rows for early stopping. Without it, the share
                ``validation_fraction`` of X is used.
        """
        self._settings()  # a mistake in the settings is told before anything is read
        parts = given_parts(X, y, validation)
        graphs = [graph_list(X, where) for (X, _), where in zip(parts, _WHERE, strict=False)]
        parts = [
            (some, labels_of(some) if truth is None else truth)
            for some, (_, truth) in zip(graphs, parts, strict=True)
        ]
        for some, (_, truth), where in zip(graphs, parts, _WHERE, strict=False):
            check_lengths(len(some), truth, where)
        structures = graphs_in_memory([graph for some in graphs for graph in some], DataSettings())
        settings = self._settings({"directed": structures.directed})
        settings = replace(settings, data=DataSettings(missing=self.missing))
        target = self._target_of(parts)
        known = target.task.labelled_rows(target.truth)
        first = len(graphs[0])
        stop = known[known >= first] if len(parts) > 1 else None
        train = known[known < first]
        split = self._split(target, train, stop, target.truth, settings.training.seed)
        problem, _ = graph_problem(structures, target.task, target.truth, split, settings)
        return self._fit_problem(problem, target)

    def _predicted(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "fitted_")
        predicted: np.ndarray = self.fitted_.predict(graph_list(X, _WHERE[0])).mean
        return predicted


@setting_parameters(**_OWN)
class GraphRegressor(Regressor, GraphEstimator):
    """Values of whole graphs, one or several for each, learnt from those that are known.

    ``X`` is a list of graphs, see :meth:`fit`; ``y`` is ``[rows]`` or ``[rows, targets]`` with NaN
    where a value is not known, and predictions have its shape. Unless ``directed`` says otherwise,
    edges have a direction where some edge goes one way only.

    Attributes: ``history_``, the epochs of the first model; ``fitted_``.
    """

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        return value_target(y, names)

    def predict(self, X: Any) -> np.ndarray:
        """The value of each graph, in the shape of y."""
        return self._values(self._predicted(X))


@setting_parameters(**_OWN)
class GraphClassifier(Classifier, GraphEstimator):
    """Classes of whole graphs, or several binary labels for each (multilabel).

    A ``y`` of shape ``[rows]`` holds one label of any sort for each graph; one of shape ``[rows,
    labels]`` holds 0, 1, or NaN where it is not known. Results are those of
    :class:`MoleculeClassifier`.

    Attributes: ``classes_``, sorted; ``history_``, the epochs of the first model; ``fitted_``.

    Example:
        >>> import networkx
        >>> rings = [networkx.cycle_graph(n) for n in range(4, 10)]
        >>> paths = [networkx.path_graph(n) for n in range(4, 10)]
        >>> model = GraphClassifier(epochs=2, validation_fraction=0)
        >>> model.fit(rings + paths, ["ring"] * 6 + ["path"] * 6).predict(rings).shape
        (6,)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        return class_target(y, names) if y.ndim == 1 else binary_target(y, names)

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class, or zeros and ones."""
        return self._labels(self._predicted(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """``[rows, classes]`` in the order of ``classes_``, or ``[rows, labels]``."""
        return self._predicted(X)


def graph_list(X: Any, where: str) -> list[Any]:
    """The graphs of X, one for each row."""
    if not isinstance(X, Iterable) or isinstance(X, str) or hasattr(X, "is_multigraph"):
        raise EdgewiseError(f"{where} is a {type(X).__name__}; give a list of graphs")
    return list(X)


def labels_of(graphs: list[Any]) -> np.ndarray:
    """The ``y`` of PyG data, ``[rows]`` or ``[rows, targets]``."""
    found = [getattr(graph, "y", None) for graph in graphs]
    absent = [row for row, label in enumerate(found) if label is None]
    if absent:
        raise EdgewiseError(
            f"there is no y, and graph {absent[0]} has none of its own; call fit(X, y)"
        )
    try:
        columns = np.stack([np.asarray(label).reshape(-1) for label in found])
    except ValueError as error:
        raise EdgewiseError(
            "the graphs have labels of different shapes; call fit(X, y) with one for each graph"
        ) from error
    return columns[:, 0] if columns.shape[1] == 1 else columns
