"""A row is a whole graph: a molecule, or a graph of tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.declarations import DataSettings
from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import Settings
from edgewise.data.chemistry import MoleculeCodes, read_smiles
from edgewise.data.featurizers import Featurizer, load_featurizer
from edgewise.data.graph_rows import GraphRows, GraphStretch, Structures
from edgewise.data.graph_set_reader import GraphSetReader, load_graph_set_reader
from edgewise.data.graphs_in_memory import graphs_in_memory
from edgewise.data.molecule_rows import Molecules
from edgewise.data.molecule_splits import split_by_column, split_by_file
from edgewise.data.molecule_tables import left_out
from edgewise.data.similarity import TrainingFingerprints, training_fingerprints
from edgewise.data.sources import Source
from edgewise.data.splits import Split
from edgewise.data.streams import Stretch
from edgewise.graphs.batch import Batches
from edgewise.graphs.channels import is_symmetric
from edgewise.graphs.graph_set import GraphSet
from edgewise.nn.network import ChannelNetwork, Network
from edgewise.nn.readouts import GraphReadout
from edgewise.tasks.base import Columns, Numbers, Prediction, Task
from edgewise.tasks.reading import find_task
from edgewise.units.base import (
    Asked,
    Opened,
    Predicted,
    Predicts,
    Problem,
    Show,
    Tell,
    Unit,
    known_rows,
)
from edgewise.units.direction import decide_direction
from edgewise.units.node_notices import columns_line, described_columns, target_columns
from edgewise.units.splitting import drawn_split, is_file, split_seed
from edgewise.units.task_settings import refuse_task_settings

_LOAD = {"featurizer.json": load_featurizer, GraphSetReader.file: load_graph_set_reader}


class GraphUnit(Unit):
    """Whole graphs, which are trained on in batches."""

    name, plural, estimator = "graph", "whole graphs", "Graph"
    settings = frozenset({"head", "pooling", "batch_size"})
    id_column, error_view = "graph", "graphs"
    encoder_file, encoder_files = "featurizer.json", tuple(_LOAD)
    reference_file = "training-fingerprints.safetensors"

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        rows = source.read_graphs(settings.data)
        if not len(rows.table):
            raise EdgewiseError(f"{rows.table.path} has a header but no rows; add some")
        names = settings.data.target or rows.targets
        told = []
        if not names:
            names = (_only_column(rows, settings.split.split_column),)
            told.append(f"predicting column {names[0]!r}, the only one beside {rows.named_by}")
        task, truth = find_task(
            rows.table, tuple(names), settings.data.task, settings.data.categories
        )
        structures, invalid = rows.structures(
            on_invalid=settings.data.on_invalid, progress=progress
        )
        truth = truth[torch.from_numpy(structures.rows)]
        if invalid:
            told.append(left_out(invalid, len(rows.table)))
        split = _split(settings, task, truth, rows, structures)
        problem, notes = graph_problem(structures, task, truth, split, settings)
        parts = {name: part.numpy() for name, part in problem.split.parts().items()}
        notices = structures.notices(problem.encoder, target_columns(task, truth), parts)
        return Opened(problem, (str(problem.data), *told, *notes), invalid, tuple(notices))

    def check_divisible(self, settings: Settings) -> None:
        """Every batch of graphs can be."""

    def network(self, features: int, outputs: int, channels: int, settings: Settings) -> Network:
        model = settings.model
        # Where nothing was decided, as for bonds, both directions are there and say the same.
        undecided = not model.directed and model.reciprocal == "auto"
        return ChannelNetwork(
            features,
            outputs,
            channels,
            model,
            readout=GraphReadout(model.pooling),
            direction="as_given" if undecided else "",
        )

    def predicted(self, model: Predicts, source: Source, asked: Asked) -> Iterator[Predicted]:
        data = model.settings.data
        named = replace(data, smiles_column=asked.smiles_column)
        for stretch in source.stream_graphs(named, usual=data.smiles_column):
            yield self._predicted_stretch(model, stretch, asked.tell)

    def stretches(self, settings: Settings, source: Source) -> Iterator[Stretch]:
        return source.stream_rows(settings.data)

    def predicted_stretch(
        self, model: Predicts, source: Source, stretch: Stretch, asked: Asked
    ) -> Predicted:
        data = model.settings.data
        named = replace(data, smiles_column=asked.smiles_column)
        read = source.read_stretch(stretch, named, usual=data.smiles_column)
        return self._predicted_stretch(model, read, asked.tell)

    def _predicted_stretch(self, model: Predicts, stretch: GraphStretch, tell: Tell) -> Predicted:
        """The rows as they are, with predictions and errors behind them."""
        table, structures = stretch.table, stretch.structures
        data = self._packed(structures, model, tell)
        prediction = model.predict(data)
        columns: Columns = {}
        predicted = model.task.predicted_columns(prediction)
        predicted |= self.distance_columns(model.reference, data)
        for name in (*predicted, *(["error"] if stretch.marked else [])):
            if name in table.columns:
                raise EdgewiseError(
                    f"{table.path} has a column {name!r} already, which the predictions need; "
                    "rename it"
                )
        for name, cells in predicted.items():
            columns[name] = type(cells)([""] * len(table))
            for row, cell in zip(structures.rows.tolist(), cells, strict=True):
                columns[name][row] = cell
        if stretch.marked:
            columns["error"] = [stretch.errors.get(row, "") for row in range(len(table))]
        bad = len(table) - len(structures)
        return Predicted(columns, len(structures), bad, table, stretch.done, stretch.size)

    def evaluated(
        self, model: Predicts, source: Source, asked: Asked
    ) -> tuple[Prediction, np.ndarray]:
        named = replace(model.settings.data, smiles_column=asked.smiles_column)
        rows = source.read_graphs(named, usual=model.settings.data.smiles_column)
        known = model.task.read(rows.table)
        structures, invalid = rows.structures(on_invalid="skip", progress=asked.progress)
        if invalid:
            asked.tell(left_out(invalid, len(rows.table)))
        prediction = model.predict(self._packed(structures, model, asked.tell))
        return prediction, known[torch.from_numpy(structures.rows)].numpy()

    def _packed(self, structures: Structures, model: Predicts, tell: Tell) -> GraphSet:
        data, notes = structures.packed(model.encoder)
        for note in notes:
            tell(note)
        return replace(data, device=find_device(model.settings.training.device))

    def load_encoder(self, path: Path) -> Any:
        return _LOAD[path.name](path)

    def estimator_of(self, encoder: Any) -> str:
        return "Molecule" if isinstance(encoder, Featurizer) else "Graph"

    def reference(self, problem: Problem) -> TrainingFingerprints | None:
        if not isinstance(problem.encoder, Featurizer):  # no molecules
            return None
        train = problem.split.train.tolist()
        return training_fingerprints([problem.data.ids[row] for row in train])

    def load_reference(self, tensors: Mapping[str, Tensor]) -> TrainingFingerprints:
        return TrainingFingerprints(tensors["bits"].numpy())

    def distance_columns(self, reference: Any, data: Batches) -> Columns:
        if reference is None:
            return {}
        return {"distance": Numbers(f"{value:.4f}" for value in reference.distances(data.ids))}

    def as_data(self, value: Any, encoder: Any, device: torch.device) -> GraphSet:
        if isinstance(value, Sequence) and not isinstance(value, str):
            names = encoder.names if isinstance(encoder, GraphSetReader) else DataSettings()
            words = all(isinstance(item, str) for item in value)
            value = read_smiles(list(value)) if words else graphs_in_memory(value, names)
        if isinstance(value, MoleculeCodes):
            value = Molecules(value)
        if isinstance(value, Structures):
            value, _ = value.packed(encoder)
        if not isinstance(value, GraphSet):
            raise EdgewiseError(
                f"the model predicts whole graphs, not {type(value).__name__}; give a list of "
                "SMILES or of graphs, as in training"
            )
        return replace(value, device=device)

    def are_molecules(self, problem: Problem) -> bool:
        return isinstance(problem.encoder, Featurizer)

    def described_columns(self, problem: Problem) -> list[str]:
        reader = problem.encoder
        return described_columns(reader.columns) if isinstance(reader, GraphSetReader) else []

    def summarised_columns(self, problem: Problem) -> str:
        reader = problem.encoder
        return columns_line(reader.columns) if isinstance(reader, GraphSetReader) else ""

    def row_columns(self, problem: Problem, rows: slice) -> Columns:
        assert isinstance(problem.data, GraphSet)
        numbers = [str(row) for row in problem.data.rows[rows].tolist()]
        return {"row": numbers, problem.data.id_name: list(problem.data.ids[rows])}

    def rows_of_file(self, problem: Problem, rows: Tensor) -> Tensor:
        assert isinstance(problem.data, GraphSet)
        return problem.data.rows[rows]


def graph_problem(
    structures: Structures, task: Task, truth: Tensor, split: Split, settings: Settings
) -> tuple[Problem, tuple[str, ...]]:
    """Graphs that were read already, and what was decided or changed in learning their columns.

    What there is to learn about columns or atoms is learnt from the training graphs.
    """
    if settings.model.directed and not structures.has_direction:
        raise EdgewiseError("bonds have no direction; set directed = false for molecules")
    if settings.model.head == "layer":
        raise EdgewiseError(
            "head = layer gives outputs for nodes, not for graphs; set head = linear"
        )
    refuse_task_settings(task, settings)
    split = known_rows(split, task, truth)
    encoder = structures.learn(split.train.numpy(), settings)
    fitted = task.fitted(truth[split.train], settings.training)
    data, notes = structures.packed(encoder)
    if structures.has_direction:
        every = data.every_edge
        symmetric = is_symmetric(every.edge_index, every.edge_attr)
        settings, decided = decide_direction(
            settings, symmetric=symmetric, edges=every.edge_index.size(1)
        )
        notes = (*notes, *decided)
    data = replace(data, device=find_device(settings.training.device))
    return Problem(GRAPH, data, fitted, truth, split, settings, encoder), notes


def molecule_problem(
    codes: MoleculeCodes, task: Task, truth: Tensor, split: Split, settings: Settings
) -> Problem:
    """Molecules that were read already."""
    return graph_problem(Molecules(codes), task, truth, split, settings)[0]


def _split(
    settings: Settings, task: Task, truth: Tensor, rows: GraphRows, structures: Structures
) -> Split:
    wanted = settings.split
    if wanted.split_column:
        return split_by_column(rows.table, wanted.split_column, structures.rows)
    if is_file(wanted.split):
        return split_by_file(wanted.split, structures.rows, len(rows.table))
    grouped = structures.grouped_split(wanted.split, split_seed(settings))
    if grouped is not None:
        if wanted.stratify:
            raise EdgewiseError(
                f"split = {wanted.split} keeps molecules together and cannot be balanced; set "
                "stratify = false"
            )
        return grouped
    return drawn_split(settings, task, truth, others=structures.splits)


def _only_column(rows: GraphRows, split_column: str) -> str:
    others = [name for name in rows.other_columns() if name != split_column]
    if len(others) != 1:
        raise EdgewiseError(
            f"{rows.table.path}: name the column(s) to be predicted with --target; beside "
            f"{rows.named_by} there are {preview(others, limit=12)}"
        )
    return others[0]


GRAPH = GraphUnit()
