"""A row is a whole graph: today a molecule."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.registries import FEATURIZERS
from edgewise.core.settings import Settings
from edgewise.data.chemistry import MoleculeCodes, read_smiles
from edgewise.data.duplicates import duplicate_groups, duplicate_notices
from edgewise.data.featurizers import Featurizer, load_featurizer, pack
from edgewise.data.molecule_splits import scaffold_split, split_by_column, split_by_file
from edgewise.data.molecule_tables import MoleculeTable, left_out, read_structures, smiles_column
from edgewise.data.similarity import TrainingFingerprints, training_fingerprints
from edgewise.data.sources import Source
from edgewise.data.splits import Split
from edgewise.data.streams import Stretch, stream_table
from edgewise.graphs.batch import Batches
from edgewise.graphs.graph_set import GraphSet
from edgewise.nn.network import ChannelNetwork, Network
from edgewise.nn.readouts import GraphReadout
from edgewise.tasks.base import Columns, Prediction, Task
from edgewise.tasks.reading import find_task
from edgewise.units.base import Opened, Predicted, Predicts, Problem, Show, Tell, Unit, known_rows
from edgewise.units.splitting import drawn_split, is_file, split_seed
from edgewise.units.task_settings import refuse_task_settings


class GraphUnit(Unit):
    """Whole graphs, which are trained on in batches."""

    name, plural, estimator = "graph", "whole graphs", "Molecule"
    settings = frozenset({"head", "pooling", "batch_size"})
    id_column, error_view = "smiles", "structures"
    encoder_file = "featurizer.json"
    reference_file = "training-fingerprints.safetensors"

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        rows = source.read_molecules(settings.data)
        if not len(rows):
            raise EdgewiseError(f"{rows.table.path} has a header but no rows; add some")
        names = settings.data.target or rows.targets
        notes = []
        if not names:
            names = (_only_column(rows),)
            notes.append(f"predicting column {names[0]!r}, the only one beside the SMILES")
        task, truth = find_task(
            rows.table, tuple(names), settings.data.task, settings.data.categories
        )
        codes, invalid = read_structures(
            rows, on_invalid=settings.data.on_invalid, progress=progress
        )
        truth = truth[torch.from_numpy(codes.rows)]
        if invalid:
            notes.append(left_out(invalid, len(rows)))
        split = _split(settings, task, truth, rows, codes)
        problem = molecule_problem(codes, task, truth, split, settings)
        parts = {name: part.numpy() for name, part in problem.split.parts().items()}
        groups = duplicate_groups(codes)
        notices = duplicate_notices(groups, codes.smiles, parts, truth.numpy())
        return Opened(problem, (str(problem.data), *notes), invalid, tuple(notices))

    def network(self, features: int, outputs: int, channels: int, settings: Settings) -> Network:
        readout = GraphReadout(settings.model.pooling)
        # Both directions of a bond are there, so there is nothing to encode.
        return ChannelNetwork(
            features, outputs, channels, settings.model, readout=readout, direction="as_given"
        )

    def predicted(
        self,
        model: Predicts,
        source: Source,
        *,
        smiles_column: str = "",
        progress: Show | None = None,
        tell: Tell = lambda _: None,
    ) -> Iterator[Predicted]:
        good = bad = 0
        for stretch, size in _stretches(model, source):
            some = _predicted_stretch(model, stretch, smiles_column)
            good, bad = good + some.good, bad + some.bad
            yield some
            if progress is not None:
                progress(f"{good + bad:,} molecules", stretch.done, size)

    def evaluated(
        self,
        model: Predicts,
        source: Source,
        *,
        smiles_column: str = "",
        progress: Show | None = None,
        tell: Tell = lambda _: None,
    ) -> tuple[Prediction, np.ndarray]:
        named = replace(model.settings.data, smiles_column=smiles_column)
        rows = source.read_molecules(named, usual=model.settings.data.smiles_column)
        known = model.task.read(rows.table)
        codes, invalid = read_structures(rows, on_invalid="skip", progress=progress)
        if invalid:
            tell(left_out(invalid, len(rows)))
        device = find_device(model.settings.training.device)
        prediction = model.predict(self.as_data(codes, model.encoder, device))
        return prediction, known[torch.from_numpy(codes.rows)].numpy()

    def load_encoder(self, path: Path) -> Featurizer:
        return load_featurizer(path)

    def reference(self, problem: Problem) -> TrainingFingerprints | None:
        if not isinstance(problem.encoder, Featurizer):  # no molecules
            return None
        return training_fingerprints([problem.data.ids[row] for row in problem.split.train.tolist()])

    def load_reference(self, tensors: Mapping[str, Tensor]) -> TrainingFingerprints:
        return TrainingFingerprints(tensors["bits"].numpy())

    def distance_columns(self, reference: Any, data: Batches) -> Columns:
        if reference is None:
            return {}
        return {"distance": [f"{value:.4f}" for value in reference.distances(data.ids)]}

    def as_data(self, value: Any, encoder: Any, device: torch.device) -> GraphSet:
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = read_smiles(list(value))
        if isinstance(value, MoleculeCodes):
            value = pack(value, encoder)
        if not isinstance(value, GraphSet):
            raise EdgewiseError(
                f"the model predicts whole graphs, not {type(value).__name__}; give SMILES"
            )
        return replace(value, device=device)

    def are_molecules(self, problem: Problem) -> bool:
        return isinstance(problem.encoder, Featurizer)

    def row_columns(self, problem: Problem) -> Columns:
        assert isinstance(problem.data, GraphSet)
        rows = [str(row) for row in problem.data.rows.tolist()]
        return {"row": rows, "smiles": list(problem.data.ids)}

    def rows_of_file(self, problem: Problem, rows: Tensor) -> Tensor:
        assert isinstance(problem.data, GraphSet)
        return problem.data.rows[rows]


def molecule_problem(
    codes: MoleculeCodes, task: Task, truth: Tensor, split: Split, settings: Settings
) -> Problem:
    """Molecules that were read already; the featuriser is learnt from the training set alone."""
    if settings.model.directed:
        raise EdgewiseError("bonds have no direction; set directed = false for molecules")
    if settings.model.head == "layer":
        raise EdgewiseError(
            "head = layer gives outputs for nodes, not for graphs; set head = linear"
        )
    refuse_task_settings(task, settings)
    split = known_rows(split, task, truth)
    kind = FEATURIZERS[settings.model.featurizer]
    featurizer: Featurizer = kind.learn(codes, split.train.numpy(), settings.model)
    fitted = task.fitted(truth[split.train], settings.training)
    data = GRAPH.as_data(codes, featurizer, find_device(settings.training.device))
    return Problem(GRAPH, data, fitted, truth, split, settings, featurizer)


def _split(
    settings: Settings, task: Task, truth: Tensor, rows: MoleculeTable, codes: MoleculeCodes
) -> Split:
    if settings.split.split_column:
        return split_by_column(rows.table, settings.split.split_column, codes)
    if is_file(settings.split.split):
        return split_by_file(settings.split.split, codes)
    if settings.split.split == "scaffold":
        return scaffold_split(codes.smiles, seed=split_seed(settings))
    return drawn_split(settings, task, truth, others=("scaffold",))


def _only_column(rows: MoleculeTable) -> str:
    others = [
        name
        for name, cells in rows.table.columns.items()
        if tuple(cell.strip() for cell in cells) != rows.smiles
    ]
    if len(others) != 1:
        raise EdgewiseError(
            f"{rows.table.path}: name the column(s) to be predicted with --target; beside the "
            f"SMILES there are {preview(others, limit=12)}"
        )
    return others[0]


def _stretches(model: Predicts, source: Source) -> Iterator[tuple[Stretch, int | None]]:
    files = source.files()
    if not files:
        yield Stretch(source.read_molecules(model.settings.data).table, {}, 1), 1
        return
    size = files[0].stat().st_size
    data = model.settings.data
    for stretch in stream_table(
        files[0],
        encoding=data.encoding,
        decimal=data.decimal,
        missing_values=data.missing_values,
    ):
        yield stretch, size


def _predicted_stretch(model: Predicts, stretch: Stretch, named: str) -> Predicted:
    """The rows as they are, with predictions and errors behind them."""
    table, task = stretch.table, model.task
    column = smiles_column(table, named, model.settings.data.smiles_column)
    smiles = ["" if i in stretch.broken else cell for i, cell in enumerate(table.column(column))]
    codes = read_smiles(smiles)
    error = {row: reason for row, _, reason in codes.invalid} | stretch.broken
    data = GRAPH.as_data(codes, model.encoder, find_device(model.settings.training.device))
    prediction = model.predict(data)
    columns: Columns = {name: list(cells) for name, cells in table.columns.items()}
    predicted = task.predicted_columns(prediction)
    predicted |= GRAPH.distance_columns(model.reference, data)
    for name in (*predicted, "error"):
        if name in columns:
            raise EdgewiseError(
                f"{table.path} has a column {name!r} already, which the predictions need; rename it"
            )
    for name, cells in predicted.items():
        columns[name] = [""] * len(table)
        for row, cell in zip(codes.rows.tolist(), cells, strict=True):
            columns[name][row] = cell
    columns["error"] = [error.get(row, "") for row in range(len(table))]
    return Predicted(columns, len(codes), len(table) - len(codes))


GRAPH = GraphUnit()
