"""What the commands do, as functions: train, resume, predict, evaluate."""

from edgewise.jobs.evaluation import evaluate
from edgewise.jobs.prediction import predict
from edgewise.jobs.training import reserve_folder, resume, train

__all__ = ["evaluate", "predict", "reserve_folder", "resume", "train"]
