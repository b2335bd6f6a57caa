"""Train one model: one epoch, and the way to the best weights; and what a trained model is."""

from edgewise.training.fitting import Epoch, Fitting, fit_member
from edgewise.training.predictor import Predictor, load_model, make_predictor
from edgewise.training.trainer import Trainer, make_trainer

__all__ = [
    "Epoch",
    "Fitting",
    "Predictor",
    "Trainer",
    "fit_member",
    "load_model",
    "make_predictor",
    "make_trainer",
]
