"""What torchrun tells a process that it starts."""

import os
from dataclasses import dataclass

_TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Place:
    """The place of a process among those that train together."""

    rank: int
    workers: int
    local_rank: int  # among those on its machine
    local_workers: int


def launched() -> Place | None:
    """The place that torchrun gave this process; None where it was not started by it."""
    if not all(name in os.environ for name in _TORCHRUN):
        return None
    place = Place(*(int(os.environ[name]) for name in _TORCHRUN[:4]))
    return place if place.workers > 1 else None
