"""Whatever is in a file, it is read or refused in one sentence."""

import os

import pytest
from fuzz import fuzz

SEED = int(os.environ.get("EDGEWISE_FUZZ_SEED", "0"))
CASES = 2000


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_in_one_sentence(tmp_path):
    outcomes, failures = fuzz(tmp_path / "files", SEED, CASES)
    assert not failures, f"{len(failures)} of {CASES} cases; the first: {failures[0]}"
    # Both must be frequent, or the damages are too large or too small to tell anything.
    assert min(outcomes["read"], outcomes["refused"]) > CASES // 20
