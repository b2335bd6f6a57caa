"""Compare what a trained model predicts with the truth."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.runs.folder import open_run, reopen
from edgewise.runs.new_data import model_and_data
from edgewise.runs.outputs import judged
from edgewise.tasks.metrics import Metrics
from edgewise.training.predictor import load_model
from edgewise.units.base import Asked, Show, Tell


def evaluate(
    folder: str | Path,
    data: Sequence[str] = (),
    progress: Show | None = None,
    *,
    smiles_column: str = "",
    encoding: str = "",
    device: str = "",
    tell: Tell = lambda _: None,
) -> Metrics:
    """Metrics of a model: on each part of its own data, or on other data with the truth in them.

    Args:
        folder: Of a run, or of a saved model.
        data: As for training; without it the data of the run.
        progress: Called with what is going on, how much is done and of how much.
        smiles_column: Of other molecules, if it is not that of the training.
        encoding: Of other text files, if it is not that of the training.
        device: Where to predict; without it as in training.
        tell: Called with what was changed in reading a graph, or left out of the molecules.
    """
    if not data:
        model = load_model(folder, device)
        problem = reopen(open_run(folder).on(device), progress).problem
        prediction, truth = model.predict(problem.data), problem.truth.numpy()
        return {
            name: judged(problem.task, prediction, truth, rows.numpy())
            for name, rows in problem.split.parts().items()
        }
    model, source = model_and_data(folder, data, smiles_column, encoding, device)
    prediction, truth = model.unit.evaluated(model, source, Asked(smiles_column, progress, tell))
    metrics = judged(model.task, prediction, truth, np.arange(len(truth)))
    if not metrics["rows"]:
        raise EdgewiseError(f"{source} holds no known target to compare with; fill its column")
    return metrics
