"""An estimator for links: which edges of a graph are missing, or will come."""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.estimators.base import Estimator
from edgewise.estimators.nodes import node_rows
from edgewise.estimators.parameters import setting_parameters
from edgewise.estimators.targets import Target
from edgewise.graphs.graph import Graph, single_precision
from edgewise.tasks.link import Link
from edgewise.units.link import link_pairs, link_problem, recommended, scores


@setting_parameters(
    validation_fraction=(0.1, "share of the edges that is used for early stopping alone"),
)
class LinkPredictor(Estimator):
    """Probabilities of edges between nodes of a graph.

    Attributes: ``graph_``, which it was fitted to; ``history_``; ``fitted_``.

    Example:
        >>> ring = torch.arange(12)
        >>> graph = Graph(torch.eye(12), torch.stack([ring, (ring + 1) % 12]))
        >>> model = LinkPredictor(epochs=2, hidden=8).fit(graph)
        >>> model.predict_proba([[0, 5], [5, 0]]).shape
        (2,)
    """

    _unit, _kind = "link", "Link"
    _source_settings = frozenset({"directed"})
    _role = "Predictor"
    graph_: Graph

    def fit(self, X: Any, y: Any = None) -> "LinkPredictor":
        """Learn from the edges of a graph.

        Args:
            X: An :class:`~edgewise.Graph` or :class:`~edgewise.MultiGraph`.
            y: Nothing; edges are their own labels.
        """
        settings, graph = self._settings(), _checked(X)
        links = link_pairs(graph.edge_index, directed=settings.model.directed)[0].size(1)
        target = Target(Link(("link",)), torch.ones(links, 1), 1)
        split = self._split(target, torch.arange(links), None, target.truth, settings.training.seed)
        self.graph_ = graph
        return self._fit_problem(link_problem(graph, settings, split), target)

    def predict_proba(self, X: Any, graph: Any = None) -> np.ndarray:
        """The probability of an edge from the first to the second node of each pair.

        Args:
            X: Pairs, ``[pairs, 2]``: node numbers, or ids where the graph has ``node_ids``.
            graph: Another graph with the same features and channels.
        """
        check_is_fitted(self, "fitted_")
        where = self._where(graph)
        pairs = np.asarray(X)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise EdgewiseError(
                f"X has the shape {list(pairs.shape)}; give pairs of nodes, [pairs, 2]"
            )
        return scores(self.fitted_, where, torch.stack([node_rows(end, where) for end in pairs.T]))

    def predict(self, X: Any, graph: Any = None) -> np.ndarray:
        """Whether an edge is likelier than none; arguments as in :meth:`predict_proba`."""
        return self.predict_proba(X, graph) > 0.5

    def recommend(self, X: Any, top: int = 10, graph: Any = None) -> list[np.ndarray]:
        """For each node of X the numbers of those it is likeliest to be joined to, best first."""
        check_is_fitted(self, "fitted_")
        where = self._where(graph)
        nodes: Tensor = node_rows(X, where)
        found = [recommended(self.fitted_, where, node, top) for node in nodes.tolist()]
        return [pairs[1].numpy() for pairs in found]

    def _where(self, graph: Any) -> Graph:
        if graph is None and not hasattr(self, "graph_"):
            raise EdgewiseError("a saved LinkPredictor has no graph; name it with graph=graph")
        return self.graph_ if graph is None else _checked(graph)


def _checked(graph: Any) -> Graph:
    if isinstance(graph, Graph):
        return single_precision(graph)
    raise EdgewiseError(
        f"X is a {type(graph).__name__}; give an edgewise.Graph (from_pyg, from_networkx and "
        "from_scipy make one)"
    )
