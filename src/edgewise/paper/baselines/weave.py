"""Weave, the second baseline of the paper's Table 3, in the training loop of every other model."""

from dataclasses import replace
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.seeds import seeded
from edgewise.graphs.graph_set import GraphSet
from edgewise.paper.baselines.pair_features import pack_pairs
from edgewise.paper.baselines.weave_model import WeaveModel
from edgewise.training.trainer import Trainer
from edgewise.units.base import Problem

# Changes in the paper's settings for molecules.
WEAVE: dict[str, Any] = {
    "hidden": 50,
    "depth": 2,
    "learning_rate": 0.001,
    "batch_size": 64,
    "epochs": 200,
    "patience": 50,
}


def make_weave_trainer(
    problem: Problem,
    member: int = 0,
    *,
    pairs: GraphSet | None = None,
    pooling: str = "gaussian",
) -> Trainer:
    """A trainer with fresh weights, for :class:`~edgewise.training.Fitting`.

    Args:
        problem: Molecules with their truth and split, and settings with :data:`WEAVE`. Of the
            model's, ``hidden`` and ``depth`` are used.
        member: Members of an ensemble differ in their random numbers.
        pairs: The molecules from
            :func:`~edgewise.paper.baselines.pair_features.pack_pairs`, if they have been packed
            already; several trainers can share them.
        pooling: See :class:`~edgewise.paper.baselines.weave_model.WeaveModel`.
    """
    if pairs is None:
        pairs = pack_pairs(problem.data.ids)
    if pairs.ids != tuple(problem.data.ids):
        raise EdgewiseError(
            f"the {len(pairs)} molecules with pairs are not the {len(problem.data)} of the "
            "problem; pack its own with pack_pairs(problem.data.ids)"
        )
    settings = problem.settings
    with seeded(settings.training.seed, member, 0):
        model = WeaveModel(
            pairs.num_features,
            pairs.num_channels,
            problem.task.width,
            depth=settings.model.depth,
            hidden=settings.model.hidden,
            pooling=pooling,
        )
    return Trainer(replace(problem, data=pairs), model, member)
