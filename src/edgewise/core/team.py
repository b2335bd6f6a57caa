"""Processes that train one model together, and what they tell one another.

By torch.distributed; what is told in every step, by memory if they share some.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import load, save
from torch import Tensor

from edgewise.core.errors import EdgewiseError


class WorkerLost(EdgewiseError):
    """A process of a team is gone; what the team had written can be continued."""


def _gone() -> WorkerLost:
    return WorkerLost("a worker ended unexpectedly, and the others with it")


@runtime_checkable
class Exchange(Protocol):
    """A faster way than that of torch.distributed, which all processes take."""

    def summed(self, value: Tensor) -> Tensor: ...

    def stacked(self, value: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Team:
    """The processes that train one model; all of them make the same calls in the same order.

    Args:
        rank: The number of this process; the one with 0 decides and writes.
        workers: How many processes there are.
        device: Where tensors must be to be sent.
        why: The error that says why another process no longer answers.
        exchange: How tensors are told in every step; without it by torch.distributed.
    """

    rank: int = 0
    workers: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    why: Callable[[], WorkerLost] = _gone
    exchange: Exchange | None = None

    @property
    def alone(self) -> bool:
        return self.workers == 1

    @property
    def leads(self) -> bool:
        """Whether this process decides and writes."""
        return self.rank == 0

    def summed(self, value: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        if self.alone:
            return value
        if self.exchange is not None:
            return self.exchange.summed(value)
        total = value.detach().clone()
        with self._answering():
            dist.all_reduce(total)
        return total

    def stacked(self, value: Tensor) -> Tensor:
        """The tensors of all processes, which are of one shape, ``[workers, ...]``."""
        if self.exchange is not None:
            return self.exchange.stacked(value)
        value = value.detach().contiguous()
        every = [torch.empty_like(value) for _ in range(self.workers)]
        with self._answering():
            dist.all_gather(every, value)
        return torch.stack(every)

    def concatenated(self, rows: Tensor) -> Tensor:
        """The rows of all processes, one process after the other."""
        counts = self.stacked(torch.tensor([len(rows)], device=self.device))[:, 0].tolist()
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: len(rows)] = rows.detach()
        every = self.stacked(padded)
        return torch.cat([part[:count] for part, count in zip(every, counts, strict=True)])

    def led(self, content: Any) -> Any:
        """What the first process says, as JSON; the others' is not looked at."""
        return content if self.alone else json.loads(self._sent(json.dumps(content).encode()))

    def led_tensors(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of the first process, on the CPU."""
        if self.alone:
            return tensors
        contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
        return load(self._sent(save(contiguous) if self.leads else b""))

    def agreed(self, ask: Callable[[], bool]) -> Callable[[], bool]:
        """A question that the first process answers for all."""
        return ask if self.alone else lambda: bool(self.led(self.leads and ask()))

    def _sent(self, data: bytes) -> bytes:
        size = int(self._of_first(torch.tensor([len(data)], device=self.device)))
        block = torch.zeros(size, dtype=torch.uint8, device=self.device)
        if self.leads:
            block.copy_(torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy()))
        return self._of_first(block).cpu().numpy().tobytes()

    def _of_first(self, value: Tensor) -> Tensor:
        """The tensor of the first process, which is of one shape in all."""
        # By shared memory, who waits looks after the others; gloo may wait for one that is gone.
        if self.exchange is not None:
            return self.exchange.stacked(value)[0]
        with self._answering():
            dist.broadcast(value, src=0)
        return value

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # the backends have no exceptions of their own in common
            raise self.why() from error


ALONE = Team()
