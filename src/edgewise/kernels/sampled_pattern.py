"""The stacked matrix of a hop of sampled neighbours, encoded, scaled and sorted in one pass."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.kernels import backend
from edgewise.kernels.channel_sums import Encoding, encoded
from edgewise.kernels.pattern import Pattern


def hop_pattern(
    near: Int[Tensor, " pairs"],
    far: Int[Tensor, " pairs"],
    there: Float[Tensor, "pairs raw"],
    back: Float[Tensor, "pairs raw"],
    weight: Float[Tensor, " pairs"],
    encoding: Encoding,
    rows: Float[Tensor, "rows width"],
    columns: Float[Tensor, "columns width"] | None,
    num_nodes: int,
) -> tuple[Pattern, Float[Tensor, " entries"]]:
    """Entries of the pairs and of self-loops, which are 1 in channels where none is given.

    Args:
        near: The row of each pair, ascending.
        far: Its column.
        there: Values of the pair's own edge.
        back: Values of its reverse.
        weight: A factor of each pair that is no self-loop.
        encoding: How both become channels.
        rows: A factor of each row and channel.
        columns: A factor of each column and channel; None: 1.
        num_nodes: Of the pattern, whose rows are empty from ``len(rows)`` on.
    """
    channels = rows.size(1)
    start = torch.zeros(num_nodes * channels + 1, dtype=torch.int64)
    pairs = near.numpy(), far.numpy(), there.contiguous().numpy(), back.contiguous().numpy()
    _count(*pairs, int(encoding), len(rows), channels, start.numpy())
    column, value = torch.empty(int(start[-1]), dtype=torch.int32), rows.new_empty(int(start[-1]))
    scales = rows.numpy(), rows[:0].numpy() if columns is None else columns.numpy()
    _fill(*pairs, weight.numpy(), int(encoding), *scales, start.numpy(), column.numpy(),
          value.numpy())  # fmt: skip
    return Pattern(num_nodes, channels, start, column), value


@backend.jit(nogil=True)
def _count(near, far, there, back, encoding, rows, channels, start):  # type: ignore[no-untyped-def]
    raw = there.shape[1]
    for place in range(rows * channels):
        start[place + 1] = 1  # a self-loop
    for k in range(len(near)):
        if near[k] != far[k]:
            for c in range(channels):
                p = c % raw
                if encoded(encoding, there[k, p], back[k, p], c, raw) != 0:
                    start[near[k] * channels + c + 1] += 1
    for place in range(1, len(start)):
        start[place] += start[place - 1]


@backend.jit(nogil=True)
def _fill(  # type: ignore[no-untyped-def]
    near, far, there, back, weight, encoding, rows, columns, start, column, value
):
    raw, channels = there.shape[1], rows.shape[1]
    place = start[: len(rows) * channels].copy()
    for i in range(len(rows)):
        for c in range(channels):
            e = place[i * channels + c]
            place[i * channels + c] += 1
            column[e] = i
            value[e] = rows[i, c] * (columns[i, c] if len(columns) else 1)
    for k in range(len(near)):
        i, j = near[k], far[k]
        for c in range(channels):
            p = c % raw
            found = encoded(encoding, there[k, p], back[k, p], c, raw)
            if found == 0:
                continue
            if i == j:
                value[start[i * channels + c]] *= found
                continue
            e = place[i * channels + c]
            place[i * channels + c] += 1
            column[e] = j
            value[e] = found * weight[k] * rows[i, c] * (columns[j, c] if len(columns) else 1)
