"""The walks of hubs.py hub by hub, for graphs whose running sums no cache would hold.

There, all nodes are walked through in the order of their scores, and every hub keeps running sums:
on a large graph each step waits for memory. Here the links of every hub are first sorted by the
scores of their nodes, as sources and as targets, and the rank of a target is how many sources of
the hub stand above the kink with it. Then one hub is walked through after the other: its sums over
sources are kept for every rank, and its targets read those of theirs. A hub's sums are in the
nearest cache, and the rows of its members are fetched ahead. Sorting costs as much as
three or four products of narrow rows, so graphs that fit into the cache are quicker the other way.

The names and what they compute are those of hubs.py.
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
from edgewise.kernels.hubs import Array, Masks, descending, register, scales_by_channel
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.sorted_walks import sort_links, walk_gradients, walk_products

# Rows are fetched this many links ahead.
PREFETCH_DISTANCE = np.uint64(16)


class Links(NamedTuple):
    """The links of every hub by the scores of their nodes, as sources or as targets."""

    node: NDArray[np.uint32]  # [links, 2]: node and masks, and how many of the others come before
    value: Array  # of B
    place: NDArray[np.uint32]  # where each link stands in B


@dataclass(frozen=True, eq=False)
class SortedHubs:
    """One ``B`` under one pair of scores."""

    start: NDArray[np.uint64]  # where the links of each hub begin, by channel
    parts: NDArray[np.uint64]  # [parts + 1, channels], the first hub of each part
    sources: Links
    targets: Links
    target_scale: Array  # [channels, nodes, 2], factors of f below and above the kink
    source_scale: Array  # the same of the sources


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
        Links(np.empty((len(link), 2), np.uint32), np.empty_like(link),
              np.empty(len(link), np.uint32))
        for _ in range(2)
    )  # fmt: skip
    with backend.running:
        sort_links(descending(torch.cat([source, -target]).numpy()), unsigned(pattern.entry_bounds),
                   unsigned(pattern.column), link, kept, start, tuple(sources),
                   tuple(targets))  # fmt: skip
    scales = scales_by_channel(pattern, target, source, slope)
    return SortedHubs(start, unsigned(pattern.hub_parts), sources, targets, *scales)


def product(hubs: SortedHubs, z: Array, masks: Masks | None = None) -> Array:
    """``M z``, ``[channels, nodes, width]``."""
    inputs, outputs = (hubs.sources, hubs.source_scale), (hubs.targets, hubs.target_scale)
    return _product(hubs, z, inputs, outputs, masks)


def transposed_product(hubs: SortedHubs, z: Array, masks: Masks | None = None) -> Array:
    """``M^T z``, ``[channels, nodes, width]``."""
    # Targets cross the kink downwards: they are above it before, and below it after.
    target, source = (
        np.ascontiguousarray(scale[..., ::-1]) for scale in (hubs.target_scale, hubs.source_scale)
    )
    return _product(hubs, z, (hubs.targets, target), (hubs.sources, source), masks)


def _product(
    hubs: SortedHubs,
    z: Array,
    inputs: tuple[Links, Array],
    outputs: tuple[Links, Array],
    masks: Masks | None,
) -> Array:
    out = np.empty((len(hubs.parts) - 1, *z.shape), z.dtype)
    with backend.running:
        walk_products(hubs.start, hubs.parts, *inputs[0][:2], *outputs[0][:2], inputs[1],
                      outputs[1], _factors(masks, z), z, out, PREFETCH_DISTANCE,
                      register(z))  # fmt: skip
    return out[0] if len(out) == 1 else out.sum(0)


def gradients(
    hubs: SortedHubs, source_value: Array, target_value: Array, slope: float, masks: Masks | None
) -> tuple[Array, Array, Array]:
    """Of the sum of ``M_ij (target_value_i . source_value_j)``: for links, targets and sources."""
    grad_link = np.zeros_like(hubs.sources.value)
    shape, dtype = source_value.shape[:2], source_value.dtype
    grad_target, grad_source = np.zeros((2, len(hubs.parts) - 1, *shape), dtype)
    with backend.running:
        walk_gradients(hubs.start, hubs.parts, tuple(hubs.sources), tuple(hubs.targets),
                       source_value, hubs.source_scale, target_value, hubs.target_scale,
                       _factors(masks, source_value), dtype.type(slope), grad_link, grad_target,
                       grad_source, PREFETCH_DISTANCE, register(source_value))  # fmt: skip
    return grad_link, grad_target.sum(0), grad_source.sum(0)


def _factors(masks: Masks | None, z: Array) -> Array:
    """``[5, width]``: the factor of a link by what keeps it, and of one that is not masked."""
    factors = np.ones((5, z.shape[2]), z.dtype)
    if masks is not None:
        factors[:4] = masks.scale
    return factors
