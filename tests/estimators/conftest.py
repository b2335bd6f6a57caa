"""Two rings of papers, and one thread."""

import pytest
import torch

from edgewise import Graph, set_num_threads


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Threads would spend more on waiting for each other than such small work takes."""
    before = torch.get_num_threads()
    set_num_threads(1)
    yield
    set_num_threads(before)


@pytest.fixture(scope="module")
def graph():
    """Two rings of papers that cite only among themselves; the first feature tells them apart."""
    generator = torch.Generator().manual_seed(0)
    ring = torch.arange(12)
    ahead = [torch.stack([ring, (ring + step) % 12]) for step in (1, 2)]
    edges = torch.cat([edge + first for first in (0, 12) for edge in ahead], dim=1)
    x = torch.rand(24, 6, generator=generator)
    x[:12, 0] += 1
    return Graph(
        x,
        edges,
        torch.rand(edges.size(1), 2, generator=generator) + 0.5,
        node_ids=tuple(f"paper {i}" for i in range(24)),
    )
