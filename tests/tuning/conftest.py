"""A small graph, one thread, and a search that nothing disturbed."""

import pytest
import torch
from tuning_toys import search, write_tables

import edgewise as ew


@pytest.fixture(autouse=True, scope="module")
def _small():
    """The graphs are too small for compiled kernels and threads to pay."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with ew.plain_kernels():
        yield
    torch.set_num_threads(threads)


@pytest.fixture
def source(tmp_path):
    return write_tables(tmp_path / "data")


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A search of 12 trials that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    with ew.plain_kernels():
        return search(write_tables(folder / "data"), folder / "out", trials=12)
