"""Which rows of a batch a process computes, of several that train one model."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Share:
    """The part of each training batch that is computed by one of several processes.

    Example:
        >>> Share(rank=1, workers=2).of(torch.arange(5))
        tensor([3, 4])
    """

    rank: int = 0
    workers: int = 1

    def divides(self, rows: Tensor) -> bool:
        """Whether there are rows for every process; if not, each computes all of them."""
        return len(rows) >= self.workers

    def of(self, rows: Tensor) -> Tensor:
        """The rows of a batch that this process computes: a stretch of them."""
        return rows.tensor_split(self.workers)[self.rank] if self.divides(rows) else rows

    def balanced(self, rows: Tensor, cost: Tensor) -> Tensor:
        """The rows in an order in which all stretches cost about the same.

        They are dealt out by their cost, from the first process to the last and back again.

        Example:
            >>> Share(workers=2).balanced(torch.arange(5), torch.tensor([9, 5, 1, 2, 8]))
            tensor([0, 3, 2, 4, 1])
        """
        if self.workers == 1:
            return rows
        turn = torch.arange(len(rows))
        process, turns = turn % self.workers, turn // self.workers
        back = (turns % 2 == 1) & (turns < len(rows) // self.workers)
        process[back] = self.workers - 1 - process[back]
        order = cost.argsort(descending=True, stable=True)
        return rows[order[process.argsort(stable=True)]]


EVERYTHING = Share()  # of a process that trains alone
