"""Attention over ``B B^T`` without forming it: walks along the hubs of ``B``.

``M_ij = f_ij (B B^T)_ij`` with ``f_ij = exp LeakyReLU(s_i + t_j)`` is needed only through
products. A hub is a column ``k`` of ``B``, its members the nodes with an entry there. For a
member ``i``, ``sum_j f_ij B_jk Z_j`` splits at ``t_j = -s_i``: above it ``f`` is ``e^s e^t``,
below it ``e^(slope s) e^(slope t)``. With the members in the order of ``t`` this is one running
sum from below and one from above, read where ``-s_i`` falls, its *cut*. The transposed product
drops its terms at the cuts and sums them the other way. The cost is the entries of ``B`` times
the width, not the sum of squared hub sizes.

Arrays of nodes stand by channel, ``[channels, nodes, width]``, their widths padded to whole
lanes. Arrays of links, the entries of ``B``, stand in the order of the hub lists.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgewise.kernels import backend
from edgewise.kernels.backend import unsigned
from edgewise.kernels.hub_walks import (
    LANES,
    PARTS,
    sweep,
    walk_pull,
    walk_push,
    walk_source_gradients,
    walk_target_gradients,
)
from edgewise.kernels.pattern import Pattern

Array = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Hubs:
    """The hubs of one ``B`` under one pair of scores."""

    part: NDArray[np.int64]  # [PARTS + 1], the hubs of each part: as many links in each
    start: NDArray[np.uint64]  # where the list of each hub begins
    node: NDArray[np.uint32]  # the member at each place of the lists
    order: NDArray[np.uint32]  # places, ascending by source score within each hub
    cut: NDArray[np.uint32]  # at each place: how many sources lie below the kink of its target
    link: Array  # the values of B
    target: Array  # [2, channels, nodes], the targets' factors of f below and above the kink
    source: Array  # and those of the sources


@dataclass(frozen=True, eq=False)
class Masks:
    """Dropout on the links of the targets, and which columns it touches."""

    factor: Array  # [2, links]
    weight: Array  # [3, width]: 1 where a column is not masked, masked first, masked second


def arrange(pattern: Pattern, link: Array, target: Array, source: Array, slope: float) -> Hubs:
    """Order every hub's members by source score, and place each target's kink among them.

    One sort of all nodes orders every list: a single sweep by ascending score appends sources
    to the lists of their hubs and notes, for targets, how long the lists have become.

    ``f`` is divided by its largest possible value in each row, which no normalisation of rows
    notices: with ``t_max`` the highest source, ``f_ij`` is ``e^(t_j - t_max)`` above the kink
    and ``w_i e^(slope (t_j - t_max))`` below, so no exponent is positive.
    """
    turned, channels = pattern.transpose, pattern.channels
    order, cut = np.empty((2, pattern.num_entries), np.uint32)
    # Sources come first among equals: a pair on the kink lies below it.
    events = np.argsort(np.concatenate([source, -target]), axis=0, kind="stable")
    start, node = unsigned(turned.pattern.start), unsigned(turned.pattern.column)
    with backend.running:
        sweep(events.astype(np.uint32), unsigned(pattern.start), unsigned(pattern.column),
               unsigned(turned.inverse), start, order, cut, np.uint64(channels))  # fmt: skip
    top = source.max(axis=0, initial=-np.inf)
    head = np.arange(channels) * source.shape[1] // channels
    below = np.exp((slope - 1) * np.maximum(target + top, 0)).T[head]
    sources = np.exp(np.stack([slope * (source - top), source - top]))
    shares = np.linspace(0, pattern.num_entries, PARTS + 1)
    return Hubs(
        np.searchsorted(start[::channels], shares, side="left"),
        start,
        node,
        order,
        cut,
        link,
        target=np.stack([below, np.ones_like(below)]),
        source=np.ascontiguousarray(sources.swapaxes(1, 2)[:, head]),
    )


def pull(hubs: Hubs, z: Array, masks: Masks | None = None) -> Array:
    """``M z``: every target gathers what its sources hold, ``[channels, nodes, width]``."""
    out = np.zeros((PARTS, *z.shape), z.dtype)
    with backend.running:
        walk_pull(hubs.part, hubs.start, hubs.node, hubs.order, hubs.cut, hubs.link,
              *_masked(hubs, masks, z), hubs.source[..., None] * z, hubs.target, out)  # fmt: skip
    return out.sum(0)


def push(hubs: Hubs, z: Array, masks: Masks | None = None) -> Array:
    """``M^T z``: every source is given what its targets hold."""
    out = np.zeros((PARTS, *z.shape), z.dtype)
    with backend.running:
        walk_push(hubs.part, hubs.start, hubs.node, hubs.order, hubs.cut, hubs.link,
              *_masked(hubs, masks, z), hubs.target[..., None] * z, hubs.source, out)  # fmt: skip
    return out.sum(0)


def target_gradients(
    hubs: Hubs, held: Array, asked: Array, slope: float, grad_link: Array, masks: Masks | None
) -> Array:
    """Where every pair gains ``M_ij (asked_i . held_j)``: the gradient of the target scores.

    That of the links, as links of targets, is added to ``grad_link``.
    """
    grad_score = np.zeros((PARTS, *held.shape[:2]), held.dtype)
    with backend.running:
        walk_target_gradients(hubs.part, hubs.start, hubs.node, hubs.order, hubs.cut, hubs.link,
                          *_masked(hubs, masks, held), hubs.source[..., None] * held,
                          hubs.target, asked, slope, grad_link, grad_score)  # fmt: skip
    return grad_score.sum(0)


def source_gradients(
    hubs: Hubs, held: Array, asked: Array, slope: float, grad_link: Array, masks: Masks | None
) -> Array:
    """The same seen from the sources: their score gradients, and those of their links."""
    grad_score = np.zeros((PARTS, *held.shape[:2]), held.dtype)
    with backend.running:
        walk_source_gradients(hubs.part, hubs.start, hubs.node, hubs.order, hubs.cut, hubs.link,
                          *_masked(hubs, masks, held), hubs.target[..., None] * asked,
                          hubs.source, held, slope, grad_link, grad_score)  # fmt: skip
    return grad_score.sum(0)


def padded(*columns: Array) -> Array:
    """Columns side by side, filled up with zeros to whole lanes."""
    missing = -sum(block.shape[2] for block in columns) % LANES
    filling = np.zeros((*columns[0].shape[:2], missing), columns[0].dtype)
    return np.concatenate([*columns, filling], axis=2)


def column_masks(factor: Array | None, first: int, second: int, rest: int) -> Masks | None:
    """The masks of a block of columns masked first, one masked second, and one not masked."""
    if factor is None:
        return None
    kinds = np.repeat([1, 2, 0], [first, second, rest + -(first + second + rest) % LANES])
    return Masks(factor, np.ascontiguousarray(np.eye(3, dtype=factor.dtype)[:, kinds]))


def _masked(hubs: Hubs, masks: Masks | None, z: Array) -> tuple[bool, Array, Array]:
    if masks is None:
        return False, np.empty((2, 0), hubs.link.dtype), np.empty((3, 0), z.dtype)
    return True, masks.factor, masks.weight
