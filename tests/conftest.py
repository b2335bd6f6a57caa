"""Toy graphs that several tests share, and how hypothesis draws."""

import inspect
import os
from functools import wraps

# Before OpenMP is loaded: waiting threads that spin take the processor from other jobs, and a test
# run beside others would crawl.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numba
import pytest
import shape_checks
import torch
from hypothesis import settings

shape_checks.install()
_njit = numba.njit


@wraps(_njit)
def njit(function=None, **options):
    """The shape checks of jaxtyping wrap every function; numba compiles what they wrap."""
    if function is not None:
        return _njit(inspect.unwrap(function), **options)
    return lambda function: _njit(inspect.unwrap(function), **options)


numba.njit = njit

settings.register_profile(
    "edgewise", max_examples=15, deadline=None, derandomize=True, database=None
)
settings.load_profile("edgewise")


LONG = ("test_readme.py", "test_typed_and_timed_links.py")


def pytest_collection_modifyitems(items):
    """Long tests come first: as the last ones, they would keep one worker busy and others idle."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(autouse=True)
def _one_seed():
    torch.manual_seed(0)


@pytest.fixture
def digraph():
    """Five nodes, asymmetric: a hub (2), a node without outgoing edges (4), two channels."""
    edge_index = torch.tensor([[0, 1, 3, 2, 0, 1, 3], [2, 2, 2, 4, 1, 3, 0]])
    edge_attr = torch.tensor(
        [[1.0, 0.5], [2.0, 0.0], [0.5, 3.0], [1.5, 1.0], [0.0, 2.0], [1.0, 1.0], [0.3, 0.7]],
        dtype=torch.float64,
    )
    return edge_index, edge_attr, 5
