"""Settings that came later do not make the stored results of the paper's tables outdated."""

from pathlib import Path

import pytest

from edgewise.paper.result_store import ResultStore

STORED = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.mark.slow
def test_every_stored_result_still_counts():
    lines = sum(len(path.read_text().splitlines()) for path in STORED.glob("reproduce-*.jsonl"))
    results = ResultStore(STORED)
    assert (len(results.lines), results.outdated) == (lines, 0)
    assert lines == 2400
