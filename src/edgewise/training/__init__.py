"""Train one model: what it is given, one epoch, and the way to the best weights."""

from edgewise.training.fitting import Epoch, Fitting, fit_member
from edgewise.training.inputs import (
    EVALUATION_BATCH,
    build_model,
    graph_inputs,
    molecule_outputs,
)
from edgewise.training.trainers import MoleculeTrainer, NodeTrainer, Trainer, make_trainer

__all__ = [
    "EVALUATION_BATCH",
    "Epoch",
    "Fitting",
    "MoleculeTrainer",
    "NodeTrainer",
    "Trainer",
    "build_model",
    "fit_member",
    "graph_inputs",
    "make_trainer",
    "molecule_outputs",
]
