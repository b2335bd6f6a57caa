"""Run folders: train into one, resume it, predict and evaluate with it, compare several."""

from edgewise.runs.compare import compare
from edgewise.runs.evaluate import evaluate
from edgewise.runs.folder import Run, open_run, reopen
from edgewise.runs.importing import import_graph
from edgewise.runs.predict import predict
from edgewise.runs.train import resume, train

__all__ = [
    "Run", "compare", "evaluate", "import_graph", "open_run", "predict", "reopen", "resume",
    "train",
]  # fmt: skip
