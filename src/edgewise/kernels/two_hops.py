"""Where ``B B^T`` has entries: two hops of ``B``, counted, and refused, before they are stored."""

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
    hub_start: Int[Tensor, " rows_and_one"],
    member: Int[Tensor, " links"],
    channels: int,
) -> tuple[Int[Tensor, " rows_and_one"], Int[Tensor, " entries"]]:
    """Row starts and columns of ``B B^T``.

    Args:
        start: Row starts of the stacked ``B``.
        column: Its columns.
        hub_start: Row starts of its transpose, in which a row is a hub.
        member: The nodes of each hub.
        channels: How many rows a node has.

    Raises:
        EdgewiseError: If they would not fit into half of the machine's memory.
    """
    arrays = [tensor.cpu().numpy() for tensor in (start, column, hub_start, member)]
    nodes = (len(start) - 1) // channels
    hub_size = hub_start.diff()
    paths = int((hub_size * hub_size).sum())
    if paths * BYTES_PER_ENTRY > memory_limit() and paths > COUNTABLE_PATHS:
        raise _too_large(paths, "up to ", int(hub_size.max()))
    with backend.running:
        counts = torch.from_numpy(_count(*arrays, nodes, channels))
    entries = int(counts.sum())
    if entries * BYTES_PER_ENTRY > memory_limit() or entries >= MOST_ENTRIES:
        raise _too_large(entries, "", int(hub_size.max()))
    both_start = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    both_column = torch.empty(entries, dtype=torch.int32)
    with backend.running:
        _fill(*arrays, both_start.numpy(), both_column.numpy(), nodes, channels)
    return both_start.to(start.device), both_column.to(start.device)


def _too_large(entries: int, about: str, largest: int) -> EdgewiseError:
    needed, limit = entries * BYTES_PER_ENTRY, memory_limit()
    allowed = f"{limit / 2**30:.1f} GiB" if needed > limit else f"{MOST_ENTRIES - 1:,} entries"
    return EdgewiseError(
        f"the two-hop pattern of these edges has {about}{entries:,} entries "
        f"({needed / 2**30:.1f} GiB to train on; its largest hub alone joins {largest:,} "
        f"nodes), more than the {allowed} allowed; use convolution, row normalisation, or "
        "attention without adaptation, or cap the largest hubs"
    )


# The kernels below work through the rows in a few long runs, each with its own dense row of
# sums: clearing only what a row has touched costs less than making a new one.
RUNS = 64


@backend.jit(parallel=True)
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


@backend.jit(parallel=True)
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
