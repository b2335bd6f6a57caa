"""Data for a model that is trained already."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import Source, find_source
from edgewise.runs.folder import open_run
from edgewise.training.predictor import Predictor, load_model


def model_and_data(
    folder: str | Path, data: Sequence[str], smiles_column: str, encoding: str, device: str
) -> tuple[Predictor, Source]:
    """The model of a folder, reading text of this encoding, and data of the unit it predicts."""
    model = load_model(folder, device)
    if encoding:
        model = replace(model, settings=model.settings.changed(encoding=encoding))
    source = find_source(list(data), model.unit.name) if data else open_run(folder).source
    if model.unit.name not in (source.unit, *source.others):
        raise EdgewiseError(
            f"the model predicts {model.unit.plural}, but {source} is {source.described}; give "
            "data of the same kind"
        )
    if smiles_column and "smiles_column" not in source.settings:
        raise EdgewiseError(
            f"the setting smiles_column does not apply here: {source} is {source.described}; leave "
            "it out"
        )
    source.check_there()
    return model, source
