"""Links of a graph as a problem to be learnt, with the pairs that they are told from."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from edgewise.core.devices import find_device
from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import UNITS
from edgewise.core.seeds import seed_of
from edgewise.core.settings import Settings
from edgewise.data.edge_reader import EdgeReader
from edgewise.data.splits import Split
from edgewise.data.times import stretch_starts
from edgewise.graphs.graph import Graph, without_labels
from edgewise.graphs.link_rows import LinkRows, LinkTimes
from edgewise.graphs.links import Links
from edgewise.graphs.negatives import NegativeSampler
from edgewise.graphs.sampled_link_rows import SampledLinkRows
from edgewise.tasks.link import Link
from edgewise.units.base import Problem, known_rows
from edgewise.units.fan_outs import edge_fan_outs
from edgewise.units.splitting import split_seed
from edgewise.units.task_settings import refuse_task_settings

CANDIDATES = 20  # pairs without an edge that a link of validation or test is ranked among


def link_problem(
    graph: Graph,
    links: Links,
    task: Link,
    split: Split,
    settings: Settings,
    encoder: EdgeReader | None = None,
    *,
    time: Tensor | None = None,
    types: Tensor | None = None,
) -> Problem:
    """Links and pairs without one: a row is a link, and behind it stand those it is told from.

    Args:
        graph: Nodes and edges.
        links: Of the graph.
        task: What is asked of them.
        split: Of the links.
        settings: Of the model.
        encoder: How the tables of the graph were read.
        time: When each edge happens.
        types: The number of the type of each edge, -1 where it is unknown.
    """
    refuse_task_settings(task, settings)
    if settings.model.head == "layer":
        raise EdgewiseError("head = layer gives outputs for nodes, not for links; set head = mlp")
    split = known_rows(split, task, links.truth)
    part = torch.full((len(links),), -1)
    for number, rows in enumerate(split.parts().values()):
        part[rows] = number
    count = torch.where(part == 0, 1, torch.where(part > 0, CANDIDATES, 0)) + 1
    of_link = torch.arange(len(links)).repeat_interleave(count)
    first = torch.ones(len(of_link), dtype=torch.bool)
    first[1:] = of_link[1:] != of_link[:-1]
    times = None
    if time is not None and links.time is not None:
        starts = stretch_starts(links.time.numpy(), split)
        times = LinkTimes(time.double(), links.time[of_link], starts)
    data = link_rows(settings)(
        without_labels(graph),
        links.of_edge,
        links.pairs[:, of_link],
        torch.where(first, of_link, -1),
        part[of_link] == 0,
        # By time, what carries messages is not the same for all rows.
        (part == 0)[links.of_edge] if times is None else torch.ones(graph.num_edges).bool(),
        settings.model.directed,
        find_device(settings.training.device),
        None if types is None else type_flags(types, len(task.types)),
        times,
    )
    data = replace(data, pairs=torch.where(first, data.pairs, _without_edge(data, settings)))
    rows, of_part = torch.arange(len(of_link)), part[of_link]
    whole = Split(*(rows[of_part == number] for number in range(3)))
    truth = torch.where(first.unsqueeze(1), links.truth[of_link], 0.0)
    return Problem(UNITS["link"], data, task, truth, whole, settings, encoder)


def link_rows(settings: Settings) -> Callable[..., LinkRows]:
    """What makes rows for a model of these settings: in blocks, where neighbours are sampled."""
    if settings.training.neighbors:
        return partial(SampledLinkRows, fan_outs=edge_fan_outs(settings))
    return LinkRows


def type_flags(types: Tensor, count: int) -> Tensor:
    """Whether each edge is of each type, ``[edges, types]``; zeros where it is unknown."""
    return (types.unsqueeze(1) == torch.arange(count)).float()


def _without_edge(data: LinkRows, settings: Settings) -> Tensor:
    """A pair without an edge for each row, which the seed of the split decides."""
    seed, graph = split_seed(settings), data.graph
    # A ranked link has the reverse pair among its candidates about once.
    reverse = 1 / CANDIDATES
    if data.times is None:
        every = NegativeSampler(graph.edge_index, graph.num_nodes, directed=data.directed)
        generator = torch.Generator().manual_seed(seed)
        return every.draw(data.pairs, reverse=reverse, generator=generator)
    drawn = torch.empty_like(data.pairs)
    for stretch in data.times.stretch.unique().tolist():
        # Each stretch draws for itself: what happens later changes nothing.
        generator = torch.Generator().manual_seed(seed_of(seed, 0, stretch))
        rows = data.times.stretch == stretch
        sampler = data.sampler_until(stretch)
        drawn[:, rows] = sampler.draw(data.pairs[:, rows], reverse=reverse, generator=generator)
    return drawn
