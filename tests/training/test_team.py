"""Processes that train together compute what one would."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import together
import torch
from torch.testing import assert_close

from edgewise.core.team import ALONE
from edgewise.kernels.shared_memory import make_shared_file

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """What a team of two found, by shared memory and without, of which this process was one."""
    store = str(tmp_path_factory.mktemp("team") / "store")
    made = make_shared_file(together.WORKERS)
    shutil.move(made, f"{store}.shared")
    other = subprocess.Popen([sys.executable, str(Path(together.__file__)), store, "1"])
    try:
        found = together.everything(store, 0)
        assert other.wait(60) == 0
    finally:
        other.kill()
        other.wait()
    return found


@pytest.mark.parametrize("case", together.CASES)
def test_a_team_follows_the_run_of_one_process(team, case):
    expected, alone = together.trained(case)
    for found, _ in team:
        if case not in found:  # of torch.distributed, some are enough
            continue
        losses, weights = found[case]
        assert_close(losses, expected, rtol=1e-9, atol=1e-9, equal_nan=True)
        assert losses[0, 0] != losses[-1, 0]  # or nothing was learnt
        for name, weight in alone.items():
            assert_close(weights[name], weight, rtol=1e-7, atol=1e-9)


def test_batch_norm_uses_the_rows_of_all_processes(team):
    for _, found in team:
        for value, expected in zip(found, together.normalized(), strict=True):
            assert_close(value, expected)


def test_one_process_is_a_team_of_its_own():
    value = torch.arange(3.0)
    assert ALONE.summed(value) is value
    assert ALONE.led([1, None]) == [1, None]
    assert ALONE.led_tensors({"a": value})["a"] is value
