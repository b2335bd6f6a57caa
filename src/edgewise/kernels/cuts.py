"""Some graphs of a batch: blocks of a block-diagonal pattern, without sorting again."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from edgewise.kernels import backend
from edgewise.kernels.pattern import Pattern, Transpose


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
        transposed = self.whole.transpose
        pattern = cut_pattern(transposed.pattern, self.offset, self.chosen)
        order = self.place.new_empty(self.num_entries, dtype=torch.int32)
        _cut_order(self.whole.start.numpy(), transposed.order.numpy(), self.offset.numpy(),
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
    _cut(whole.start.numpy(), whole.column.numpy(), offset.numpy(), chosen.numpy(),
         start.numpy(), column.numpy(), place.numpy(), whole.channels)  # fmt: skip
    nodes = rows // whole.channels
    return PatternCut(nodes, whole.channels, start, column, whole, offset, chosen, place,
                      lone_loops=whole.lone_loops)  # fmt: skip


@backend.jit()
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


@backend.jit()
def _cut_order(start, order, offset, chosen, new_order, channels):  # type: ignore[no-untyped-def]
    filled = 0
    for block in chosen:
        base, end = start[offset[block] * channels], start[offset[block + 1] * channels]
        for e in range(base, end):
            new_order[filled + e - base] = order[e] - base + filled
        filled += end - base
