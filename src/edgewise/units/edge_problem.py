"""Edges that were read already, as a problem to be learnt."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import UNITS
from edgewise.core.settings import Settings
from edgewise.data.edge_reader import EdgeReader, ReadEdges
from edgewise.data.splits import Split
from edgewise.data.times import stretch_starts
from edgewise.graphs.edge_rows import EdgeRows
from edgewise.graphs.sampled_edge_rows import SampledEdgeRows
from edgewise.tasks.base import Task
from edgewise.units.base import Problem, known_rows
from edgewise.units.fan_outs import edge_fan_outs
from edgewise.units.task_settings import refuse_task_settings


def edge_problem(
    read: ReadEdges,
    task: Task,
    truth: Tensor,
    split: Split,
    settings: Settings,
    encoder: EdgeReader | None = None,
) -> Problem:
    """Edges that were read already."""
    refuse_task_settings(task, settings)
    if settings.model.head == "layer":
        raise EdgewiseError("head = layer gives outputs for nodes, not for edges; set head = mlp")
    split = known_rows(split, task, truth)
    fitted = task.fitted(truth[split.train], settings.training)
    known = torch.zeros(len(truth), dtype=torch.bool)
    known[split.train] = True
    data = edge_rows(read, fitted, truth, settings, known, split)
    return Problem(UNITS["edge"], data, fitted, truth, split, settings, encoder)


def edge_rows(
    read: ReadEdges,
    task: Task,
    truth: Tensor,
    settings: Settings,
    known: Tensor | None = None,
    split: Split | None = None,
) -> EdgeRows:
    """Edges as a model sees them.

    Args:
        read: The edges.
        task: What is predicted.
        truth: What is known of it.
        settings: Of the model.
        known: The edges that may show their label to others; without it, all that have one.
        split: Whose parts start a stretch of time.
    """
    if known is None:
        known = torch.zeros(len(truth), dtype=torch.bool)
        known[task.labelled_rows(truth)] = True
    model, times = settings.model, read.times
    labels = task.label_channels(truth) if model.label_messages else None
    if labels is not None and read.shown is not None:
        labels = torch.cat([labels, read.shown], dim=1)
    make: Callable[..., EdgeRows] = EdgeRows
    if settings.training.neighbors:
        make = partial(SampledEdgeRows, fan_outs=edge_fan_outs(settings), lookup=read.lookup)
    return make(
        read.graph,
        labels=labels,
        known=known,
        time=None if times is None else torch.from_numpy(times),
        starts=None if times is None else stretch_starts(times, split),
        directed=model.directed,
        incident=model.incident_means,
        paths=model.paths,
        rows=read.rows,
        device=find_device(settings.training.device),
    )
