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

Arrays of nodes stand by channel, ``[channels, nodes, width]``, and are walked through in blocks of
columns that fill registers. Arrays of links stand in the order of ``B``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from numba import prange
from numpy.typing import NDArray
from torch import Tensor

from edgewise.kernels import backend
from edgewise.kernels.backend import unsigned
from edgewise.kernels.hub_walks import walk_gradients, walk_products
from edgewise.kernels.pattern import Pattern
from edgewise.kernels.scores import score_factors

Array = NDArray[np.floating]
NodeColumns = Float[Tensor, "channels nodes _"]

_NEGATIVE_ZERO = -(2**31)  # as bits; it is sorted like zero

# How many columns can be summed together, in one register. More take several walks: as many as
# fill the largest register, and then the rest.
SIZES = (1, 4, 8, 16)


@dataclass(frozen=True, eq=False)
class Masks:
    """Dropout on the links of the targets."""

    kept: NDArray[np.uint8]  # which of two masks keep each link: none, first, second, both
    scale: Array  # [4, width], the factor of a link for each of the four


@dataclass(frozen=True, eq=False)
class Hubs:
    """One ``B`` under one pair of scores; a subclass knows how to walk along its columns."""

    target_scale: Array  # [channels, nodes, 2], factors of f below and above the kink
    source_scale: Array  # the same of the sources
    row_scale: NodeColumns | None = field(default=None, kw_only=True)  # a factor of each row of M

    def product(self, *columns: NodeColumns, masks: Masks | None = None) -> NodeColumns:
        """``M z``, with the columns of ``z`` side by side."""
        out = self._product(columns, masks, None, sources_are_inputs=True)
        return out if self.row_scale is None else out.mul_(self.row_scale)

    def transposed_product(self, *columns: NodeColumns, masks: Masks | None = None) -> NodeColumns:
        """``M^T z``, with the columns of ``z`` side by side."""
        return self._product(columns, masks, self.row_scale, sources_are_inputs=False)

    def _product(
        self,
        columns: tuple[NodeColumns, ...],
        masks: Masks | None,
        scale: NodeColumns | None,
        *,
        sources_are_inputs: bool,
    ) -> NodeColumns:
        found = []
        for z, masked in _in_registers(columns, masks, scale):
            out = z.new_empty(self.parts, *z.shape)
            with backend.running:
                self._walk(z.numpy(), out.numpy(), masked, sources_are_inputs)
            found.append(out[0] if self.parts == 1 else out.sum(0))
        width = sum(block.size(2) for block in columns)
        return (found[0] if len(found) == 1 else torch.cat(found, dim=2))[..., :width]

    def gradients(
        self,
        source_columns: tuple[NodeColumns, ...],
        target_columns: tuple[NodeColumns, ...],
        slope: float,
        masks: Masks | None,
        *,
        of_links: bool,
    ) -> tuple[Float[Tensor, " links"] | None, NodeColumns, NodeColumns]:
        """Of the sum of ``M_ij (target_i . source_j)``: for links, targets and sources."""
        dtype = self.source_scale.dtype
        shape = 2, self.parts, *source_columns[0].shape[:2]
        grad_target, grad_source = np.zeros(shape, dtype)
        of_sources = _in_registers(source_columns)
        of_targets = _in_registers(target_columns, masks, self.row_scale)
        grad_link = self._new_link_gradients(of_links)
        for (source, _), (target, masked) in zip(of_sources, of_targets, strict=True):
            with backend.running:
                self._walk_gradients(source.numpy(), target.numpy(), masked, dtype.type(slope),
                                     grad_link, grad_target, grad_source)  # fmt: skip
        link = torch.from_numpy(self._link_gradients(grad_link)) if of_links else None
        by_target, by_source = (
            torch.from_numpy(parts).sum(0).unsqueeze(2) for parts in (grad_target, grad_source)
        )
        return link, by_target, by_source

    @property
    def parts(self) -> int:
        """Into how many parts the hubs of each channel are divided."""
        raise NotImplementedError

    def _walk(self, z: Array, out: Array, masks: Masks | None, sources_are_inputs: bool) -> None:
        """One product of as many columns as fill registers, each part of the hubs for itself."""
        raise NotImplementedError

    def _new_link_gradients(self, wanted: bool) -> tuple[Array, ...]:
        """Zeros for gradients of the links, in the form that suits the walk."""
        raise NotImplementedError

    def _walk_gradients(
        self, source_value: Array, target_value: Array, masks: Masks | None, slope: np.floating,
        grad_link: tuple[Array, ...], grad_target: Array, grad_source: Array,
    ) -> None:  # fmt: skip
        """Add the gradients of some columns."""
        raise NotImplementedError

    def _link_gradients(self, found: tuple[Array, ...]) -> Array:
        """The gradients of the links in the order of ``B``."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class HubsByNode(Hubs):
    """Walked through node by node."""

    order: NDArray[np.uint32]  # [2 nodes, heads]: sources, and targets counted on from them
    bounds: NDArray[np.uint64]  # [parts + 1, channels, nodes], the links of each node by part
    column: NDArray[np.uint32]  # the hub of each link
    link: Array  # the values of B

    @property
    def parts(self) -> int:
        return len(self.bounds) - 1

    def _walk(self, z: Array, out: Array, masks: Masks | None, sources_are_inputs: bool) -> None:
        sides = [(None, self.source_scale), (_doubled(masks, z), self.target_scale)]
        if not sources_are_inputs:
            # Targets cross the kink downwards: they are above it before, and below it after.
            sides = [(mask, np.ascontiguousarray(scale[..., ::-1])) for mask, scale in sides[::-1]]
        inputs, outputs = sides
        walk_products(self.order, self.bounds, self.column, self.link, *inputs, *outputs, z, out,
                      sources_are_inputs, register(z.shape[2]))  # fmt: skip

    def _new_link_gradients(self, wanted: bool) -> tuple[Array, ...]:
        return (np.zeros_like(self.link),)

    def _walk_gradients(
        self, source_value: Array, target_value: Array, masks: Masks | None, slope: np.floating,
        grad_link: tuple[Array, ...], grad_target: Array, grad_source: Array,
    ) -> None:  # fmt: skip
        walk_gradients(self.order, self.bounds, self.column, self.link,
                       _doubled(masks, source_value), source_value, self.source_scale,
                       target_value, self.target_scale, slope, *grad_link, grad_target,
                       grad_source, register(source_value.shape[2]))  # fmt: skip

    def _link_gradients(self, found: tuple[Array, ...]) -> Array:
        return found[0]


def prepare_hubs(
    pattern: Pattern,
    value: Float[Tensor, " links"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
) -> HubsByNode:
    """Order all nodes by their scores, and take ``f`` apart into its factors."""
    return HubsByNode(
        *scales_by_channel(pattern, target, source, slope),
        descending(torch.cat([source, -target]).numpy()),
        unsigned(pattern.entry_bounds),
        unsigned(pattern.column),
        value.contiguous().numpy(),
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
        return np.ascontiguousarray(order[::-1].astype(np.uint32))
    # Score and place as one whole number: sorting those is ten times as quick.
    keys = np.empty(scores.shape[::-1], np.int64)
    found: NDArray[np.uint32] = np.empty(scores.shape, np.uint32)
    with backend.running:
        _as_keys(np.ascontiguousarray(scores).view(np.int32), keys)
        keys.sort(axis=1)
        _as_places(keys, found)
    return found


@backend.jit(parallel=True)
def _as_keys(bits, keys):  # type: ignore[no-untyped-def]
    """Whole numbers in the order of 32-bit floats with these bits, and below them their place."""
    for k in prange(len(bits)):
        for column in range(bits.shape[1]):
            word = np.int64(bits[k, column])
            if word == _NEGATIVE_ZERO:
                word = np.int64(0)
            ascending = word ^ ((word >> 31) & np.int64(0x7FFFFFFF))
            keys[column, k] = (ascending << 32) | k


@backend.jit(parallel=True)
def _as_places(keys, order):  # type: ignore[no-untyped-def]
    """The places of ascending keys, in descending order."""
    last = len(order) - 1
    for k in prange(len(order)):
        for column in range(order.shape[1]):
            order[k, column] = np.uint32(keys[column, last - k] & np.int64(0xFFFFFFFF))


def column_masks(
    kept: NDArray[np.uint8] | None, scale: float, first: int, second: int, rest: int
) -> Masks | None:
    """The masks of a block of columns masked first, one masked second, and one not masked."""
    if kept is None:
        return None
    by_column = np.repeat([0, 1, 2], [first, second, rest])
    scales = np.array([[0, 0, 1], [scale, 0, 1], [0, scale, 1], [scale, scale, 1]])
    return Masks(kept, scales[:, by_column])


def _in_registers(
    columns: tuple[NodeColumns, ...],
    masks: Masks | None = None,
    scale: NodeColumns | None = None,
) -> Iterator[tuple[NodeColumns, Masks | None]]:
    """The columns side by side, in blocks that are filled up with zeros to whole registers.

    Each block is an array of its own, which torch lets begin with a cache line.
    """
    width = sum(block.size(2) for block in columns)
    whole = width // SIZES[-1] * SIZES[-1]
    for first, last in ((0, whole), (whole, width)):
        if first == last:
            continue
        filled = last - first
        z = columns[0].new_empty(*columns[0].shape[:2], filled + _padding(filled))
        place = -first
        for block in columns:
            low, high = max(place, 0), min(place + block.size(2), filled)
            if low < high:
                z[..., low:high] = block[..., low - place : high - place]
            place += block.size(2)
        z[..., filled:] = 0
        if scale is not None:
            z *= scale
        if masks is None:
            yield z, None
        else:
            by_column = np.zeros((4, z.size(2)), columns[0].numpy().dtype)
            by_column[:, :filled] = masks.scale[:, first:last]
            yield z, Masks(masks.kept, by_column)


def _doubled(masks: Masks | None, z: Array) -> tuple[NDArray[np.uint8], Array] | None:
    """The scales of each register's columns twice: for the sums below the kink and above."""
    if masks is None:
        return None
    registers = masks.scale.reshape(4, -1, 1, len(register(z.shape[2])))
    return masks.kept, np.repeat(registers, 2, axis=2).reshape(4, -1)


def _padding(width: int) -> int:
    return -width % _register_size(width)


def _register_size(width: int) -> int:
    return next((size for size in SIZES if width <= size), SIZES[-1])


def register(width: int) -> tuple[int, ...]:
    """A tuple as long as a register for so many columns."""
    return (0,) * _register_size(width)
