r"""What memory and time a training is to be expected to take, before it begins.

A step takes, in bytes and in seconds of one thread,

.. math::
    c_0 + c_1 \, x + c_2 \, n w + c_3 \, m + c_4 \, m p + c_5 \, m w + c_6 \, n \theta

for a batch with :math:`x` numbers as node features, :math:`n` nodes and :math:`m` edges of
:math:`p` channels (direction encoded), through layers that are :math:`w` wide, added up, with
:math:`\theta` parameters. No factor is below 0; they were fitted to measurements, for each layer
and normalisation, by ``benchmarks/expected_cost.py``.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.nn.blocks import Block
from edgewise.units.base import Problem

GIB = 2**30
TERMS = (
    *("", "features", "nodes x width", "edges", "edges x channels", "edges x width"),
    "nodes x parameters",
)
# (layer, normalize): bytes, and nanoseconds, for each of TERMS.
FACTORS: dict[tuple[str, str], tuple[tuple[float, ...], tuple[float, ...]]] = {
    ("conv", "doubly_stochastic"): (
        (0.0, 0.0, 16.2, 0.0, 110.0, 0.0, 0.0),
        (854000.0, 0.0, 1.43, 82.2, 9.83, 0.684, 0.166),
    ),
    ("conv", "symmetric"): (
        (0.0, 0.0, 12.1, 0.0, 103.0, 0.0, 0.0),
        (1070000.0, 0.0, 0.0, 58.9, 0.781, 0.487, 0.151),
    ),
    ("conv", "gcn"): (
        (0.0, 0.0, 8.89, 0.0, 114.0, 0.0, 0.0),
        (989000.0, 0.0, 4.62, 53.8, 0.0, 0.161, 0.049),
    ),
    ("conv", "row"): (
        (0.0, 3.09, 11.7, 0.0, 95.2, 0.0, 0.0),
        (683000.0, 1.46, 5.33, 62.0, 0.0, 0.0309, 0.0608),
    ),
    ("attention", "row"): (
        (0.0, 0.0, 15.7, 0.0, 122.0, 0.0, 0.0),
        (586000.0, 0.0, 9.33, 209.0, 3.34, 0.167, 0.0),
    ),
    ("gated", "none"): (
        (1280000.0, 5.57, 72.6, 0.0, 0.0, 14.4, 0.0),
        (0.0, 9.94, 0.0, 0.0, 28.0, 7.95, 0.192),
    ),
    ("gated", "row"): (
        (496000.0, 26.0, 5.24, 0.0, 0.0, 20.2, 0.0),
        (0.0, 5.87, 0.0, 0.0, 31.5, 8.84, 0.17),
    ),
}


@dataclass(frozen=True)
class Cost:
    """What training is to be expected to take."""

    data_bytes: int  # what this process holds already, its libraries included
    step_bytes: float
    epoch_seconds: float  # of one thread of the machine that was measured
    steps: int  # of an epoch

    @property
    def memory(self) -> float:
        """Bytes in all."""
        return self.data_bytes + self.step_bytes

    def __str__(self) -> str:
        steps = f"{self.steps:,} step{'s' * (self.steps != 1)}"
        return (
            f"expected: about {self.memory / GIB:.1f} GiB of memory, {self.data_bytes / GIB:.1f} "
            f"of them there already, and {_shown(self.epoch_seconds)} an epoch of {steps} on one "
            "thread"
        )


def terms_of(problem: Problem) -> tuple[tuple[float, ...], int]:
    """The terms of the formula for one step of training, and how many steps an epoch has."""
    settings, data, train = problem.settings, problem.data, problem.split.train
    size = settings.training.batch_size
    with torch.random.fork_rng(devices=[]):
        _, batch = next(iter(data.training_batches(train, size)))
        channels = data.num_channels
        args = (data.num_features, problem.task.width, channels, settings)
        model = problem.unit.network(*args)
    x = batch.x if isinstance(batch.x, Tensor) else batch.x.value
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    layers = [block.layer for block in blocks]
    along = sum(layer.out_width for layer in layers)
    width = along * (1 + settings.model.feed_forward)
    # The features of edges, where they have any, go through every layer as well.
    along += sum(settings.model.gates for layer in layers if layer.has_edge_state)
    nodes, edges = model.computed_rows(batch)
    encoded = channels * (3 if settings.model.directed else 1)
    parameters = sum(p.numel() for block in blocks for p in block.parameters())
    of_nodes, of_edges = nodes * width, (edges, edges * encoded, edges * along)
    terms = (1.0, x.numel(), of_nodes, *of_edges, nodes * parameters)
    return tuple(map(float, terms)), data.steps(len(train), size)


def expected_cost(problem: Problem) -> Cost | None:
    """The cost of a problem in its regime; None: not known."""
    model = problem.settings.model
    factors = FACTORS.get((model.layer, model.normalize))
    if factors is None or not len(problem.split.train):
        return None
    try:
        terms, steps = terms_of(problem)
    except EdgewiseError:  # which training will tell
        return None
    space, time = (sum(map(float.__mul__, f, terms)) for f in factors)
    return Cost(_resident(), space, steps * time * 1e-9, steps)


def _resident() -> int:
    """Bytes that this process holds; 0 where the system does not say."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return 0


def _shown(seconds: float) -> str:
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
