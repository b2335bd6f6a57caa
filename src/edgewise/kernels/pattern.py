"""Where the entries of all channels of all graphs stand: one stacked CSR matrix.

Node ``i`` in channel ``p`` has the row ``i * channels + p``, so the rows of one node stand
side by side and the concatenation over channels is a reshape. A batch is block diagonal.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int
from numba import njit, prange
from torch import Tensor

from edgewise.errors import EdgewiseError
from edgewise.kernels import backend
from edgewise.kernels.memory import memory_limit

# Column, value and gradient, and the same for the transpose: what training holds per entry.
BYTES_PER_ENTRY = 32
# Counting visits every two-step path; past this many the bound is answer enough.
COUNTABLE_PATHS = 20_000_000_000


@dataclass(frozen=True, eq=False)
class Pattern:
    """Row starts and columns of a stacked matrix. The values live elsewhere, in this order."""

    num_nodes: int
    channels: int
    start: Int[Tensor, " rows_and_one"]  # int64, rows = num_nodes * channels
    column: Int[Tensor, " entries"]  # int32, the node of the column, without its channel

    @property
    def num_entries(self) -> int:
        return self.column.size(0)

    @cached_property
    def row(self) -> Int[Tensor, " entries"]:
        """The stacked row of each entry."""
        rows = torch.arange(self.num_nodes * self.channels, device=self.start.device)
        return rows.repeat_interleave(self.start.diff(), output_size=self.num_entries)

    @cached_property
    def stacked_column(self) -> Int[Tensor, " entries"]:
        """The column of each entry together with its channel, stacked as rows are."""
        return self.column.long() * self.channels + self.row % self.channels

    @cached_property
    def transpose(self) -> "Transpose":
        """The same entries by columns; built once."""
        order, start = _sorted(self.stacked_column, self.num_nodes * self.channels)
        node = (self.row // self.channels).int()
        pattern = Pattern(self.num_nodes, self.channels, start, node[order])
        return Transpose(pattern, order.int())

    @cached_property
    def paths(self) -> int:
        """How many pairs of entries share a column: the terms of ``B B^T``."""
        hub_size = self.transpose.pattern.start.diff()
        return int((hub_size * hub_size).sum())

    @cached_property
    def outer(self) -> "Pattern":
        """The pattern of ``B B^T``, two hops of this one; built once.

        Raises:
            EdgewiseError: If it would not fit into half of the machine's memory.
        """
        return _outer_pattern(self)


@dataclass(frozen=True, eq=False)
class Transpose:
    """The pattern of the transposed matrix."""

    pattern: Pattern
    order: Int[Tensor, " entries"]  # int32, where each entry stands in the original pattern

    @cached_property
    def inverse(self) -> Int[Tensor, " entries"]:
        """Where each entry of the original pattern stands in the transpose."""
        places = torch.arange(len(self.order), device=self.order.device, dtype=self.order.dtype)
        return torch.empty_like(self.order).index_copy_(0, self.order.long(), places)


@dataclass(frozen=True, eq=False)
class PatternCut(Pattern):
    """Some blocks of a block-diagonal pattern. What is built from it is cut from the whole's."""

    whole: Pattern
    offset: Int[Tensor, " blocks_and_one"]  # the first node of each block of the whole
    chosen: Int[Tensor, " chosen"]
    place: Int[Tensor, " entries"]  # where each entry stands in the whole

    @cached_property
    def transpose(self) -> Transpose:
        # A block's entries fill the same places by columns as by rows.
        turned = self.whole.transpose
        pattern = cut_pattern(turned.pattern, self.offset, self.chosen)
        order = self.place.new_empty(self.num_entries, dtype=torch.int32)
        with backend.running:
            _cut_order(self.whole.start.numpy(), turned.order.numpy(), self.offset.numpy(),
                       self.chosen.numpy(), order.numpy(), self.channels)  # fmt: skip
        return Transpose(pattern, order)

    @cached_property
    def outer(self) -> Pattern:
        return cut_pattern(self.whole.outer, self.offset, self.chosen)


def cut_pattern(
    whole: Pattern, offset: Int[Tensor, " blocks_and_one"], chosen: Int[Tensor, " chosen"]
) -> PatternCut:
    """The chosen blocks of a block-diagonal pattern on the CPU, one after the other."""
    first, last = offset[chosen] * whole.channels, offset[chosen + 1] * whole.channels
    rows = int((last - first).sum())
    start = torch.empty(rows + 1, dtype=torch.int64)
    place = torch.empty(int((whole.start[last] - whole.start[first]).sum()), dtype=torch.int64)
    column = torch.empty(len(place), dtype=torch.int32)
    with backend.running:
        _cut(whole.start.numpy(), whole.column.numpy(), offset.numpy(), chosen.numpy(),
             start.numpy(), column.numpy(), place.numpy(), whole.channels)  # fmt: skip
    nodes = rows // whole.channels
    return PatternCut(nodes, whole.channels, start, column, whole, offset, chosen, place)


def stack(
    row: Int[Tensor, " entries"],
    column: Int[Tensor, " entries"],
    channel: Int[Tensor, " entries"],
    num_nodes: int,
    channels: int,
) -> tuple[Pattern, Int[Tensor, " entries"]]:
    """Sort entries into a pattern; also give the order they were taken in."""
    by_column, _ = _sorted(column.long(), num_nodes)
    stacked = row.long() * channels + channel
    by_row, start = _sorted(stacked[by_column], num_nodes * channels)
    order = by_column[by_row]
    return Pattern(num_nodes, channels, start, column[order].int()), order


def _sorted(
    key: Int[Tensor, " entries"], keys: int
) -> tuple[Int[Tensor, " entries"], Int[Tensor, " keys_and_one"]]:
    """The entries by ascending key, in their order among equals, and where each key begins."""
    if key.device.type == "cpu" and backend.compiled():
        order, start = torch.empty_like(key), key.new_zeros(keys + 1)
        _count_into_place(key.numpy(), order.numpy(), start.numpy())
        return order, start
    counts = torch.bincount(key, minlength=keys)
    return torch.sort(key, stable=True).indices, torch.cat([counts.new_zeros(1), counts.cumsum(0)])


@njit(cache=True)
def _count_into_place(key, order, start):  # type: ignore[no-untyped-def]
    """Linear in entries and keys, where a sort would compare."""
    for k in key:
        start[k + 1] += 1
    for k in range(1, len(start)):
        start[k] += start[k - 1]
    place = start[:-1].copy()
    for e in range(len(key)):
        order[place[key[e]]] = e
        place[key[e]] += 1


def _outer_pattern(factor: Pattern) -> Pattern:
    if factor.paths * BYTES_PER_ENTRY > memory_limit():
        _refuse_if_too_large(factor)
    counts = _counts(factor)
    start = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    column = torch.empty(int(start[-1]), dtype=torch.int32)
    turned = factor.transpose.pattern
    with backend.running:
        _fill(factor.start.cpu().numpy(), factor.column.cpu().numpy(), turned.start.cpu().numpy(),
              turned.column.cpu().numpy(), start.numpy(), column.numpy(), factor.num_nodes,
              factor.channels)  # fmt: skip
    device = factor.start.device
    return Pattern(factor.num_nodes, factor.channels, start.to(device), column.to(device))


def _counts(factor: Pattern) -> Int[Tensor, " rows"]:
    """How many entries each row of ``B B^T`` has."""
    turned = factor.transpose.pattern
    with backend.running:
        counts = _count(factor.start.cpu().numpy(), factor.column.cpu().numpy(),
                        turned.start.cpu().numpy(), turned.column.cpu().numpy(),
                        factor.num_nodes, factor.channels)  # fmt: skip
    return torch.from_numpy(counts)


def _refuse_if_too_large(factor: Pattern) -> None:
    entries, about = factor.paths, "up to "
    if entries <= COUNTABLE_PATHS:
        entries, about = int(_counts(factor).sum()), ""
    needed, limit = entries * BYTES_PER_ENTRY, memory_limit()
    if needed > limit:
        largest = int(factor.transpose.pattern.start.diff().max())
        raise EdgewiseError(
            f"the two-hop pattern of these edges has {about}{entries:,} entries "
            f"({needed / 2**30:.1f} GiB to train on; its largest hub alone joins {largest:,} "
            f"nodes), more than the {limit / 2**30:.1f} GiB allowed; use convolution, row "
            "normalisation, or attention without adaptation, or cap the largest hubs"
        )


# The kernels below work through the rows in a few long runs, each with its own dense row of
# sums: clearing only what a row has touched costs less than making a new one.
RUNS = 64


@njit(parallel=True, cache=True)
def _count(start, column, hub_start, member, nodes, channels):  # type: ignore[no-untyped-def]
    rows = nodes * channels
    counts = np.zeros(rows, np.int64)
    for run in prange(RUNS):
        seen = np.full(nodes, -1, np.int64)
        for r in range(run * rows // RUNS, (run + 1) * rows // RUNS):
            for e in range(start[r], start[r + 1]):
                hub = column[e] * channels + r % channels
                for m in range(hub_start[hub], hub_start[hub + 1]):
                    if seen[member[m]] != r:
                        seen[member[m]] = r
                        counts[r] += 1
    return counts


@njit(parallel=True, cache=True)
def _fill(  # type: ignore[no-untyped-def]
    start, column, hub_start, member, both_start, both_column, nodes, channels
):
    rows = nodes * channels
    for run in prange(RUNS):
        seen = np.full(nodes, -1, np.int64)
        for r in range(run * rows // RUNS, (run + 1) * rows // RUNS):
            filled = both_start[r]
            for e in range(start[r], start[r + 1]):
                hub = column[e] * channels + r % channels
                for m in range(hub_start[hub], hub_start[hub + 1]):
                    if seen[member[m]] != r:
                        seen[member[m]] = r
                        both_column[filled] = member[m]
                        filled += 1
            both_column[both_start[r] : filled].sort()


@njit(cache=True)
def _cut(start, column, offset, chosen, new_start, new_column, place, channels):  # type: ignore[no-untyped-def]
    row, filled, node = 0, 0, 0
    for block in chosen:
        first, last = offset[block] * channels, offset[block + 1] * channels
        base = start[first]
        for r in range(first, last):
            new_start[row] = start[r] - base + filled
            row += 1
        for e in range(base, start[last]):
            place[filled] = e
            new_column[filled] = column[e] - offset[block] + node
            filled += 1
        node += offset[block + 1] - offset[block]
    new_start[row] = filled


@njit(cache=True)
def _cut_order(start, order, offset, chosen, new_order, channels):  # type: ignore[no-untyped-def]
    filled = 0
    for block in chosen:
        base, end = start[offset[block] * channels], start[offset[block + 1] * channels]
        for e in range(base, end):
            new_order[filled + e - base] = order[e] - base + filled
        filled += end - base
