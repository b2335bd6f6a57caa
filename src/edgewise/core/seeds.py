"""Random numbers that depend on nothing but the seed, the member of an ensemble and the epoch.

Where several processes train together, each also draws by its own number, and that of the step.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch

_DRAWING = RLock()


def seed_of(seed: int, member: int, epoch: int, *own: int) -> int:
    """The seed of one epoch of one member; epoch 0 draws the initial weights."""
    low, high = np.random.SeedSequence((seed, member, epoch, *own)).generate_state(2)
    return int(high) << 31 | int(low) >> 1  # 63 bits, because torch's seeds are signed


@contextmanager
def seeded(seed: int, member: int, epoch: int, *own: int) -> Iterator[None]:
    """Draw what one epoch of one member draws; then the caller's own draws go on as before.

    All draws come from the CPU's generator, which threads share, so they take turns.
    ``torch.manual_seed`` also tells devices that may not be there, a millisecond each time.
    """
    with _DRAWING:
        before = torch.default_generator.get_state()
        torch.default_generator.manual_seed(seed_of(seed, member, epoch, *own))
        try:
            yield
        finally:
            torch.default_generator.set_state(before)
