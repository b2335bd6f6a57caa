"""Attention over ``B B^T`` without forming it: walks along the hubs of ``B``.

``M_ij = f_ij (B B^T)_ij`` with ``f_ij = exp LeakyReLU(s_i + t_j)`` is needed only through
products. A hub is a column ``k`` of ``B``, its members the nodes with an entry there. For a
member ``i``, ``sum_j f_ij B_jk Z_j`` splits at ``t_j = -s_i``: above it ``f`` is ``e^s e^t``,
below it ``e^(slope s) e^(slope t)``. With the members in the order of ``t`` this is one running
sum from below and one from above, read where ``-s_i`` falls, its *cut*. The transposed product
drops its terms at the cuts and sums them the other way. The cost is the entries of ``B`` times
the width, not the sum of squared hub sizes.

Arrays of nodes stand by channel, ``[channels, nodes, width]``, their widths padded to whole
registers. Arrays of links, the entries of ``B``, stand in the order of the hub lists.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from edgewise.kernels import backend
from edgewise.kernels.backend import unsigned
from edgewise.kernels.hub_walks import (
    PARTS,
    list_sources,
    sweep,
    walk_pull,
    walk_push,
    walk_source_gradients,
    walk_target_gradients,
)
from edgewise.kernels.pattern import Pattern

Array = NDArray[np.floating]

# Columns that are summed together, in one register: four of them, or eight where there are more.
FOUR, EIGHT = (0,) * 4, (0,) * 8


@dataclass(frozen=True, eq=False)
class Hubs:
    """The hubs of one ``B`` under one pair of scores."""

    part: NDArray[np.int64]  # [PARTS + 1], the hubs of each part: as many links in each
    start: NDArray[np.uint64]  # where the list of each hub begins
    node: NDArray[np.uint32]  # the member at each place of the lists
    link: Array  # the values of B
    cut: NDArray[np.uint32]  # where, among its sources, the kink of each target falls
    # Node, link and place of each member, ascending by source score within each hub.
    sources: tuple[NDArray[np.uint32], Array, NDArray[np.uint32]]
    target: Array  # [channels, nodes, 2], the targets' factors of f below and above the kink
    source: Array  # and those of the sources


@dataclass(frozen=True, eq=False)
class Masks:
    """Dropout on the links of the targets, and which columns it touches."""

    factor: Array  # [2, links]
    weight: Array  # [3, width]: 1 where a column is not masked, masked first, masked second


def arrange(pattern: Pattern, value: Array, target: Array, source: Array, slope: float) -> Hubs:
    """Order every hub's members by source score, and place each target's kink among them.

    One sort of all nodes orders every list: a single sweep by ascending score appends sources
    to the lists of their hubs and notes, for targets, how long the lists have become.

    ``f`` is divided by its largest possible value in each row, which no normalisation of rows
    notices: with ``t_max`` the highest source, ``f_ij`` is ``e^(t_j - t_max)`` above the kink
    and ``w_i e^(slope (t_j - t_max))`` below, so no exponent is positive.
    """
    turned, channels = pattern.transpose, pattern.channels
    order, cut, source_node = np.empty((3, pattern.num_entries), np.uint32)
    link = backend.take(torch.from_numpy(value), turned.order).numpy()
    source_link = np.empty_like(link)
    # Sources come first among equals: a pair on the kink lies below it.
    events = np.argsort(np.concatenate([source, -target]), axis=0, kind="stable")
    start, node = unsigned(turned.pattern.start), unsigned(turned.pattern.column)
    with backend.running:
        sweep(events.astype(np.uint32), unsigned(pattern.start), unsigned(pattern.column),
              unsigned(turned.inverse), start, order, cut, np.uint64(channels))  # fmt: skip
        list_sources(order, node, link, source_node, source_link)
    top = source.max(axis=0, initial=-np.inf)
    head = np.arange(channels) * source.shape[1] // channels
    below = np.exp((slope - 1) * np.maximum(target + top, 0)).T[head]
    factors = np.exp(np.stack([slope * (source - top), source - top], axis=-1))
    shares = np.linspace(0, pattern.num_entries, PARTS + 1)
    return Hubs(
        np.searchsorted(start[::channels], shares, side="left"),
        start,
        node,
        link,
        cut,
        (source_node, source_link, order),
        target=np.stack([below, np.ones_like(below)], axis=-1),
        source=np.ascontiguousarray(factors.swapaxes(0, 1)[head]),
    )


def pull(hubs: Hubs, z: Array, masks: Masks | None = None) -> Array:
    """``M z``: every target gathers what its sources hold, ``[channels, nodes, width]``."""
    out = np.zeros((PARTS, *z.shape), z.dtype)
    with backend.running:
        walk_pull(*_lists(hubs), _masks(masks, z), _weighted(hubs.source, z), hubs.target, out,
                  _lanes(z))  # fmt: skip
    return out.sum(0)


def push(hubs: Hubs, z: Array, masks: Masks | None = None) -> Array:
    """``M^T z``: every source is given what its targets hold."""
    out = np.zeros((PARTS, *z.shape), z.dtype)
    with backend.running:
        walk_push(*_lists(hubs), _masks(masks, z), _weighted(hubs.target, z), hubs.source, out,
                  _lanes(z))  # fmt: skip
    return out.sum(0)


def target_gradients(
    hubs: Hubs, held: Array, asked: Array, slope: float, grad_link: Array, masks: Masks | None
) -> Array:
    """Where every pair gains ``M_ij (asked_i . held_j)``: the gradient of the target scores.

    That of the links, as links of targets, is added to ``grad_link``.
    """
    grad_score = np.zeros((PARTS, *held.shape[:2]), held.dtype)
    with backend.running:
        walk_target_gradients(*_lists(hubs), _masks(masks, held), _weighted(hubs.source, held),
                              hubs.target, asked, held.dtype.type(slope), grad_link, grad_score,
                              _lanes(held))  # fmt: skip
    return grad_score.sum(0)


def source_gradients(
    hubs: Hubs, held: Array, asked: Array, slope: float, grad_link: Array, masks: Masks | None
) -> Array:
    """The same seen from the sources: their score gradients, and those of their links."""
    grad_score = np.zeros((PARTS, *held.shape[:2]), held.dtype)
    with backend.running:
        walk_source_gradients(*_lists(hubs), _masks(masks, held), _weighted(hubs.target, asked),
                              hubs.source, held, held.dtype.type(slope), grad_link, grad_score,
                              _lanes(held))  # fmt: skip
    return grad_score.sum(0)


def padded(*columns: Array) -> Array:
    """Columns side by side, filled up with zeros to whole registers."""
    width = sum(block.shape[2] for block in columns)
    filling = np.zeros((*columns[0].shape[:2], _padding(width)), columns[0].dtype)
    return np.concatenate([*columns, filling], axis=2)


def column_masks(factor: Array | None, first: int, second: int, rest: int) -> Masks | None:
    """The masks of a block of columns masked first, one masked second, and one not masked."""
    if factor is None:
        return None
    kinds = np.repeat([1, 2, 0], [first, second, rest + _padding(first + second + rest)])
    return Masks(factor, np.ascontiguousarray(np.eye(3, dtype=factor.dtype)[:, kinds]))


def _padding(width: int) -> int:
    return -width % (4 if width <= 4 else 8)


def _lanes(z: Array) -> tuple[int, ...]:
    return FOUR if z.shape[2] == 4 else EIGHT


def _lists(hubs: Hubs) -> tuple[Any, ...]:
    return hubs.part, hubs.start, hubs.sources, (hubs.node, hubs.link, hubs.cut)


def _masks(masks: Masks | None, z: Array) -> tuple[Array, Array]:
    if masks is None:
        return np.empty((2, 0), z.dtype), np.ones((1, z.shape[2]), z.dtype)
    return masks.factor, masks.weight


def _weighted(factor: Array, z: Array) -> Array:
    """Each register's columns of ``z`` times the factor below the kink, then times that above."""
    channels, nodes, width = z.shape
    groups = z.reshape(channels, nodes, -1, 1, len(_lanes(z)))
    return (groups * factor[:, :, None, :, None]).reshape(channels, nodes, 2 * width)
