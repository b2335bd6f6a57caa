"""Runs side by side: those that differ in their seeds alone are one line."""

import math

import pytest
from run_toys import SETTINGS, stopping_after

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.runs import compare


@pytest.mark.slow
def test_runs_that_differ_in_seed_alone_are_one_line_with_a_standard_deviation(place, tmp_path):
    data = str(place / "molecules.csv")
    for name, settings in (("a0", {"seed": 0}), ("a1", {"seed": 1}), ("b", {"hidden": 3})):
        runs.train(data, tmp_path / name, target="logp", **{**SETTINGS, **settings})
    lines = compare([tmp_path / name for name in ("a0", "a1", "b")])
    by_runs = {line.runs: line for line in lines}
    assert by_runs[2].differs == {"hidden": 4}
    assert by_runs[2].test[1] > 0
    assert math.isnan(by_runs[1].test[1])
    assert lines[0].validation[0] <= lines[1].validation[0]  # errors: the lowest first


def test_interrupted_runs_are_not_compared(place, tmp_path):
    run = runs.train(
        str(place / "molecules.csv"), tmp_path / "run", target="logp",
        **stopping_after(2), **SETTINGS,
    )  # fmt: skip
    with pytest.raises(EdgewiseError, match="were interrupted; finish each"):
        compare([run.folder])


@pytest.mark.slow
def test_runs_of_different_tasks_are_not_compared(molecule_run, node_run):
    with pytest.raises(EdgewiseError, match=r"different tasks \(accuracy, rmse\)"):
        compare([molecule_run.folder, node_run.folder])
    with pytest.raises(EdgewiseError, match="named twice"):
        compare([node_run.folder, node_run.folder])
