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

# How many columns can be summed together, in one register. More take several walks: as many as
# fill the largest register, and then the rest.
SIZES = (1, 4, 8, 16)
LINE = 64  # bytes of a cache line: a row that begins with one is read by touching fewer of them


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

    def product(self, *columns: Array, masks: Masks | None = None) -> Array:
        """``M z``, ``[channels, nodes, width]``, with the columns of ``z`` side by side."""
        return self._product(columns, masks, (self.source_scale, self.target_scale), True)

    def transposed_product(self, *columns: Array, masks: Masks | None = None) -> Array:
        """``M^T z``, ``[channels, nodes, width]``, with the columns of ``z`` side by side."""
        # Targets cross the kink downwards: they are above it before, and below it after.
        target, source = (
            np.ascontiguousarray(scale[..., ::-1])
            for scale in (self.target_scale, self.source_scale)
        )
        return self._product(columns, masks, (target, source), False)

    def _product(
        self,
        columns: tuple[Array, ...],
        masks: Masks | None,
        scales: tuple[Array, Array],
        sources_are_inputs: bool,
    ) -> Array:
        found = []
        for z, masked in _in_registers(columns, masks):
            out = _aligned((self.parts, *z.shape), z.dtype)
            with backend.running:
                self._walk(z, out, *scales, masked, sources_are_inputs)
            found.append(out[0] if self.parts == 1 else out.sum(0))
        width = sum(block.shape[2] for block in columns)
        return (found[0] if len(found) == 1 else np.concatenate(found, axis=2))[..., :width]

    def gradients(
        self,
        source_columns: tuple[Array, ...],
        target_columns: tuple[Array, ...],
        slope: float,
        masks: Masks | None,
    ) -> tuple[Array, Array, Array]:
        """Of the sum of ``M_ij (target_i . source_j)``: for links, targets and sources."""
        dtype = source_columns[0].dtype
        grad_link = np.zeros(self.links, dtype)
        grad_target, grad_source = np.zeros((2, self.parts, *source_columns[0].shape[:2]), dtype)
        of_sources, of_targets = _in_registers(source_columns), _in_registers(target_columns, masks)
        for (source, _), (target, masked) in zip(of_sources, of_targets, strict=True):
            with backend.running:
                self._walk_gradients(source, target, masked, dtype.type(slope), grad_link,
                                     grad_target, grad_source)  # fmt: skip
        return grad_link, grad_target.sum(0), grad_source.sum(0)

    @property
    def parts(self) -> int:
        """Into how many parts the hubs of each channel are divided."""
        raise NotImplementedError

    @property
    def links(self) -> int:
        """The number of links."""
        raise NotImplementedError

    def _walk(
        self, z: Array, out: Array, input_scale: Array, output_scale: Array, masks: Masks | None,
        sources_are_inputs: bool,
    ) -> None:  # fmt: skip
        """One product of as many columns as fill registers, each part of the hubs for itself."""
        raise NotImplementedError

    def _walk_gradients(
        self, source_value: Array, target_value: Array, masks: Masks | None, slope: np.floating,
        grad_link: Array, grad_target: Array, grad_source: Array,
    ) -> None:  # fmt: skip
        """Add the gradients of some columns."""
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

    @property
    def links(self) -> int:
        return len(self.link)

    def _walk(
        self, z: Array, out: Array, input_scale: Array, output_scale: Array, masks: Masks | None,
        sources_are_inputs: bool,
    ) -> None:  # fmt: skip
        masked = _doubled(masks, z)
        of_input, of_output = (None, masked) if sources_are_inputs else (masked, None)
        walk_products(self.order, self.bounds, self.column, self.link, of_input, input_scale,
                      of_output, output_scale, z, out, sources_are_inputs, register(z))  # fmt: skip

    def _walk_gradients(
        self, source_value: Array, target_value: Array, masks: Masks | None, slope: np.floating,
        grad_link: Array, grad_target: Array, grad_source: Array,
    ) -> None:  # fmt: skip
        walk_gradients(self.order, self.bounds, self.column, self.link,
                       _doubled(masks, source_value), source_value, self.source_scale,
                       target_value, self.target_scale, slope, grad_link, grad_target,
                       grad_source, register(source_value))  # fmt: skip


def prepare_hubs(
    pattern: Pattern,
    value: Float[Tensor, " links"],
    target: Float[Tensor, "nodes heads"],
    source: Float[Tensor, "nodes heads"],
    slope: float,
    kept: NDArray[np.uint8] | None = None,
) -> HubsByNode:
    """Order all nodes by their scores, and take ``f`` apart into its factors.

    What is ``kept`` of the links of targets is of use in sorted_hubs.py alone.
    """
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
    else:
        # Score and place as one whole number: sorting those is ten times as quick.
        bits = (scores + 0).view(np.int32).astype(np.int64)  # adding makes one zero of the two
        ascending = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        order = (ascending << 32) | np.arange(len(scores))[:, None]
        order.sort(axis=0)
    return np.ascontiguousarray(order[::-1].astype(np.uint32))


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
    columns: tuple[Array, ...], masks: Masks | None = None
) -> Iterator[tuple[Array, Masks | None]]:
    """The columns side by side, in blocks that are filled up with zeros to whole registers."""
    *shape, _ = columns[0].shape
    width, largest = sum(block.shape[2] for block in columns), SIZES[-1]
    for first, last in ((0, width // largest * largest), (width // largest * largest, width)):
        if first == last:
            continue
        size = last - first + _padding(last - first)
        z = _aligned((*shape, size), columns[0].dtype)
        place = -first
        for block in columns:
            low, high = max(place, 0), min(place + block.shape[2], last - first)
            if low < high:
                z[..., low:high] = block[..., low - place : high - place]
            place += block.shape[2]
        z[..., last - first :] = 0
        if masks is None:
            yield z, None
        else:
            scale = np.zeros((4, size), z.dtype)
            scale[:, : last - first] = masks.scale[:, first:last]
            yield z, Masks(masks.kept, scale)


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An empty array that begins with a cache line."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(dtype).reshape(shape)


def _doubled(masks: Masks | None, z: Array) -> tuple[NDArray[np.uint8], Array] | None:
    """The scales of each register's columns twice: for the sums below the kink and above."""
    if masks is None:
        return None
    registers = masks.scale.reshape(4, -1, 1, len(register(z)))
    return masks.kept, np.repeat(registers, 2, axis=2).reshape(4, -1)


def _padding(width: int) -> int:
    return -width % _register_size(width)


def _register_size(width: int) -> int:
    return next((size for size in SIZES if width <= size), SIZES[-1])


def register(z: Array) -> tuple[int, ...]:
    """A tuple as long as a register for the width of an array."""
    return (0,) * _register_size(z.shape[2])
