"""Estimators for the edges of one graph: X says which edges, the graph says everything else."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import Settings
from edgewise.data.edge_reader import ReadEdges
from edgewise.data.graph_reader import TableNotes
from edgewise.data.splits import Split
from edgewise.estimators.base import Classifier, Regressor
from edgewise.estimators.on_graph import RowsOfGraph, named_rows, number_rows, one_label_each
from edgewise.estimators.parameters import setting_parameters
from edgewise.estimators.targets import Target, class_target, value_target
from edgewise.graphs.edge_rows import EdgeRows
from edgewise.graphs.graph import Graph, single_precision
from edgewise.graphs.incident import port_numbers
from edgewise.tasks.base import Prediction, Task
from edgewise.units.base import Problem
from edgewise.units.edge_problem import edge_problem, edge_rows

_OWN = {
    "graph": (
        None,
        "the edgewise.MultiGraph (or Graph) that holds all edges, also those to predict",
    ),
    "validation_fraction": (
        0.2,
        "share of the edges given to fit that is used for early stopping alone",
    ),
}

Some = TypeVar("Some", bound="EdgeEstimator")


class EdgeEstimator(RowsOfGraph):
    """Edges of a graph."""

    _unit, _kind = "edge", "Edge"
    _source_settings = frozenset({"directed"})
    rows_: EdgeRows
    graph_: Graph  # that rows_ were made of

    def _count(self, graph: Graph) -> int:
        return graph.num_edges

    def _rows(self, X: Any, graph: Graph) -> Tensor:
        return edge_numbers(X, graph)

    def _known(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        raise EdgewiseError("edges of a graph have no labels of their own; call fit(X, y)")

    def _problem(
        self, graph: Graph, task: Task, truth: Tensor, split: Split, settings: Settings
    ) -> Problem:
        numbered = settings.model.ports and bool(_ports(graph, settings).any())
        self.graph_ = graph
        return edge_problem(_read(graph, settings, ports=numbered), task, truth, split, settings)

    def _decided(self, problem: Problem) -> Problem:
        problem = super()._decided(problem)
        assert isinstance(problem.data, EdgeRows)
        self.rows_ = problem.data
        return problem

    def _predicted(self, X: Any, graph: Any) -> np.ndarray:
        return self._prediction(X, graph).mean

    def _prediction(self, X: Any, graph: Any = None) -> Prediction:
        check_is_fitted(self, "fitted_")
        where, model = self._graph(graph), self.fitted_
        if getattr(self, "graph_", None) is where:
            data = self.rows_
        else:
            if model.settings.model.label_messages:
                raise EdgewiseError(
                    "with label_messages, edges are predicted from labels that fit was given, "
                    "which another graph or a saved estimator does not have; fit on this graph"
                )
            truth = model.task.unknown_truth(where.num_edges)
            numbered = model.settings.model.ports and model.channels > where.num_channels
            read = _read(where, model.settings, ports=numbered)
            data = edge_rows(read, model.task, truth, model.settings)
        return model.predict(data).of_rows(edge_numbers(X, where).numpy())


@setting_parameters(**_OWN)
class EdgeClassifier(Classifier, EdgeEstimator):
    """Classes of the edges of a graph, learnt from the edges whose class is known.

    ``X`` is an array of edge numbers, columns of ``graph.edge_index``, so that
    ``cross_val_score(EdgeClassifier(graph=graph), numpy.arange(edges), y)`` does what it says.
    Labels are words, integers or booleans. Parallel edges (:class:`~edgewise.MultiGraph`) are rows
    of their own; with ``label_messages=True`` edges are also predicted from the labels of others.

    Attributes: ``classes_``, sorted; ``history_``, the epochs of the first model; ``fitted_``.

    Example:
        >>> from edgewise import MultiGraph
        >>> pays = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]])
        >>> graph = MultiGraph(torch.ones(2, 1), pays, torch.tensor([[9.0], [8.0], [1.0], [2.0]]))
        >>> model = EdgeClassifier(graph=graph, epochs=40, dropout=0.0, validation_fraction=0)
        >>> model.fit([0, 2], ["large", "small"]).predict([1, 3])
        array(['large', 'small'], dtype='<U5')
    """

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        return class_target(one_label_each(y, "edge"), names)

    def predict(self, X: Any = None, graph: Any = None) -> np.ndarray:
        """The likeliest class of each edge of X, or of all.

        Args:
            X: As in :meth:`fit`.
            graph: Another graph with the same features and channels, instead of the first one.
        """
        return self._labels(self._predicted(X, graph))

    def predict_proba(self, X: Any = None, graph: Any = None) -> np.ndarray:
        """``[edges, classes]`` in the order of ``classes_``; arguments as in :meth:`predict`."""
        return self._predicted(X, graph)


@setting_parameters(**_OWN)
class EdgeRegressor(Regressor, EdgeEstimator):
    """Values of the edges of a graph, learnt from the edges whose value is known.

    ``X`` is an array of edge numbers, see :class:`EdgeClassifier`.

    Attributes: ``history_``, the epochs of the first model; ``fitted_``.
    """

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        return replace(value_target(one_label_each(y, "edge"), names), y_ndim=y.ndim)

    def predict(self, X: Any = None, graph: Any = None) -> np.ndarray:
        """The value of each edge of X, or of all; arguments as in :class:`EdgeClassifier`."""
        return self._values(self._predicted(X, graph))


def edge_numbers(X: Any, graph: Graph) -> Tensor:
    """Where the edges of X stand in the graph."""
    if X is None:
        return torch.arange(graph.num_edges)
    edges = named_rows(X, "edge", "edge numbers, columns of edge_index")
    return number_rows(edges, graph.num_edges, "edge")


def _ports(graph: Graph, settings: Settings) -> Tensor:
    directed = settings.model.directed
    return port_numbers(graph.edge_index, graph.num_nodes, directed=directed)


def _read(graph: Graph, settings: Settings, *, ports: bool) -> ReadEdges:
    """The edges of a graph as if they had been read from a table."""
    bare = replace(single_precision(graph), y=None, class_names=None)
    if ports:
        number = _ports(graph, settings).float().log1p().unsqueeze(1)
        numbered = torch.cat([bare.channels, number], dim=1)
        bare = replace(bare, edge_attr=numbered, channel_names=None)
    return ReadEdges(bare, torch.arange(bare.num_edges), None, None, TableNotes(0, 0, {}, 0))
