"""Run folders: train into one, resume it, predict and evaluate with it, compare several."""

from edgewise.runs.compare import compare
from edgewise.runs.evaluate import evaluate
from edgewise.runs.folder import Run, open_run, reopen
from edgewise.runs.predict import predict
from edgewise.runs.train import resume, train

__all__ = ["Run", "compare", "evaluate", "open_run", "predict", "reopen", "resume", "train"]
