"""What training is expected to take is near what it takes, and grows with all it depends on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import edgewise as ew
from edgewise.core.presets import make_settings
from edgewise.data.splits import random_split
from edgewise.tasks.classification import Classification
from edgewise.training import expected_cost as module
from edgewise.training.expected_cost import FACTORS, GIB, Cost, expected_cost
from edgewise.training.portfolio import affordable_regimes, decided, regimes_of
from edgewise.units.node import node_problem

ROOT = Path(__file__).parents[2]


def problem_of(nodes=200, edges=600, channels=1, **settings):
    torch.manual_seed(0)
    ends = torch.randint(nodes, (2, edges)).unique(dim=1)
    ends = ends[:, ends[0] != ends[1]]
    graph = ew.Graph(torch.rand(nodes, 8), ends, edge_attr=torch.rand(ends.size(1), channels))
    chosen = make_settings("node", **settings)
    split = random_split(nodes, (0.6, 0.2, 0.2), seed=0)
    task = Classification(("y",), ("a", "b"))
    return node_problem(graph, task, torch.arange(nodes) % 2, split, chosen)[0]


@pytest.mark.parametrize("layer", ["conv", "attention", "gated"])
@pytest.mark.parametrize(
    "more",
    [{"nodes": 300}, {"edges": 1200}, {"channels": 3}, {"hidden": 16}, {"depth": 3}],
    ids=lambda more: next(iter(more)),
)
def test_more_of_anything_takes_no_less_memory_and_more_time(layer, more):
    usual = {
        "layer": layer,
        "hidden": 8,
        "normalize": "row",
        **({"adapt": False} if layer == "attention" else {}),
    }
    less, dearer = (expected_cost(problem_of(**{**usual, **one})) for one in ({}, more))
    assert dearer.step_bytes >= less.step_bytes
    assert dearer.epoch_seconds > less.epoch_seconds


def test_the_factors_are_those_that_were_fitted_to_measurements():
    results = ROOT / "benchmarks" / "results" / "expected_cost.json"
    fitted = json.loads(results.read_text())["factors"]
    assert {", ".join(kind): list(map(list, factors)) for kind, factors in FACTORS.items()} == {
        kind: [found["bytes"], found["nanoseconds"]] for kind, found in fitted.items()
    }
    assert min(f for factors in FACTORS.values() for one in factors for f in one) >= 0


@pytest.mark.slow
def test_a_run_takes_the_memory_that_is_expected_within_a_factor_of_two():
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
        "from pathlib import Path\n"
        "from test_expected_cost import problem_of, expected_cost\n"
        "from edgewise.training import fit_member\n"
        "def status(name):\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    return 1024 * next(int(l.split()[1]) for l in lines if l.startswith(name))\n"
        "size = {'layer': 'conv', 'hidden': 32, 'epochs': 2, 'normalize': 'row'}\n"
        "fit_member(problem_of(**size))\n"  # kernels are loaded
        "problem = problem_of(20_000, 150_000, 2, **size)\n"
        "expected = expected_cost(problem).step_bytes\n"
        "Path('/proc/self/clear_refs').write_text('5')\n"
        "before = status('VmRSS')\n"
        "fit_member(problem)\n"
        "print((status('VmHWM') - before) / expected)\n"
    )
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not tell the peak of a process's memory")
    places = [str(ROOT / "src"), str(Path(__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-c", code, *places], capture_output=True, text=True, check=True
    )
    assert 0.5 < float(done.stdout) < 2


def test_of_a_layer_that_was_not_measured_nothing_is_said(monkeypatch):
    problem = problem_of(regime="shallow")
    assert expected_cost(problem) is not None
    monkeypatch.setattr(module, "FACTORS", {})
    assert expected_cost(problem) is None


def test_a_regime_that_would_not_fit_into_memory_is_not_tried(monkeypatch):
    problem, told = problem_of(), []
    cost = {name: expected_cost(one).step_bytes for name, one in regimes_of(problem).items()}
    *_, fits, first, second = sorted(cost, key=lambda name: cost[name])
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", f"{(cost[fits] + cost[first]) / 2 / GIB:.9f}")
    assert affordable_regimes(problem, told.append).keys() == cost.keys() - {first, second}
    assert sorted(line.split(" is not tried")[0] for line in told) == sorted(
        [f"regime {first}", f"regime {second}"]
    )
    assert all("EDGEWISE_MEMORY_GB); --neighbors 15,10" in line for line in told)


def test_the_cheapest_regime_is_tried_however_little_memory_there_is(monkeypatch):
    problem, told = problem_of(), []
    cost = {name: expected_cost(one).step_bytes for name, one in regimes_of(problem).items()}
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", "1e-6")
    (name,) = affordable_regimes(problem, told.append)
    assert cost[name] == min(cost.values())
    assert told[0].startswith("notice: training is to be expected to take about ")
    assert decided(problem).settings.model.regime == name


def test_whoever_names_a_regime_is_told_and_gets_it(monkeypatch):
    problem, told = problem_of(regime="deep"), []
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", "1e-6")
    assert decided(problem, tell=told.append) is problem
    assert len(told) == 1
    assert told[0].startswith("notice: training is to be expected to take about ")


def test_what_the_process_holds_besides_changes_no_choice(monkeypatch):
    problem = problem_of()
    most = max(expected_cost(one).step_bytes for one in regimes_of(problem).values())
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", f"{1.01 * most / GIB:.9f}")
    monkeypatch.setattr(module, "_resident", lambda: 2**60)
    assert affordable_regimes(problem).keys() == regimes_of(problem).keys()


def test_an_estimator_warns_of_what_is_left_out(monkeypatch):
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", "1e-6")
    ring = torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30])
    model = ew.NodeClassifier(graph=ew.Graph(torch.rand(30, 2), ring), epochs=1)
    with (
        pytest.warns(UserWarning, match="notice: training is to be expected"),
        pytest.warns(UserWarning, match="is not tried: it is to be expected"),
    ):
        model.fit(range(30), torch.arange(30).numpy() % 2)


def test_samples_of_neighbours_fit_always(monkeypatch):
    monkeypatch.setenv("EDGEWISE_MEMORY_GB", "1e-6")
    sampled = problem_of(neighbors="2", batch_size=20)
    assert affordable_regimes(sampled).keys() == regimes_of(sampled).keys()


def test_costs_are_told_in_a_sentence():
    assert str(Cost(2**30, 2.0**31, 3.25, 1)) == (
        "expected: about 3.0 GiB of memory, 1.0 of them there already, and 3.2 s an epoch of 1 "
        "step on one thread"
    )
    assert "150 minutes an epoch of 1,200 steps" not in str(Cost(0, 0.0, 9000.0, 1200))
    assert "2 hours an epoch of 1,200 steps" in str(Cost(0, 0.0, 9000.0, 1200))
