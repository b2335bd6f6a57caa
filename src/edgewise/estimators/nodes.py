"""Estimators for the nodes of one graph: X says which nodes, the graph says everything else."""

import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.estimators.base import Classifier, Estimator, Regressor, check_lengths, given_parts
from edgewise.estimators.parameters import setting_parameters
from edgewise.estimators.targets import Target, class_target, settled, value_target
from edgewise.graphs.graph import Graph
from edgewise.tasks.base import Prediction
from edgewise.units.node import node_problem

_OWN = {
    "graph": (None, "the edgewise.Graph that holds all nodes, those to be predicted too"),
    "validation_fraction": (
        0.2,
        "share of the nodes given to fit that is used for early stopping alone",
    ),
}

Some = TypeVar("Some", bound="NodeEstimator")


class NodeEstimator(Estimator):
    """Nodes of a graph that is given once, and shared by all clones."""

    _unit, _kind = "node", "Node"
    _source_settings = frozenset({"directed", "reciprocal"})
    graph: Any

    def __sklearn_clone__(self: Some) -> Some:
        bare = copy.copy(self)
        bare.graph = None
        fresh = super(NodeEstimator, bare).__sklearn_clone__()
        fresh.graph = self.graph  # frozen, and too large to be copied for every fold
        return fresh

    def fit(self: Some, X: Any = None, y: Any = None, validation: Any = None) -> Some:
        """Learn the labels of some nodes; no label of any other node is seen.

        Args:
            X: Node numbers, or node ids as words where the graph has ``node_ids``. None: all nodes.
            y: A label for each of them. Without X and y, those of the graph.
            validation: ``(X, y)`` of the nodes for early stopping. Without it, the share
                ``validation_fraction`` of X is used.
        """
        settings, graph = self._settings(), self._graph(None)
        if X is None and y is None:
            X, y = _labelled(graph)
        parts = given_parts(X, y, validation)
        nodes = [node_rows(X, graph) for X, _ in parts]
        for rows, (_, labels), where in zip(nodes, parts, ("X", "validation"), strict=False):
            check_lengths(len(rows), labels, where)
        every = torch.cat(nodes)
        _check_once(every)
        target = self._target_of(parts)
        # Labels come from y alone: those that the graph may have are not even looked at.
        truth = target.task.unknown_truth(graph.num_nodes).to(target.truth.dtype)
        truth[every] = target.truth.reshape(len(every), *truth.shape[1:])
        known = torch.zeros(graph.num_nodes, dtype=torch.bool)
        known[target.task.labelled_rows(truth)] = True
        train, *stop = (rows[known[rows]].sort().values for rows in nodes)
        seed = settings.training.seed
        split = self._split(target, train, stop[0] if stop else None, truth, seed)
        bare = replace(graph, y=None, class_names=None)
        problem, _ = node_problem(bare, target.task, truth, split, settings)
        return self._fit_problem(problem, target)

    def _graph(self, other: Any) -> Graph:
        graph = self.graph if other is None else other
        if isinstance(graph, Graph):
            return graph
        what = "missing" if graph is None else f"a {type(graph).__name__}"
        raise EdgewiseError(
            f"graph is {what}; give an edgewise.Graph (from_pyg, from_networkx and from_scipy make "
            f"one): {type(self).__name__}(graph=graph)"
        )

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
        return class_target(_one_label_each(y), names)

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
        return replace(value_target(_one_label_each(y), names), y_ndim=y.ndim)

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
    nodes = np.asarray(X).astype(object)
    if nodes.ndim == 2 and nodes.shape[1] == 1:
        nodes = nodes[:, 0]
    if nodes.ndim != 1:
        raise EdgewiseError(
            f"X has the shape {list(nodes.shape)}; give node numbers or ids, one for each row"
        )
    nodes = settled(nodes, "the nodes in X")
    if not len(nodes):
        return torch.zeros(0, dtype=torch.int64)
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
    if nodes.dtype.kind not in "iu":
        raise EdgewiseError(
            f"X holds {nodes.dtype}; give node numbers, whole and from 0, or node ids as words"
        )
    outside = nodes[(nodes < 0) | (nodes >= graph.num_nodes)].tolist()
    if outside:
        raise EdgewiseError(
            f"X names node(s) {preview(outside)}, but the graph has the nodes 0 to "
            f"{graph.num_nodes - 1}"
        )
    return torch.from_numpy(nodes.astype(np.int64))


def _labelled(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """The nodes whose label the graph knows, and the labels."""
    if graph.y is None:
        raise EdgewiseError("the graph has no y, and fit was given none; call fit(X, y)")
    y = graph.y.numpy()
    known = ~np.isnan(y) if graph.y.is_floating_point() else y >= 0
    labels = y if graph.class_names is None else np.array(graph.class_names)[y]
    (rows,) = np.nonzero(known)
    return rows, labels[rows]


def _one_label_each(y: np.ndarray) -> np.ndarray:
    if y.ndim == 2 and y.shape[1] != 1:
        raise EdgewiseError(
            f"y has {y.shape[1]} columns, but nodes have one target; fit one model for each"
        )
    return y.reshape(-1)


def _check_once(rows: Tensor) -> None:
    found, count = rows.unique(return_counts=True)
    if len(found) < len(rows):
        twice = preview(found[count > 1].tolist())
        raise EdgewiseError(
            f"node(s) {twice} are given more than once; name each node once, for training or for "
            "validation"
        )
