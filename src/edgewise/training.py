"""Fit a node classifier once. Every knob and its default is a field of Recipe, and nowhere else."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from edgewise.channels import directed_channels, undirected_channels
from edgewise.data.splits import Split
from edgewise.errors import EdgewiseError
from edgewise.features import compact_features
from edgewise.graph import Graph
from edgewise.models import Architecture, NodeModel

Progress = Callable[[int, float, float], None]  # epoch, training loss, validation loss


@dataclass(frozen=True)
class Recipe:
    """How to train one model; the defaults are the paper's for citation networks."""

    learning_rate: float = 0.005
    weight_decay: float = 0.0005  # on weights and attention, not on biases
    epochs: int = 1000  # an upper bound; early stopping usually ends sooner
    patience: int = 100  # epochs without a lower validation loss before stopping
    weighted: bool = False  # weigh classes by how rare they are in the training part
    seed: int = 0  # of the initial weights and of dropout


@dataclass(frozen=True, eq=False)
class Fit:
    """A trained model with its best weights, and what it says of every node."""

    model: NodeModel
    best_epoch: int
    epochs: int
    scores: Float[Tensor, "nodes classes"]

    def accuracy(self, y: Int[Tensor, " nodes"], rows: Int[Tensor, " rows"]) -> float:
        """The part of ``rows`` whose highest score is their class."""
        return float((self.scores[rows].argmax(1) == y[rows]).float().mean())


class NodeTrainer:
    """One model on one graph, an epoch at a time."""

    def __init__(
        self, graph: Graph, split: Split, architecture: Architecture, recipe: Recipe
    ) -> None:
        if graph.y is None or graph.y.is_floating_point():
            raise EdgewiseError("a node classifier needs class numbers in y; the graph has none")
        self.labels, self.split, self.recipe = graph.y, split, recipe
        self.x = compact_features(graph.x)
        encode = directed_channels if architecture.directed else undirected_channels
        edge_index, edge_attr = encode(graph.edge_index, graph.edge_attr)
        classes = int(graph.y.max()) + 1
        torch.manual_seed(recipe.seed)
        self.model = NodeModel(graph.num_features, classes, edge_attr.size(1), architecture)
        self.operators = self.model.operators(edge_index, edge_attr, graph.num_nodes)
        self.class_weight = None
        if recipe.weighted:
            self.class_weight = balanced_weights(graph.y[split.train], classes)
        self.optimizer = torch.optim.Adam(
            [
                {"params": self.model.weights(), "weight_decay": recipe.weight_decay},
                {"params": self.model.biases(), "weight_decay": 0.0},
            ],
            lr=recipe.learning_rate,
            fused=True,
        )

    def train_epoch(self, epoch: int) -> float:
        """One step on the whole graph; gives the training loss."""
        # Seeded by its number, so that an epoch draws the same whatever ran before it.
        torch.manual_seed(self.recipe.seed * 1_000_003 + epoch)
        self.model.train()
        self.optimizer.zero_grad()
        loss = self._loss(self.model.propagate(self.x, self.operators), self.split.train)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    @torch.no_grad()
    def evaluate(self) -> tuple[float, Float[Tensor, "nodes classes"]]:
        """The validation loss, and the scores of every node."""
        self.model.eval()
        scores = self.model.propagate(self.x, self.operators)
        return float(self._loss(scores, self.split.validation)), scores

    def _loss(self, scores: Tensor, rows: Tensor) -> Tensor:
        return cross_entropy(scores[rows], self.labels[rows], weight=self.class_weight)


def balanced_weights(labels: Int[Tensor, " rows"], classes: int) -> Float[Tensor, " classes"]:
    r"""The paper's class weights, :math:`\sum_k n_k / (K n_k)`; 0 for a class without examples."""
    counts = torch.bincount(labels, minlength=classes).float()
    weights = counts.sum() / (classes * counts)
    return weights.masked_fill(counts == 0, 0.0)


def fit_nodes(
    graph: Graph,
    split: Split,
    architecture: Architecture,
    recipe: Recipe | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Train until the validation loss has not fallen for ``patience`` epochs; keep the best."""
    recipe = recipe or Recipe()
    trainer = NodeTrainer(graph, split, architecture, recipe)
    best_loss, best_epoch, epoch = float("inf"), 0, 0
    best_weights = deepcopy(trainer.model.state_dict())
    for epoch in range(1, recipe.epochs + 1):
        training = trainer.train_epoch(epoch)
        validation, _ = trainer.evaluate()
        if progress is not None:
            progress(epoch, training, validation)
        if validation < best_loss:
            best_loss, best_epoch = validation, epoch
            best_weights = deepcopy(trainer.model.state_dict())
        elif epoch - best_epoch >= recipe.patience:
            break
    trainer.model.load_state_dict(best_weights)
    _, scores = trainer.evaluate()
    return Fit(trainer.model, best_epoch, epoch, scores)
