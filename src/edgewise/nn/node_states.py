"""A row of numbers for every node of a large graph, in memory or in a temporary file."""

from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from edgewise.kernels.memory import memory_limit

# What some nodes are given to, in their order, with what was computed for each.
Take = Callable[[Int[np.ndarray, " rows"], Float[Tensor, "rows out"]], None]

IN_MEMORY = 0.25  # of the memory limit, that one array may take


class NodeStates:
    """What is known of nodes; the array is made when the first rows are put.

    Args:
        num_nodes: Number of nodes.
        device: Where rows are taken to.
    """

    def __init__(self, num_nodes: int, device: torch.device) -> None:
        self._num_nodes, self._device, self._rows = num_nodes, device, np.empty((0, 0))

    def put(self, nodes: Int[np.ndarray, " rows"], value: Float[Tensor, "rows width"]) -> None:
        found = value.cpu().numpy()
        if not self._rows.size:
            self._rows = _array((self._num_nodes, found.shape[1]), found.dtype)
        self._rows[nodes] = found

    def take(self, nodes: Int[np.ndarray, " rows"]) -> Float[Tensor, "rows width"]:
        taken = torch.from_numpy(np.take(np.asarray(self._rows), nodes, axis=0))
        return taken.to(self._device)

    def clear(self) -> None:
        """Give the memory back."""
        self._rows = np.empty((0, 0))


class Results:
    """Rows that are computed some at a time, put where they belong at once.

    Small results that are kept between the large arrays of blocks would leave gaps in memory.

    Args:
        rows: How many there will be.
    """

    def __init__(self, rows: int) -> None:
        self._count, self._filled = rows, 0
        self._rows: Tensor | None = None

    def append(self, some: Float[Tensor, "some width"]) -> None:
        if self._rows is None:
            self._rows = some.new_empty(self._count, *some.shape[1:])
        self._rows[self._filled : self._filled + len(some)] = some
        self._filled += len(some)

    @property
    def rows(self) -> Float[Tensor, "rows width"]:
        """All of them."""
        assert self._rows is not None
        return self._rows


def _array(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
    """In memory if it fits, else in a file that is gone when nobody reads it."""
    if shape[0] * shape[1] * dtype.itemsize <= IN_MEMORY * memory_limit():
        return np.empty(shape, dtype)
    with TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=shape)
