"""Products with ``M = f . (B B^T)`` without forming it: walks along the columns of ``B``.

``M_ij = f_ij (B B^T)_ij`` with ``f_ij = exp LeakyReLU(s_i + t_j)`` is needed only through
products. A hub is a column ``k`` of ``B``, its members the nodes with an entry there. (Entries of
``B`` are called links here, to tell them from entries of ``B B^T``.) For a member ``i``,
``sum_j f_ij B_jk Z_j`` splits at ``t_j = -s_i``: above this kink ``f`` is ``e^s e^t``, below it
``e^(slope s) e^(slope t)``. So every hub keeps two sums over its sources, one of each kind. All
nodes, as sources at ``t_j`` and as targets at ``-s_i``, are walked through once, from the highest
to the lowest: a source crosses from the one sum of its hubs to the other, a target reads both. The
transposed product is the same walk in which targets cross and sources read. In either, the nodes
that cross are the input of the product, and those that read are its output. The cost is the links
times the width, not the sum of squared hub sizes.

A sum that a node leaves by subtraction keeps a rounding error. It does no harm: ``f`` is the larger
of the two kinds for every pair, so neither sum was ever larger than the one that is read.

Arrays of nodes stand by channel, ``[channels, nodes, width]``, their widths padded to whole
registers. Arrays of links stand in the order of ``B``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from edgewise.kernels import backend
from edgewise.kernels.backend import unsigned
from edgewise.kernels.hub_walks import walk_gradients, walk_products
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.scores import score_factors

Array = NDArray[np.floating]

# How many columns can be summed together, in one register; more take several walks.
SIZES = (1, 4, 8)


@dataclass(frozen=True, eq=False)
class Hubs:
    """One ``B`` under one pair of scores."""

    order: NDArray[np.uint32]  # [2 nodes, heads]: sources, and targets counted on from them
    bounds: NDArray[np.uint64]  # [parts + 1, channels, nodes], the links of each node by part
    column: NDArray[np.uint32]  # the hub of each link
    link: Array  # the values of B
    target_scale: Array  # [channels, nodes, 2], factors of f below and above the kink
    source_scale: Array  # the same of the sources


@dataclass(frozen=True, eq=False)
class Masks:
    """Dropout on the links of the targets."""

    kept: NDArray[np.uint8]  # which of two masks keep each link: none, first, second, both
    scale: Array  # [4, width], the factor of a link for each of the four


def prepare_hubs(
    pattern: Pattern,
    value: Float[Tensor, " links"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
    kept: NDArray[np.uint8] | None = None,
) -> Hubs:
    """Order all nodes by their scores, and take ``f`` apart into its factors.

    What is ``kept`` of the links of targets is of use in sorted_hubs.py alone.
    """
    return Hubs(
        descending(torch.cat([source, -target]).numpy()),
        unsigned(pattern.entry_bounds),
        unsigned(pattern.column),
        value.contiguous().numpy(),
        *scales_by_channel(pattern, target, source, slope),
    )


def scales_by_channel(
    pattern: Pattern, target: Tensor, source: Tensor, slope: float
) -> tuple[Array, Array]:
    """The factors of ``f`` below and above the kink, ``[channels, nodes, 2]``: targets, sources."""
    below, factors = score_factors(target, source, slope)
    head = np.arange(pattern.channels) * source.size(1) // pattern.channels
    of_target, of_source = (
        np.ascontiguousarray(scale.numpy().swapaxes(0, 1)[head])
        for scale in (torch.stack([below, torch.ones_like(below)], dim=-1), factors)
    )
    return of_target, of_source


def descending(scores: Array) -> NDArray[np.uint32]:
    """The order of the scores, the later first among equals: a pair on the kink lies below it."""
    if scores.dtype != np.float32:
        order = np.argsort(scores, axis=0, kind="stable")
    else:
        # Score and place as one whole number: sorting those is ten times as quick.
        bits = (scores + 0).view(np.int32).astype(np.int64)  # adding makes one zero of the two
        ascending = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        order = (ascending << 32) | np.arange(len(scores))[:, None]
        order.sort(axis=0)
    return np.ascontiguousarray(order[::-1].astype(np.uint32))


def product(hubs: Hubs, z: Array, masks: Masks | None = None) -> Array:
    """``M z``, ``[channels, nodes, width]``."""
    return _products(
        hubs, z, (None, hubs.source_scale), (_doubled(masks, z), hubs.target_scale), True
    )


def transposed_product(hubs: Hubs, z: Array, masks: Masks | None = None) -> Array:
    """``M^T z``, ``[channels, nodes, width]``."""
    # Targets cross the kink downwards: they are above it before, and below it after.
    target, source = (
        np.ascontiguousarray(scale[..., ::-1]) for scale in (hubs.target_scale, hubs.source_scale)
    )
    return _products(hubs, z, (_doubled(masks, z), target), (None, source), False)


def _products(
    hubs: Hubs, z: Array, inputs: tuple[Any, Array], outputs: tuple[Any, Array], of_sources: bool
) -> Array:
    out = np.empty((len(hubs.bounds) - 1, *z.shape), z.dtype)
    with backend.running:
        walk_products(hubs.order, hubs.bounds, hubs.column, hubs.link, *inputs, *outputs, z, out,
                      of_sources, register(z))  # fmt: skip
    return out[0] if len(out) == 1 else out.sum(0)


def gradients(
    hubs: Hubs, source_value: Array, target_value: Array, slope: float, masks: Masks | None
) -> tuple[Array, Array, Array]:
    """Of the sum of ``M_ij (target_value_i . source_value_j)``: for links, targets and sources."""
    grad_link = np.zeros_like(hubs.link)
    shape, dtype = source_value.shape[:2], source_value.dtype
    grad_target, grad_source = np.zeros((2, len(hubs.bounds) - 1, *shape), dtype)
    with backend.running:
        walk_gradients(hubs.order, hubs.bounds, hubs.column, hubs.link,
                       _doubled(masks, source_value), source_value, hubs.source_scale,
                       target_value, hubs.target_scale, dtype.type(slope), grad_link,
                       grad_target, grad_source, register(source_value))  # fmt: skip
    return grad_link, grad_target.sum(0), grad_source.sum(0)


def padded(*columns: Array) -> Array:
    """Columns side by side, filled up with zeros to whole registers."""
    width = sum(block.shape[2] for block in columns)
    filling = np.zeros((*columns[0].shape[:2], _padding(width)), columns[0].dtype)
    return np.concatenate([*columns, filling], axis=2)


def column_masks(
    kept: NDArray[np.uint8] | None, scale: float, first: int, second: int, rest: int
) -> Masks | None:
    """The masks of a block of columns masked first, one masked second, and one not masked."""
    if kept is None:
        return None
    by_column = np.repeat([0, 1, 2], [first, second, rest + _padding(first + second + rest)])
    scales = np.array([[0, 0, 1], [scale, 0, 1], [0, scale, 1], [scale, scale, 1]])
    return Masks(kept, scales[:, by_column])


def _doubled(masks: Masks | None, z: Array) -> tuple[NDArray[np.uint8], Array] | None:
    """The scales of each register's columns twice: for the sums below the kink and above."""
    if masks is None:
        return None
    registers = masks.scale.astype(z.dtype).reshape(4, -1, 1, len(register(z)))
    return masks.kept, np.repeat(registers, 2, axis=2).reshape(4, -1)


def _padding(width: int) -> int:
    return -width % _register_size(width)


def _register_size(width: int) -> int:
    return next((size for size in SIZES if width <= size), SIZES[-1])


def register(z: Array) -> tuple[int, ...]:
    """A tuple as long as a register for the width of an array."""
    return (0,) * _register_size(z.shape[2])
