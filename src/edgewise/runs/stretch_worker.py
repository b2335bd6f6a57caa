"""What a process has that predicts stretches of rows for another one."""

from pathlib import Path
from typing import Any

from edgewise.core.plugins import load_plugins
from edgewise.data.sources import Source
from edgewise.runs.stretch_messages import predicted_to_bytes, stretch_from_bytes
from edgewise.training.predictor import load_model
from edgewise.units.base import Asked


class StretchWorker:
    """A model that was saved, and how new rows are read.

    Args:
        folder: Of the model; it may be deleted afterwards.
        source: Data that are read row by row.
        smiles_column: Of them, if it is not that of the training.
        plugins: Files to be loaded first.
    """

    def __init__(
        self, folder: str | Path, source: Source, smiles_column: str, plugins: tuple[str, ...]
    ) -> None:
        load_plugins(plugins)
        self.model = load_model(folder)
        self.source, self.asked = source, Asked(smiles_column)

    def answer(self, content: Any) -> bytes:
        """The predictions for the rows of a message, as another one."""
        stretch, unit = stretch_from_bytes(content), self.model.unit
        return predicted_to_bytes(
            unit.predicted_stretch(self.model, self.source, stretch, self.asked)
        )
