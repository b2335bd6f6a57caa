"""The walks of hubs.py hub by hub, for graphs whose running sums no cache would hold.

There, all nodes are walked through in the order of their scores, and every hub keeps running sums:
on a large graph each step waits for memory. Here the links of every hub are first sorted by the
scores of their nodes, as sources and as targets, and the rank of a target is how many sources of
the hub stand above the kink with it. Then one hub is walked through after the other: its sums over
sources are kept for every rank, and its targets read those of theirs. A hub's sums are in the
nearest cache, and the rows of its members are fetched ahead. Sorting costs as much as
three or four products of narrow rows, so graphs that fit into the cache are quicker the other way.

What is computed is what hubs.py says.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from edgewise.kernels import backend
from edgewise.kernels.backend import unsigned
from edgewise.kernels.hub_sorting import put_in_place, sort_links
from edgewise.kernels.hubs import Array, Hubs, Masks, descending, register, scales_by_channel
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.sorted_walks import walk_gradients, walk_products

# Rows are fetched this many links ahead.
PREFETCH_DISTANCE = np.uint64(16)


class Links(NamedTuple):
    """The links of every hub by the scores of their nodes, as sources or as targets."""

    node: NDArray[np.uint32]  # [links, 2]: node and masks, and how many of the others come before
    factor: Array  # [links, 2], the value times the factors of the node below and above the kink
    entry: NDArray[np.uint32]  # where each link stands in B


@dataclass(frozen=True, eq=False)
class SortedHubs(Hubs):
    """Walked through hub by hub."""

    start: NDArray[np.uint64]  # where the links of each hub begin, by channel
    hub_parts: NDArray[np.uint64]  # [parts + 1, channels], the first hub of each part
    of_sources: Links
    of_targets: Links

    @property
    def parts(self) -> int:
        return len(self.hub_parts) - 1

    def _walk(self, z: Array, out: Array, masks: Masks | None, sources_are_inputs: bool) -> None:
        inputs, outputs, before = self.of_sources, self.of_targets, np.uint64(0)
        if not sources_are_inputs:
            # Targets cross the kink downwards: they are above it before, and below it after.
            inputs, outputs, before = outputs, inputs, np.uint64(1)
        walk_products(self.start, self.hub_parts, inputs.node, inputs.factor, outputs.node,
                      outputs.factor, before, _factors(masks, z), z, out, PREFETCH_DISTANCE,
                      register(z))  # fmt: skip

    def _new_link_gradients(self, wanted: bool) -> tuple[Array, ...]:
        count = len(self.of_sources.node) if wanted else 0
        return tuple(np.zeros((2, count), self.source_scale.dtype))

    def _walk_gradients(
        self, source_value: Array, target_value: Array, masks: Masks | None, slope: np.floating,
        grad_link: tuple[Array, ...], grad_target: Array, grad_source: Array,
    ) -> None:  # fmt: skip
        walk_gradients(self.start, self.hub_parts, self.of_sources[:2], self.of_targets[:2],
                       source_value, self.source_scale, target_value, self.target_scale,
                       _factors(masks, source_value), slope, grad_link, grad_target, grad_source,
                       PREFETCH_DISTANCE, register(source_value))  # fmt: skip

    def _link_gradients(self, found: tuple[Array, ...]) -> Array:
        out = np.empty(len(self.of_sources.entry), self.source_scale.dtype)
        with backend.running:
            put_in_place(self.of_sources.entry, self.of_targets.entry, *found, self.start,
                         np.uint64(self.source_scale.shape[1]), out)  # fmt: skip
        return out


def prepare_hubs(
    pattern: Pattern,
    value: Float[Tensor, " links"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
    kept: NDArray[np.uint8] | None,
) -> SortedHubs:
    """Sort all links by the scores of their nodes, and take ``f`` apart into its factors."""
    link, start = value.contiguous().numpy(), unsigned(pattern.hub_start)
    sources, targets = (
        Links(np.empty((len(link), 2), np.uint32), np.empty((len(link), 2), link.dtype),
              np.empty(len(link), np.uint32))
        for _ in range(2)
    )  # fmt: skip
    target_scale, source_scale = scales_by_channel(pattern, target, source, slope)
    parts = unsigned(pattern.hub_parts)
    node, entry = pattern.hub_links
    with backend.running:
        sort_links(start, parts, _places(source, target), unsigned(node), unsigned(entry),
                      link, kept, source_scale, target_scale, tuple(sources),
                      tuple(targets))  # fmt: skip
    return SortedHubs(target_scale, source_scale, start, parts, sources, targets)


def _places(source: Tensor, target: Tensor) -> NDArray[np.uint32]:
    """``[heads, 2 nodes]``: the places of sources, and of targets, from the highest score down."""
    order = descending(torch.cat([source, -target]).numpy())
    place = np.empty(order.shape[::-1], np.uint32)
    for head, by_score in enumerate(order.T):
        place[head, by_score] = np.arange(len(by_score), dtype=np.uint32)
    return place


def _factors(masks: Masks | None, z: Array) -> Array:
    """``[5, width]``: the factor of a link by what keeps it, and of one that is not masked."""
    factors = np.ones((5, z.shape[2]), z.dtype)
    if masks is not None:
        factors[:4] = masks.scale
    return factors
