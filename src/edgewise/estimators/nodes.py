"""Estimators for the nodes of one graph: X says which nodes, the graph says everything else."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.splits import Split
from edgewise.estimators.base import Classifier, Regressor
from edgewise.estimators.on_graph import RowsOfGraph, named_rows, number_rows, one_label_each
from edgewise.estimators.parameters import setting_parameters
from edgewise.estimators.targets import Target, class_target, value_target
from edgewise.graphs.graph import Graph
from edgewise.tasks.base import Prediction, Task
from edgewise.units.base import Problem
from edgewise.units.node import node_problem

_OWN = {
    "graph": (None, "the edgewise.Graph that holds all nodes, those to be predicted too"),
    "validation_fraction": (
        0.2,
        "share of the nodes given to fit that is used for early stopping alone",
    ),
}


class NodeEstimator(RowsOfGraph):
    """Nodes of a graph."""

    _unit, _kind = "node", "Node"
    _source_settings = frozenset({"directed", "reciprocal"})

    def _count(self, graph: Graph) -> int:
        return graph.num_nodes

    def _rows(self, X: Any, graph: Graph) -> Tensor:
        return node_rows(X, graph)

    def _known(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        return _labelled(graph)

    def _problem(
        self, graph: Graph, task: Task, truth: Tensor, split: Split, settings: Settings
    ) -> Problem:
        # Labels come from y alone: those that the graph may have are not even looked at.
        bare = replace(graph, y=None, class_names=None)
        return node_problem(bare, task, truth, split, settings)[0]

    def _predicted(self, X: Any, graph: Any) -> np.ndarray:
        return self._prediction(X, graph).mean

    def _prediction(self, X: Any, graph: Any = None) -> Prediction:
        check_is_fitted(self, "fitted_")
        where = self._graph(graph)
        return self.fitted_.predict(where).of_rows(node_rows(X, where).numpy())


@setting_parameters(**_OWN)
class NodeClassifier(Classifier, NodeEstimator):
    """Classes of the nodes of a graph, learnt from the nodes whose class is known.

    ``X`` is an array of node numbers (or of node ids, where the graph has ``node_ids``), so that
    ``cross_val_score(NodeClassifier(graph=graph), numpy.arange(n), y)`` does what it says. Labels
    are words, integers or booleans.

    Attributes: ``classes_``, sorted; ``history_``, the epochs of the first model; ``fitted_``.

    Example:
        >>> edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> graph = Graph(torch.eye(4), edges, node_ids=("a", "b", "c", "d"))
        >>> model = NodeClassifier(graph=graph, epochs=50, dropout=0.0, validation_fraction=0)
        >>> model.fit(["a", "c"], ["left", "right"]).predict(["b", "d"])
        array(['left', 'right'], dtype='<U5')
    """

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        return class_target(one_label_each(y), names)

    def predict(self, X: Any = None, graph: Any = None) -> np.ndarray:
        """The likeliest class of each node of X, or of all.

        Args:
            X: As in :meth:`fit`.
            graph: Another graph with the same features and channels, instead of the first one.
        """
        return self._labels(self._predicted(X, graph))

    def predict_proba(self, X: Any = None, graph: Any = None) -> np.ndarray:
        """``[nodes, classes]`` in the order of ``classes_``; arguments as in :meth:`predict`."""
        return self._predicted(X, graph)

    def predict_set(self, X: Any = None, graph: Any = None) -> np.ndarray:
        """Prediction sets, which hold the true class as often as ``coverage`` says.

        Returns:
            Bools, ``[nodes, classes]`` in the order of ``classes_``; arguments as in
            :meth:`predict`.
        """
        return self._sets(self._prediction(X, graph))


@setting_parameters(**_OWN)
class NodeRegressor(Regressor, NodeEstimator):
    """Values of the nodes of a graph, learnt from the nodes whose value is known.

    ``X`` is an array of node numbers or ids, see :class:`NodeClassifier`.

    Attributes: ``history_``, the epochs of the first model; ``fitted_``.
    """

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        return replace(value_target(one_label_each(y), names), y_ndim=y.ndim)

    def predict(self, X: Any = None, graph: Any = None) -> np.ndarray:
        """The value of each node of X, or of all; arguments as in :class:`NodeClassifier`."""
        return self._values(self._predicted(X, graph))

    def predict_interval(self, X: Any = None, graph: Any = None) -> np.ndarray:
        """Prediction intervals, which hold the value as often as ``coverage`` says.

        Returns:
            Lower and upper ends, ``[nodes, 2]``; infinite where there were too few validation
            nodes to tell. Arguments as in :meth:`predict`.
        """
        return self._intervals(self._prediction(X, graph))


def node_rows(X: Any, graph: Graph) -> Tensor:
    """Where the nodes of X stand in the graph."""
    if X is None:
        return torch.arange(graph.num_nodes)
    nodes = named_rows(X, "node", "node numbers or ids")
    if nodes.dtype.kind == "U":
        if graph.node_ids is None:
            raise EdgewiseError(
                f"X holds the word {nodes[0]!r}, but the graph has no node_ids; give node numbers"
            )
        place = {name: row for row, name in enumerate(graph.node_ids)}
        unknown = [name for name in nodes.tolist() if name not in place]
        if unknown:
            raise EdgewiseError(f"the graph has no node called {preview(unknown)}; check X")
        return torch.tensor([place[name] for name in nodes.tolist()])
    return number_rows(nodes, graph.num_nodes, "node", "or node ids as words")


def _labelled(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """The nodes whose label the graph knows, and the labels."""
    if graph.y is None:
        raise EdgewiseError("the graph has no y, and fit was given none; call fit(X, y)")
    y = graph.y.numpy()
    known = ~np.isnan(y) if graph.y.is_floating_point() else y >= 0
    labels = y if graph.class_names is None else np.array(graph.class_names)[y]
    (rows,) = np.nonzero(known)
    return rows, labels[rows]
