"""The pattern of ``B B^T``, two hops of ``B``: counted, and refused, before it is stored."""

import numpy as np
import torch
from jaxtyping import Int
from numba import prange
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.kernels import backend
from edgewise.kernels.memory import memory_limit

# Column, value and gradient, and the same for the transpose: what training holds per entry.
BYTES_PER_ENTRY = 32
MOST_ENTRIES = 2**31  # places of entries are 32 bits wide
# Counting visits every two-step path; past this many the bound is answer enough.
COUNTABLE_PATHS = 20_000_000_000


def two_hops(
    start: Int[Tensor, " rows_and_one"],
    column: Int[Tensor, " links"],
    column_start: Int[Tensor, " rows_and_one"],
    column_row: Int[Tensor, " links"],
    channels: int,
) -> tuple[Int[Tensor, " rows_and_one"], Int[Tensor, " entries"]]:
    """Row starts and columns of ``B B^T``.

    Args:
        start: Row starts of the stacked ``B``.
        column: Its columns.
        column_start: Row starts of its transpose.
        column_row: The columns of its transpose: the nodes with an entry in each column of ``B``.
        channels: Number of rows of a node.

    Raises:
        EdgewiseError: If they would not fit into half of the machine's memory.
    """
    arrays = [tensor.cpu().numpy() for tensor in (start, column, column_start, column_row)]
    nodes = (len(start) - 1) // channels
    column_size = column_start.diff()
    paths = int((column_size * column_size).sum())
    if paths * BYTES_PER_ENTRY > memory_limit() and paths > COUNTABLE_PATHS:
        raise _too_large(paths, "up to ", int(column_size.max()))
    with backend.running:
        counts = torch.from_numpy(_count(*arrays, nodes, channels))
    entries = int(counts.sum())
    if entries * BYTES_PER_ENTRY > memory_limit() or entries >= MOST_ENTRIES:
        raise _too_large(entries, "", int(column_size.max()))
    outer_start = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    outer_column = torch.empty(entries, dtype=torch.int32)
    with backend.running:
        _fill(*arrays, outer_start.numpy(), outer_column.numpy(), nodes, channels)
    return outer_start.to(start.device), outer_column.to(start.device)


def _too_large(entries: int, bound: str, largest: int) -> EdgewiseError:
    needed, limit = entries * BYTES_PER_ENTRY, memory_limit()
    allowed = f"{limit / 2**30:.1f} GiB" if needed > limit else f"{MOST_ENTRIES - 1:,} entries"
    return EdgewiseError(
        f"the two-hop pattern of these edges has {bound}{entries:,} entries "
        f"({needed / 2**30:.1f} GiB to train on; its largest hub alone joins {largest:,} "
        f"nodes), more than the {allowed} allowed; use convolution, row normalisation, or "
        "attention without adaptation, or cap the largest hubs"
    )


# The kernels work through the rows in a few long blocks, each with its own dense row of marks or
# sums: clearing only what a row has touched costs less than making a new one.
BLOCKS = 64


@backend.jit(parallel=True)
def _count(start, column, column_start, column_row, nodes, channels):  # type: ignore[no-untyped-def]
    rows = nodes * channels
    counts = np.zeros(rows, np.int64)
    for block in prange(BLOCKS):
        marked_by = np.full(nodes, -1, np.int64)
        for r in range(block * rows // BLOCKS, (block + 1) * rows // BLOCKS):
            for e in range(start[r], start[r + 1]):
                k = column[e] * channels + r % channels
                for m in range(column_start[k], column_start[k + 1]):
                    if marked_by[column_row[m]] != r:
                        marked_by[column_row[m]] = r
                        counts[r] += 1
    return counts


@backend.jit(parallel=True)
def _fill(  # type: ignore[no-untyped-def]
    start, column, column_start, column_row, outer_start, outer_column, nodes, channels
):
    rows = nodes * channels
    for block in prange(BLOCKS):
        marked_by = np.full(nodes, -1, np.int64)
        for r in range(block * rows // BLOCKS, (block + 1) * rows // BLOCKS):
            filled = outer_start[r]
            for e in range(start[r], start[r + 1]):
                k = column[e] * channels + r % channels
                for m in range(column_start[k], column_start[k + 1]):
                    if marked_by[column_row[m]] != r:
                        marked_by[column_row[m]] = r
                        outer_column[filled] = column_row[m]
                        filled += 1
            outer_column[outer_start[r] : filled].sort()
