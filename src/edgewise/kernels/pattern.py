"""Where the entries of all channels of all graphs stand: one stacked CSR matrix.

Node ``i`` in channel ``p`` has the row ``i * channels + p``, so the rows of one node stand
side by side and the concatenation over channels is a reshape. A batch is block diagonal.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor


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
        order = torch.sort(self.stacked_column, stable=True).indices
        counts = torch.bincount(self.stacked_column, minlength=self.num_nodes * self.channels)
        node = (self.row // self.channels).int()
        pattern = Pattern(self.num_nodes, self.channels, _starts(counts), node[order])
        return Transpose(pattern, order.int())


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
    stacked = row.long() * channels + channel
    order = torch.argsort(stacked * num_nodes + column)
    counts = torch.bincount(stacked, minlength=num_nodes * channels)
    return Pattern(num_nodes, channels, _starts(counts), column[order].int()), order


def _starts(counts: Int[Tensor, " rows"]) -> Int[Tensor, " rows_and_one"]:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
