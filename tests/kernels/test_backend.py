"""Kernels compile wherever the package is installed, and keep what they compiled if they can."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

GATHER = """
import torch
from edgewise.kernels import backend
for _ in range(2):
    places = torch.tensor([2, 0, 1], dtype=torch.int32)
    print(backend.take(torch.tensor([1.0, 2.0, 3.0]), places).tolist())
"""


def run(script=GATHER, /, **environment):
    source = str(Path(__file__).parents[2] / "src")
    # How threads wait is the environment's to say, and tests say it.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**inherited, "PYTHONPATH": source, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_works_and_says_so_once(done):
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[3.0, 1.0, 2.0]"] * 2
    assert done.stderr.count("compiled kernels cannot be cached") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_kernels_compile_without_a_place_for_their_cache(tmp_path):
    """The folder for the cache is a file, and no other may be tried: as for a user without one."""
    (tmp_path / "file").touch()
    done = run(
        NUMBA_CACHE_DIR=str(tmp_path / "file"),
        NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator",
    )
    assert_works_and_says_so_once(done)


def test_kernels_compile_where_their_cache_cannot_be_read(tmp_path):
    """A folder in place of a cache file cannot be opened, not even by an administrator."""
    first = run(NUMBA_CACHE_DIR=str(tmp_path))
    assert (first.returncode, first.stderr) == (0, "")
    for suffix in (".nbc", ".nbi"):  # the code, and then also the index
        files = list(tmp_path.rglob(f"*{suffix}"))
        assert files
        for file in files:
            file.unlink()
            file.mkdir()
        assert_works_and_says_so_once(run(NUMBA_CACHE_DIR=str(tmp_path)))


THREADS = """
import os
import edgewise
from edgewise.kernels import backend
import torch
print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT"))
backend.take(torch.ones(3), torch.zeros(3, dtype=torch.int32))
print(backend.num_threads(), torch.get_num_threads())
"""


def test_omp_num_threads_holds_for_kernels_and_torch_and_threads_wait_briefly():
    assert run(THREADS, OMP_NUM_THREADS="1").stdout.split("\n")[:2] == ["PASSIVE 10000", "1 1"]


def test_what_the_user_says_about_waiting_threads_holds():
    assert run(THREADS, OMP_WAIT_POLICY="ACTIVE").stdout.startswith("ACTIVE None")
