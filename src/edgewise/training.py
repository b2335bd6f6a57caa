"""Train one model, an epoch at a time, so that it can be stopped and continued anywhere."""

import math
from dataclasses import astuple, dataclass

import torch
from torch import Tensor

from edgewise.channels import directed_channels, undirected_channels
from edgewise.data.packed import MoleculeSet
from edgewise.errors import EdgewiseError
from edgewise.features import compact_features
from edgewise.graph import Graph
from edgewise.layers import Features
from edgewise.metrics import headline
from edgewise.models import GraphModel, Network, NodeModel
from edgewise.operators import Operator, cut, without_lone_loops
from edgewise.problems import MoleculeProblem, NodeProblem, Problem
from edgewise.recipe import Architecture, Recipe
from edgewise.seeds import seeded

EVALUATION_BATCH = 256  # molecules at a time where no gradient is needed
# Atoms times channels up to which a set's operators are kept. Attention on Tox21, 5.2 million of
# them, holds 0.7 GiB.
MOST_ROWS = 8_000_000


@dataclass(frozen=True)
class Epoch:
    """One line of a run's history. NaN stands for what was not measured."""

    number: int
    train_loss: float
    validation_loss: float
    validation_score: float  # the task's headline metric


def build_model(kind: str, features: int, outputs: int, channels: int, recipe: Recipe) -> Network:
    """The network of a recipe for ``"nodes"`` or ``"molecules"``, with fresh weights."""
    if kind == "nodes":
        width = channels * (3 if recipe.directed else 1)
        return NodeModel(features, outputs, width, recipe)
    return GraphModel(features, outputs, channels, recipe, pooling=recipe.pooling)


def graph_inputs(
    graph: Graph, architecture: Architecture, model: NodeModel
) -> tuple[Features, list[Operator]]:
    """Features and operators of a graph, as a model propagates them."""
    encode = directed_channels if architecture.directed else undirected_channels
    edge_index, edge_attr = encode(graph.edge_index, graph.edge_attr)
    return compact_features(graph.x), model.operators(edge_index, edge_attr, graph.num_nodes)


def molecule_operator(model: GraphModel, molecules: MoleculeSet) -> Operator | None:
    """The operator of all molecules at once, to cut batches from; None if they are too many."""
    if len(molecules.x) * model.edge_channels > MOST_ROWS:
        return None
    b = molecules.batch(torch.arange(len(molecules)))
    operator, *_ = model.operators(b.edge_index, b.edge_attr, len(b.x))  # all layers share it
    return operator if model.architecture.dropout > 0 else without_lone_loops(operator)


def propagate_batch(
    model: GraphModel, molecules: MoleculeSet, rows: Tensor, operator: Operator | None
) -> Tensor:
    """The outputs of a model for one batch, along the operator of :func:`molecule_operator`."""
    b = molecules.batch(rows)
    if operator is None:
        return model(b.x, b.edge_index, b.edge_attr, b.graph, b.num_graphs)
    edges = cut(operator, molecules.node_offset, rows)
    return model.propagate(b.x, [edges] * len(model.layers), b.graph, b.num_graphs)


@torch.no_grad()
def molecule_outputs(
    model: GraphModel,
    molecules: MoleculeSet,
    rows: Tensor,
    operator: Operator | None = None,
) -> Tensor:
    """The outputs of a model for some molecules, in their order."""
    model.eval()
    parts = [
        propagate_batch(model, molecules, chosen, operator)
        for chosen in (rows.split(EVALUATION_BATCH) if len(rows) else ())
    ]
    return torch.cat(parts) if parts else torch.zeros(0, model.head.out_features)


class Trainer:
    """One model and its optimiser on one problem; the two kinds of problem fill in the rest."""

    def __init__(
        self, problem: Problem, model: Network, recipe: Recipe, member: int, weight: Tensor | None
    ) -> None:
        self.task, self.split, self.truth = problem.task, problem.split, problem.truth
        self.model, self.recipe, self.member, self.weight = model, recipe, member, weight
        self.optimizer = torch.optim.Adam(
            [
                {"params": model.weights(), "weight_decay": recipe.weight_decay},
                {"params": model.biases(), "weight_decay": 0.0},
            ],
            lr=recipe.learning_rate,
            fused=True,
        )

    def train_epoch(self, epoch: int) -> float:
        """Go over the training rows once; gives the training loss."""
        # Seeded by its number, so that an epoch draws the same whatever ran before it.
        with seeded(self.recipe.seed, self.member, epoch):
            self.model.train()
            return self._pass()

    def _pass(self) -> float:
        raise NotImplementedError

    def _step(self, outputs: Tensor, truth: Tensor) -> float:
        loss = self.task.loss(outputs, truth, self.weight)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def validation_outputs(self) -> Tensor:
        """Outputs of the validation rows."""
        raise NotImplementedError

    def outputs(self) -> Tensor:
        """Outputs of all rows."""
        raise NotImplementedError


class NodeTrainer(Trainer):
    """A step on the whole graph is an epoch."""

    def __init__(
        self,
        problem: NodeProblem,
        model: NodeModel,
        recipe: Recipe,
        member: int,
        weight: Tensor | None,
        like: "NodeTrainer | None",
    ) -> None:
        super().__init__(problem, model, recipe, member, weight)
        self.nodes = model
        if like is None:
            self.x, self.operators = graph_inputs(problem.graph, recipe, model)
        else:
            self.x, self.operators = like.x, like.operators
        self.train_truth = self.truth[self.split.train]

    def _pass(self) -> float:
        outputs = self.nodes.propagate(self.x, self.operators)
        return self._step(outputs[self.split.train], self.train_truth)

    def validation_outputs(self) -> Tensor:
        return self.outputs()[self.split.validation]

    @torch.no_grad()
    def outputs(self) -> Tensor:
        self.nodes.eval()
        return self.nodes.propagate(self.x, self.operators)


class MoleculeTrainer(Trainer):
    """Shuffled batches of molecules."""

    def __init__(
        self,
        problem: MoleculeProblem,
        model: GraphModel,
        recipe: Recipe,
        member: int,
        weight: Tensor | None,
        like: "MoleculeTrainer | None",
    ) -> None:
        super().__init__(problem, model, recipe, member, weight)
        self.graphs, self.molecules = model, problem.molecules
        if like is None:
            self.operator = molecule_operator(model, problem.molecules)
        else:
            self.operator = like.operator

    def _pass(self) -> float:
        order = self.split.train[torch.randperm(len(self.split.train))]
        total = 0.0
        for rows in order.split(self.recipe.batch_size):
            outputs = propagate_batch(self.graphs, self.molecules, rows, self.operator)
            total += len(rows) * self._step(outputs, self.truth[rows])
        return total / len(order)

    def validation_outputs(self) -> Tensor:
        return self._outputs_of(self.split.validation)

    def outputs(self) -> Tensor:
        return self._outputs_of(torch.arange(len(self.molecules)))

    def _outputs_of(self, rows: Tensor) -> Tensor:
        return molecule_outputs(self.graphs, self.molecules, rows, self.operator)


def make_trainer(
    problem: Problem, recipe: Recipe, member: int = 0, like: Trainer | None = None
) -> Trainer:
    """A trainer with fresh weights.

    Args:
        problem: What is to be learnt.
        recipe: How.
        member: Members of an ensemble differ in their random numbers.
        like: Another trainer of this problem and recipe, to share its edges with.
    """
    task = problem.task
    weight = task.balance(problem.truth[problem.split.train]) if recipe.weighted else None
    if isinstance(problem, NodeProblem):
        graph = problem.graph
        with seeded(recipe.seed, member, 0):
            model = build_model("nodes", graph.num_features, task.width, graph.num_channels, recipe)
        assert isinstance(model, NodeModel)
        assert like is None or isinstance(like, NodeTrainer)
        return NodeTrainer(problem, model, recipe, member, weight, like)
    molecules = problem.molecules
    features, channels = molecules.x.size(1), molecules.edge_attr.size(1)
    with seeded(recipe.seed, member, 0):
        model = build_model("molecules", features, task.width, channels, recipe)
    assert isinstance(model, GraphModel)
    assert like is None or isinstance(like, MoleculeTrainer)
    return MoleculeTrainer(problem, model, recipe, member, weight, like)


class Fitting:
    """A model on its way: history and best weights so far, and all of it as tensors."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.recipe = trainer, trainer.recipe
        self.history: list[Epoch] = []
        self.best_weights = self._weights()

    @property
    def best(self) -> Epoch | None:
        """The epoch whose weights count: of the lowest validation loss, or the last one."""
        if not len(self.trainer.split.validation):
            return self.history[-1] if self.history else None
        return min(self.history, key=lambda epoch: epoch.validation_loss, default=None)

    @property
    def done(self) -> bool:
        """Whether the epochs are used up, or nothing got better for ``patience`` of them."""
        best, count = self.best, len(self.history)
        if best is None or count < self.recipe.epochs:
            return best is not None and count - best.number >= self.recipe.patience
        return True

    def step(self) -> Epoch:
        """Train one more epoch and validate."""
        number = len(self.history) + 1
        train_loss = self.trainer.train_epoch(number)
        loss, validation_score = self._validated()
        validated = len(self.trainer.split.validation) > 0
        if not math.isfinite(train_loss) or (validated and not math.isfinite(loss)):
            raise EdgewiseError(
                f"training went astray in epoch {number} (loss {train_loss}); lower the "
                f"learning_rate, which is {self.recipe.learning_rate:g}"
            )
        epoch = Epoch(number, train_loss, loss, validation_score)
        self.history.append(epoch)
        if self.best is epoch:
            self.best_weights = self._weights()
        return epoch

    def _validated(self) -> tuple[float, float]:
        task, rows = self.trainer.task, self.trainer.split.validation
        if not len(rows):
            return math.nan, math.nan
        outputs, truth = self.trainer.validation_outputs(), self.trainer.truth[rows]
        # Weighed like the training loss, for it decides about the same thing.
        loss = float(task.loss(outputs, truth, self.trainer.weight))
        return loss, headline(task, task.meaning(outputs).numpy(), truth.numpy())

    def _weights(self) -> dict[str, Tensor]:
        return {k: v.detach().clone() for k, v in self.trainer.model.state_dict().items()}

    def restore_best(self) -> None:
        """Put the best weights into the model."""
        self.trainer.model.load_state_dict(self.best_weights)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that the next epoch depends on."""
        lines = [astuple(epoch) for epoch in self.history]
        state = self.trainer.optimizer.state_dict()["state"]
        return {
            "history": torch.tensor(lines, dtype=torch.float64).reshape(-1, 4),
            **{f"model.{k}": v for k, v in self._weights().items()},
            **{f"best.{k}": v for k, v in self.best_weights.items()},
            **{f"adam.{i}.{k}": v for i, slots in state.items() for k, v in slots.items()},
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue where :meth:`tensors` was taken."""
        self.history = [Epoch(int(n), *rest) for n, *rest in tensors["history"].tolist()]
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            if part in parts:
                parts[part][rest] = tensor
        self.trainer.model.load_state_dict(parts["model"])
        self.best_weights = parts["best"]
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in parts["adam"].items():
            index, _, slot = name.partition(".")
            state.setdefault(int(index), {})[slot] = tensor
        optimizer = self.trainer.optimizer
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def fit_member(problem: Problem, recipe: Recipe, member: int = 0) -> Fitting:
    """Train one model to its end; its best weights are in place."""
    fitting = Fitting(make_trainer(problem, recipe, member))
    while not fitting.done:
        fitting.step()
    fitting.restore_best()
    return fitting
