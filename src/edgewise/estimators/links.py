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
from edgewise.graphs.links import find_links
from edgewise.tasks.link import Link, link_task
from edgewise.units.link_problem import link_problem
from edgewise.units.link_scores import recommended, scores


@setting_parameters(
    validation_fraction=(0.1, "share of the edges that is used for early stopping alone"),
)
class LinkPredictor(Estimator):
    """Probabilities of edges between nodes of a graph.

    Attributes: ``graph_``, which it was fitted to; ``types_`` of its edges, where these were
    given; ``history_``; ``fitted_``.

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
    edge_types_: Tensor | None

    def fit(self, X: Any, y: Any = None) -> "LinkPredictor":
        """Learn from the edges of a graph.

        Args:
            X: An :class:`~edgewise.Graph` or :class:`~edgewise.MultiGraph`. To let messages know
                types as well, make them channels (:func:`~edgewise.one_hot_channels`).
            y: The type of each edge; without it, links have none.
        """
        settings, graph = self._settings(), _checked(X)
        task, types = _types(y, graph)
        directed = settings.model.directed
        links = find_links(
            graph.edge_index, directed=directed, types=types, num_types=len(task.types)
        )
        target = Target(task, links.truth, 1)
        every = torch.arange(len(links))
        split = self._split(target, every, None, target.truth, settings.training.seed)
        self.graph_, self.edge_types_ = graph, types
        problem = link_problem(graph, links, task, split, settings, types=types)
        return self._fit_problem(problem, target)

    @property
    def types_(self) -> tuple[str, ...]:
        """The types of links that were learnt."""
        check_is_fitted(self, "fitted_")
        return _task(self).types

    def predict_proba(self, X: Any, graph: Any = None) -> np.ndarray:
        """The probability of an edge from the first to the second node of each pair.

        Args:
            X: Pairs, ``[pairs, 2]``: node numbers, or ids where the graph has ``node_ids``.
            graph: Another graph with the same features and channels.
        """
        return self._scores(X, graph)[:, 0]

    def predict_type_proba(self, X: Any, graph: Any = None) -> np.ndarray:
        """The probability of an edge of each of ``types_``, ``[pairs, types]``.

        Arguments as in :meth:`predict_proba`.
        """
        found = self._scores(X, graph)
        if not self.types_:
            raise EdgewiseError("the links have no types; fit the model with y, that of each edge")
        return found[:, 1:]

    def _scores(self, X: Any, graph: Any) -> np.ndarray:
        check_is_fitted(self, "fitted_")
        where = self._where(graph)
        pairs = np.asarray(X)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise EdgewiseError(
                f"X has the shape {list(pairs.shape)}; give pairs of nodes, [pairs, 2]"
            )
        numbers = torch.stack([node_rows(end, where) for end in pairs.T])
        return scores(self.fitted_, where, numbers, self._edge_types(graph))

    def predict(self, X: Any, graph: Any = None) -> np.ndarray:
        """Whether an edge is likelier than none; arguments as in :meth:`predict_proba`."""
        return self.predict_proba(X, graph) > 0.5

    def recommend(self, X: Any, top: int = 10, graph: Any = None) -> list[np.ndarray]:
        """For each node of X the numbers of those it is likeliest to be joined to, best first.

        Where links have types, a node stands there once for each of them that is likely.
        """
        check_is_fitted(self, "fitted_")
        where = self._where(graph)
        nodes: list[int] = node_rows(X, where).tolist()
        found = recommended(self.fitted_, where, nodes, top, self._edge_types(graph))
        return [best.pairs[1].numpy() for best in found]

    def _edge_types(self, graph: Any) -> Tensor | None:
        return getattr(self, "edge_types_", None) if graph is None else None

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


def _task(model: LinkPredictor) -> Link:
    task = model.fitted_.task
    assert isinstance(task, Link)
    return task


def _types(y: Any, graph: Graph) -> tuple[Link, Tensor | None]:
    """The task, and the number of the type of each edge."""
    if y is None:
        return link_task(), None
    given = np.asarray(y)
    if given.shape != (graph.num_edges,):
        raise EdgewiseError(
            f"y has the shape {list(given.shape)}, but the graph has {graph.num_edges} edges; give "
            "the type of each, or nothing"
        )
    types, numbers = np.unique(given.astype(str), return_inverse=True)
    return link_task("type", tuple(types.tolist())), torch.from_numpy(numbers)
