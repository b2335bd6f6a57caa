"""One epoch of one model: a trainer for the nodes of a graph, and one for molecules."""

import torch
from torch import Tensor

from edgewise.core.recipe import Recipe
from edgewise.core.seeds import seeded
from edgewise.nn.networks import GraphModel, Network, NodeModel
from edgewise.problems import MoleculeProblem, NodeProblem, Problem
from edgewise.training.inputs import (
    build_model,
    graph_inputs,
    molecule_operator,
    molecule_outputs,
    propagate_batch,
)


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
