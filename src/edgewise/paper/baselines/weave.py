"""Weave, the second baseline of the paper's Table 3, in the training loop of every other model."""

from typing import Any

import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.recipe import Recipe
from edgewise.core.seeds import seeded
from edgewise.data.packed import MoleculeSet
from edgewise.paper.baselines.pair_features import pack_pairs
from edgewise.paper.baselines.weave_model import WeaveModel
from edgewise.problems import MoleculeProblem
from edgewise.training import EVALUATION_BATCH, Trainer

# For make_recipe("molecules", "paper", **WEAVE).
WEAVE: dict[str, Any] = {
    "hidden": 50,
    "depth": 2,
    "learning_rate": 0.001,
    "batch_size": 64,
    "epochs": 200,
    "patience": 50,
}


class WeaveTrainer(Trainer):
    """Shuffled batches of molecules with all their pairs of atoms."""

    def __init__(
        self,
        problem: MoleculeProblem,
        pairs: MoleculeSet,
        model: WeaveModel,
        recipe: Recipe,
        member: int,
        weight: Tensor | None,
    ) -> None:
        super().__init__(problem, model, recipe, member, weight)
        self.pairs = pairs

    def _pass(self) -> float:
        order = self.split.train[torch.randperm(len(self.split.train))]
        total = 0.0
        for rows in order.split(self.recipe.batch_size):
            total += len(rows) * self._step(self._outputs(rows), self.truth[rows])
        return total / len(order)

    def validation_outputs(self) -> Tensor:
        return self._evaluated(self.split.validation)

    def outputs(self) -> Tensor:
        return self._evaluated(torch.arange(len(self.pairs)))

    @torch.no_grad()
    def _evaluated(self, rows: Tensor) -> Tensor:
        self.model.eval()
        return torch.cat([self._outputs(part) for part in rows.split(EVALUATION_BATCH)])

    def _outputs(self, rows: Tensor) -> Tensor:
        b = self.pairs.batch(rows)
        return self.model(b.x, b.edge_index, b.edge_attr, b.graph, b.num_graphs)


def make_weave_trainer(
    problem: MoleculeProblem,
    recipe: Recipe,
    member: int = 0,
    *,
    pairs: MoleculeSet | None = None,
    pooling: str = "gaussian",
) -> WeaveTrainer:
    """A trainer with fresh weights, for :class:`~edgewise.training.Fitting`.

    Args:
        problem: Molecules with their truth and split.
        recipe: With :data:`WEAVE`. Of the architecture, ``hidden`` and ``depth`` are used.
        member: Members of an ensemble differ in their random numbers.
        pairs: The molecules from
            :func:`~edgewise.paper.baselines.pair_features.pack_pairs`, if they have been packed
            already; several trainers can share them.
        pooling: See :class:`~edgewise.paper.baselines.weave_model.WeaveModel`.
    """
    if pairs is None:
        pairs = pack_pairs(problem.molecules.smiles)
    if pairs.smiles != tuple(problem.molecules.smiles):
        raise EdgewiseError(
            f"the {len(pairs)} molecules with pairs are not the {len(problem.molecules)} of the "
            "problem; pack its own with pack_pairs(problem.molecules.smiles)"
        )
    task = problem.task
    weight = task.balance(problem.truth[problem.split.train]) if recipe.weighted else None
    with seeded(recipe.seed, member, 0):
        model = WeaveModel(
            pairs.x.size(1),
            pairs.edge_attr.size(1),
            task.width,
            depth=recipe.depth,
            hidden=recipe.hidden,
            pooling=pooling,
        )
    return WeaveTrainer(problem, pairs, model, recipe, member, weight)
