"""What a process has that predicts stretches of rows for another one."""

import tempfile
from pathlib import Path
from typing import Any

from edgewise.core.plugins import load_plugins
from edgewise.data.sources import Source
from edgewise.runs.stretch_messages import predicted_to_bytes, stretch_from_bytes
from edgewise.training.predictor import Predictor, load_model
from edgewise.units.base import Asked


class StretchWorker:
    """A model that was sent, and how new rows are read.

    Args:
        files: From :func:`files_of`.
        source: Data that are read row by row.
        smiles_column: Of them, if it is not that of the training.
        plugins: Files to be loaded first.
    """

    def __init__(
        self, files: dict[str, bytes], source: Source, smiles_column: str, plugins: tuple[str, ...]
    ) -> None:
        load_plugins(plugins)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                Path(folder, name).write_bytes(content)
            self.model = load_model(folder)
        self.source, self.asked = source, Asked(smiles_column)

    def answer(self, content: Any) -> bytes:
        """The predictions for the rows of a message, as another one."""
        stretch, unit = stretch_from_bytes(content), self.model.unit
        return predicted_to_bytes(
            unit.predicted_stretch(self.model, self.source, stretch, self.asked)
        )


def files_of(model: Predictor) -> dict[str, bytes]:
    """The files of a saved model, which a process may find on no disk of its own."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}
