"""A row is a node of one graph."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import IMPORT_SETTINGS, Settings
from edgewise.data.graph_reader import GraphReader, load_graph_reader
from edgewise.data.graph_store import GraphStore
from edgewise.data.source import without_rows_of_edges
from edgewise.data.sources import GraphInput, Source
from edgewise.data.splits import Split
from edgewise.data.store_files import checksum_of_rows
from edgewise.graphs.array_graph import ArrayGraph
from edgewise.graphs.channels import is_symmetric
from edgewise.graphs.graph import Graph, single_precision
from edgewise.graphs.sampled_graph import SampledGraph
from edgewise.graphs.whole_graph import WholeGraph
from edgewise.nn.network import ChannelNetwork, Network
from edgewise.tasks.base import Prediction, Task
from edgewise.tasks.prediction import stretches
from edgewise.tasks.reading import find_label_task, find_task, guessed_target, table_truth
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
    required_truth,
)
from edgewise.units.direction import decide_direction
from edgewise.units.fan_outs import fan_outs, refuse_undivided
from edgewise.units.imported_tables import ImportedTables
from edgewise.units.node_import import import_nodes
from edgewise.units.node_notices import (
    columns_line,
    described_columns,
    graph_notices,
    table_notices,
)
from edgewise.units.node_tables import learnt_reader, node_split
from edgewise.units.stored_columns import check_columns
from edgewise.units.task_settings import refuse_task_settings


class NodeUnit(Unit):
    """Nodes of one graph, which is trained on whole, or by sampled neighbours."""

    name, plural, estimator = "node", "nodes", "Node"
    settings = frozenset({"head", "incident", "regime", "neighbors", "batch_size"})
    not_searched = frozenset({"batch_size"})
    encoder_file = "reader.json"
    import_settings = IMPORT_SETTINGS - {"directed", "time_column", "label_columns", "ports"}

    def import_tables(self, tables: ImportedTables) -> None:
        import_nodes(tables)

    def open(self, source: Source, settings: Settings, progress: Show | None = None) -> Opened:
        found = without_rows_of_edges(source.read_graph(settings.data))
        if found.store is not None:
            return self._open_store(found.store, settings)
        if found.graph is None:
            return self._open_tables(found, settings)
        graph = single_precision(found.graph)
        if graph.y is None:
            raise EdgewiseError("the graph has no labels to learn from; save it with y")
        task, truth = find_label_task(found.label, graph.y, graph.class_names, settings.data.task)
        split = node_split(settings, task, truth, None)
        problem, notes = node_problem(graph, task, truth, split, settings)
        notices = graph_notices(graph, task, truth)
        told = (str(graph), *_rounded(found.graph, graph), *found.notes, *notes)
        return Opened(problem, told, notices=notices)

    def _open_tables(self, found: GraphInput, settings: Settings) -> Opened:
        nodes, edges = found.nodes, found.edges
        assert nodes is not None
        assert edges is not None
        notes: list[str] = []
        names = settings.data.target or (guessed_target(nodes),)
        if not settings.data.target:
            notes.append(f"predicting column {names[0]!r}, because of its name")
        task, truth = find_task(nodes, names, settings.data.task, settings.data.categories)
        split = known_rows(node_split(settings, task, truth, nodes), task, truth)
        reader = learnt_reader(found, names, settings, split)
        graph, read = reader.read(nodes, edges)
        unlabelled = len(truth) - len(task.labelled_rows(truth))
        notes.append(str(replace(read, unlabelled=unlabelled)))
        problem, decided = node_problem(graph, task, truth, split, settings, reader)
        notices = table_notices(nodes, edges, reader, task, truth)
        return Opened(problem, (str(graph), *notes, *decided), notices=notices)

    def _open_store(self, store: GraphStore, settings: Settings) -> Opened:
        info, nodes = store.info, store.nodes
        names = settings.data.target or info.targets
        absent = [name for name in names if name not in info.targets]
        if absent or not names:
            raise EdgewiseError(
                f"{store.folder} was imported with the target(s) {preview(info.targets)}"
                f"{f', not {preview(absent)}' if absent else ''}; import the tables again with "
                "--target"
            )
        task, truth = find_task(nodes, names, settings.data.task, info.categories)
        split = known_rows(node_split(settings, task, truth, nodes), task, truth)
        graph = _stored(store, settings)
        problem, decided = node_problem(
            graph, task, truth, split, settings, info.reader, store.node_names
        )
        unlabelled = len(truth) - len(task.labelled_rows(truth))
        notes = (str(graph), str(replace(info.notes, unlabelled=unlabelled)), *decided)
        notices: list[str] = []
        if isinstance(graph, Graph):  # what is larger is not searched for leaks
            notices += graph_notices(graph, task, truth, info.features)
        if info.learnt_rows and info.learnt_rows != checksum_of_rows(split.train.numpy()):
            notices.append(
                f"the columns of {store.folder} were learnt from other rows than these training "
                f"rows ({info.learnt_by}), perhaps from test rows of this split; import the tables "
                "again with this split"
            )
        return Opened(problem, notes, notices=tuple(notices))

    def takes(self, settings: Settings) -> frozenset[str]:
        # Of a whole graph, a step is an epoch.
        return self.settings - (frozenset() if settings.training.neighbors else {"batch_size"})

    def check_divisible(self, settings: Settings) -> None:
        refuse_undivided(settings)

    def network(self, features: int, outputs: int, channels: int, settings: Settings) -> Network:
        model = settings.model
        # What training left open is a model of version 0.1, which looked at each graph anew.
        undecided = not model.directed and model.reciprocal == "auto"
        direction = "by_symmetry" if undecided else ""
        return ChannelNetwork(features, outputs, channels, model, direction=direction)

    def predicted(self, model: Predicts, source: Source, asked: Asked) -> Iterator[Predicted]:
        data, truth = self._read(model, source, asked.tell)
        prediction, task = model.predict(data), model.task
        if isinstance(truth, EdgewiseError):
            asked.tell(f"written without the truth beside the predictions: {truth}")
        for rows in stretches(len(data)):
            some = prediction.of_rows(rows)
            columns = (
                task.compared_columns(some, truth[rows].numpy())
                if isinstance(truth, Tensor)
                else task.predicted_columns(some)
            )
            ids = list(data.ids[rows])
            yield Predicted({"id": ids, **columns}, len(ids))

    def evaluated(
        self, model: Predicts, source: Source, asked: Asked
    ) -> tuple[Prediction, np.ndarray]:
        data, truth = self._read(model, source, asked.tell)
        return model.predict(data), required_truth(truth, source, model.task).numpy()

    def _read(
        self, model: Predicts, source: Source, tell: Tell
    ) -> tuple[WholeGraph | SampledGraph, Tensor | EdgewiseError | None]:
        """A graph as the model reads it, and its truth, the reason why not, or nothing."""
        found = without_rows_of_edges(source.read_graph(model.settings.data))
        task = model.task
        if found.store is not None:
            check_columns(model.encoder, found.store)
            graph = _stored(found.store, model.settings)
            data = node_data(graph, model.settings, found.store.node_names)
            return data, table_truth(task, found.store.nodes)
        if found.graph is not None:
            graph = single_precision(found.graph)
            data = node_data(graph, model.settings)
            if graph.y is None:
                return data, None
            try:
                return data, task.read_labels(graph.y, graph.class_names)
            except EdgewiseError as error:
                return data, error
        if model.encoder is None:
            raise EdgewiseError(
                "this model was not trained on tables, so it cannot read them; give a data set's "
                "name or a .safetensors graph with the same columns"
            )
        assert found.nodes is not None
        assert found.edges is not None
        graph, notes = model.encoder.read(found.nodes, found.edges)
        if notes.changed:
            tell(notes.changes)
        return node_data(graph, model.settings), table_truth(task, found.nodes)

    def described_columns(self, problem: Problem) -> list[str]:
        reader = problem.encoder
        return described_columns(reader) if isinstance(reader, GraphReader) else []

    def summarised_columns(self, problem: Problem) -> str:
        reader = problem.encoder
        return columns_line(reader) if isinstance(reader, GraphReader) else ""

    def load_encoder(self, path: Path) -> GraphReader | None:
        # The labels that version 0.1 kept there are the task's today.
        return replace(load_graph_reader(path), labels=None) if path.exists() else None

    def as_data(self, value: Any, encoder: Any, device: torch.device) -> WholeGraph | SampledGraph:
        if isinstance(value, ArrayGraph):
            return SampledGraph(value, device=device)
        if not isinstance(value, Graph):
            raise EdgewiseError(
                f"the model predicts nodes of a graph, not {type(value).__name__}; give an "
                "edgewise.Graph"
            )
        return WholeGraph(value, device)


def node_problem(
    graph: Graph | ArrayGraph,
    task: Task,
    truth: Tensor,
    split: Split,
    settings: Settings,
    encoder: GraphReader | None = None,
    node_ids: Sequence[str] | None = None,
) -> tuple[Problem, tuple[str, ...]]:
    """Nodes of a graph that is there already, and what was decided by looking at it.

    Args:
        graph: In memory, or as arrays.
        task: What is predicted.
        truth: Of every node, in the form of the task.
        split: Of the nodes.
        settings: How to train.
        encoder: What was learnt about the columns of tables.
        node_ids: The names of the nodes of a graph of arrays.
    """
    refuse_task_settings(task, settings)
    if isinstance(graph, ArrayGraph):
        symmetric = graph.is_symmetric
    else:
        symmetric = is_symmetric(graph.edge_index, graph.edge_attr)
    settings, notes = decide_direction(settings, symmetric=symmetric, edges=graph.num_edges)
    split = known_rows(split, task, truth)
    fitted = task.fitted(truth[split.train], settings.training)
    data = node_data(graph, settings, node_ids)
    return Problem(NODE, data, fitted, truth, split, settings, encoder), tuple(notes)


def node_data(
    graph: Graph | ArrayGraph, settings: Settings, node_ids: Sequence[str] | None = None
) -> WholeGraph | SampledGraph:
    """A graph as a model of these settings is trained on it, and predicts it."""
    device = find_device(settings.training.device)
    drawn = fan_outs(settings)
    if isinstance(graph, ArrayGraph):
        return SampledGraph(graph, drawn, node_ids, device)
    if not drawn:
        return WholeGraph(graph, device)
    return SampledGraph(ArrayGraph.of(graph), drawn, graph.node_ids, device)


def _stored(store: GraphStore, settings: Settings) -> Graph | ArrayGraph:
    """The graph of a store: all of it in memory, unless neighbours are sampled."""
    return store.mapped() if settings.training.neighbors else store.whole()


def _rounded(found: Graph, read: Graph) -> list[str]:
    if found is read:
        return []
    kinds = sorted({str(t.dtype).removeprefix("torch.") for t in (found.x, found.channels)})
    return [f"the graph's numbers ({', '.join(kinds)}) are read as float32"]


NODE = NodeUnit()
