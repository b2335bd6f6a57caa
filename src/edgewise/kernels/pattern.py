"""The sparsity pattern of all channels of all graphs: one stacked CSR matrix.

Node ``i`` in channel ``p`` has the row ``i * channels + p``, so the rows of one node stand
side by side and the concatenation over channels is a reshape. A batch is block diagonal.
"""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.kernels import backend
from edgewise.kernels.two_hops import MOST_ENTRIES, two_hops


@dataclass(frozen=True, eq=False)
class Pattern:
    """Row starts and columns of a stacked matrix. The values live elsewhere, in this order."""

    num_nodes: int
    channels: int
    start: Int[Tensor, " rows_and_one"]  # int64, rows = num_nodes * channels
    column: Int[Tensor, " entries"]  # int32, the node of the column, without its channel
    # Whether a row without entries stands for a self-loop of 1, which is not stored.
    lone_loops: bool = field(default=False, kw_only=True)

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
        order, start = _stable_argsort(self.stacked_column, self.num_nodes * self.channels)
        node = (self.row // self.channels).int()
        pattern = self._with_entries(start, node[order])
        return Transpose(pattern, order.int())

    @cached_property
    def entry_bounds(self) -> Int[Tensor, "bounds channels nodes"]:
        """Where the entries of every row begin and end.

        A single channel has a bound between the two: left of it stand the columns that hold the
        first half of all entries, so that two threads can work on the channel.
        """
        bounds = [self.start[:-1], self.start[1:]]
        if self.channels == 1:
            before = self.hub_parts[1]
            in_left = torch.cat([self.start.new_zeros(1), (self.column < before).cumsum(0)])
            bounds.insert(1, self.start[:-1] + in_left[self.start].diff())
        by_node = torch.stack(bounds).reshape(len(bounds), self.num_nodes, self.channels)
        return by_node.transpose(1, 2).contiguous()

    @cached_property
    def _by_hub(self) -> tuple[Int[Tensor, " entries"], Int[Tensor, " hubs_and_one"]]:
        hub = self.row % self.channels * self.num_nodes + self.column
        return _stable_argsort(hub, self.channels * self.num_nodes)

    @property
    def hub_start(self) -> Int[Tensor, " hubs_and_one"]:
        """Where the entries of each column, a hub, begin, one channel after the other."""
        return self._by_hub[1]

    @cached_property
    def hub_links(self) -> tuple[Int[Tensor, " entries"], Int[Tensor, " entries"]]:
        """The nodes of the entries of each hub, and where these entries stand; int32."""
        order = self._by_hub[0]
        return (self.row // self.channels).int()[order], order.int()

    @cached_property
    def hub_parts(self) -> Int[Tensor, "parts_and_one channels"]:
        """The first hub of every part of a channel, as in :attr:`entry_bounds`."""
        parts = self.start.new_tensor([[0], [self.num_nodes]]).repeat(1, self.channels)
        if self.channels == 1:
            half = torch.searchsorted(self.hub_start, self.num_entries // 2)
            parts = torch.cat([parts[:1], half.reshape(1, 1), parts[1:]])
        return parts

    @cached_property
    def paths(self) -> int:
        """How many pairs of entries share a column: the terms of ``B B^T``."""
        column_size = self.transpose.pattern.start.diff()
        return int((column_size * column_size).sum())

    @cached_property
    def outer(self) -> "Pattern":
        """The pattern of ``B B^T``, two hops of this one; built once.

        Raises:
            EdgewiseError: If it would not fit into half of the machine's memory.
        """
        transposed = self.transpose.pattern
        start, column = two_hops(
            self.start, self.column, transposed.start, transposed.column, self.channels
        )
        return self._with_entries(start, column)

    def _with_entries(self, start: Tensor, column: Tensor) -> "Pattern":
        return Pattern(self.num_nodes, self.channels, start, column, lone_loops=self.lone_loops)

    @cached_property
    def lone(self) -> Int[Tensor, " lone"]:
        """The stacked rows whose self-loop of 1 is not stored."""
        return (self.start.diff() == 0).nonzero().squeeze(1) if self.lone_loops else self.start[:0]


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


def stack(
    row: Int[Tensor, " entries"],
    column: Int[Tensor, " entries"],
    channel: Int[Tensor, " entries"],
    num_nodes: int,
    channels: int,
) -> tuple[Pattern, Int[Tensor, " entries"]]:
    """Sort entries into a pattern; also give the order they were taken in."""
    if len(row) >= MOST_ENTRIES:
        raise EdgewiseError(
            f"there are {len(row):,} edge values that are not zero, and {MOST_ENTRIES:,} are too "
            "many; use fewer channels, or a part of the graph"
        )
    by_column, _ = _stable_argsort(column.long(), num_nodes)
    stacked = row.long() * channels + channel
    by_row, start = _stable_argsort(stacked[by_column], num_nodes * channels)
    order = by_column[by_row]
    return Pattern(num_nodes, channels, start, column[order].int()), order


def _stable_argsort(
    key: Int[Tensor, " entries"], keys: int
) -> tuple[Int[Tensor, " entries"], Int[Tensor, " keys_and_one"]]:
    """The entries by ascending key, in their order among equals, and where each key begins."""
    if key.device.type == "cpu" and backend.compiled():
        order, start = torch.empty_like(key), key.new_zeros(keys + 1)
        _counting_sort(key.numpy(), order.numpy(), start.numpy())
        return order, start
    counts = torch.bincount(key, minlength=keys)
    return torch.sort(key, stable=True).indices, torch.cat([counts.new_zeros(1), counts.cumsum(0)])


@backend.jit()
def _counting_sort(key, order, start):  # type: ignore[no-untyped-def]
    """A stable argsort in time linear in entries and keys."""
    for k in key:
        start[k + 1] += 1
    for k in range(1, len(start)):
        start[k] += start[k - 1]
    place = start[:-1].copy()
    for e in range(len(key)):
        order[place[key[e]]] = e
        place[key[e]] += 1
