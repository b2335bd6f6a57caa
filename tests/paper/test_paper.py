"""The plan holds every cell of the tables, results survive a stop, and differences are paired."""

import json
import math
import multiprocessing
import os
import signal
import time
from dataclasses import asdict
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from commands import edgewise, forking
from scipy.stats import ttest_rel

from edgewise.core.errors import EdgewiseError
from edgewise.data.synthetic import direction_and_kind_graph
from edgewise.paper import execution
from edgewise.paper.experiments import Experiment, plan
from edgewise.paper.printed import BASELINE, ROWS_2, ROWS_3, TABLE_2, TABLE_3
from edgewise.paper.result_store import ResultStore
from edgewise.paper.summary import cell, difference
from edgewise.paper.tables import comparisons, table_2, table_3

pytestmark = pytest.mark.slow

CELL = {"dataset": "cora", "split": "dense", "protocol": "fixed"}


def line(experiment, test, validation=0.5):
    content = {**vars(experiment), "settings": experiment.marks[0]}
    return {**content, "validation": validation, "test": test}


def add(results, row, values):
    for run, value in enumerate(values):
        experiment = Experiment(**CELL, row=row, run=run)
        results.add(experiment, line(experiment, value))


def test_every_printed_cell_is_planned():
    assert len(ROWS_2) == 18
    assert len(TABLE_2) == 18 * 6
    assert len(TABLE_3) == 4 * 6
    planned = plan(["cora", "citeseer", "pubmed", "tox21", "lipo", "freesolv"])
    assert len(set(planned)) == len(planned) == 18 * 6 * 2 * 20 + 4 * 3 * 2 * 5
    cells = {(e.row, e.dataset, e.split) for e in planned if e.table == 2}
    assert cells == set(TABLE_2)


def test_the_first_run_of_every_row_comes_before_the_second_of_any():
    runs = [e.run for e in plan(["cora"])]
    assert runs == sorted(runs)


def test_the_rows_are_the_settings_of_the_paper():
    every = {row: Experiment(**CELL, row=row, run=3).settings.flat() for row in ROWS_2}
    assert all(settings["weighted"] == row.endswith("*") for row, settings in every.items())
    assert len({str(settings) for settings in every.values()}) == 18
    assert {settings["learning_rate"] for settings in every.values()} == {0.005}
    assert all((s["seed"], s["split_seed"]) == (3, 0) for s in every.values())
    assert BASELINE["EGNN(A)-D-M*"] == "GAT*"
    for row in ROWS_3:
        s = Experiment("tox21", "molecules", "random", row, 3).settings.flat()
        assert (s["seed"], s["split_seed"], s["split"]) == (3, 3, "molecules")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((["coral"],), "'coral' is not in the paper; it uses cora, citeseer"),
        ((["cora"], ["EGNN"]), r"no table asked for has the row\(s\) \[EGNN\]; the rows are GCN"),
        ((["cora"], ["EGNN"], 0), r"no table asked for has the row\(s\) \[EGNN\]"),
        ((["cora"], [], 1, ["fix"]), "'fix' is not in the paper; it uses fixed, random"),
        ((["cora"], [], 1, ["fixed"], ["spars"]), "'spars' is not in the paper; it uses sparse"),
    ],
)
def test_what_is_not_in_the_paper_is_a_sentence(arguments, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        plan(*arguments)


def test_results_are_read_again_and_only_the_rest_is_missing(tmp_path):
    planned = plan(["cora"], ["GCN", "GAT"], 2, ["fixed"], ["dense"])
    add(ResultStore(tmp_path), "GCN", [0.8, 0.9])
    again = ResultStore(tmp_path)
    assert [e.row for e in again.missing(planned)] == ["GAT", "GAT"]
    assert cell(again, "test", *CELL.values(), "GCN").mean == pytest.approx(0.85)


def test_a_line_that_was_cut_short_is_cut_off_before_the_next(tmp_path):
    add(ResultStore(tmp_path), "GCN", [0.8])
    path = tmp_path / "reproduce-cora.jsonl"
    results = ResultStore(tmp_path)
    path.write_text(path.read_text() + '{"dataset": "co')
    add(results, "GAT", [0.7])
    assert [json.loads(text)["row"] for text in path.read_text().splitlines()] == ["GCN", "GAT"]


def test_a_last_line_that_was_cut_short_is_run_again(tmp_path):
    add(ResultStore(tmp_path), "GCN", [0.8])
    path = tmp_path / "reproduce-cora.jsonl"
    path.write_text(path.read_text() + '{"dataset": "co')
    assert len(ResultStore(tmp_path).lines) == 1


def test_a_last_line_without_an_end_is_kept(tmp_path):
    add(ResultStore(tmp_path), "GCN", [0.7, 0.8])
    path = tmp_path / "reproduce-cora.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    assert len(ResultStore(tmp_path).lines) == 2
    add(ResultStore(tmp_path), "GAT", [0.7])
    assert len(ResultStore(tmp_path).lines) == 3


def test_a_folder_that_takes_no_results_is_refused_before_they_are_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EdgewiseError, match="choose another --results"):
        ResultStore(tmp_path / "file" / "below").check_writable()


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / "reproduce-cora.jsonl").write_text('{"dataset": "cora"}\n')
    with pytest.raises(EdgewiseError, match=r"reproduce-cora\.jsonl:1 is not a result"):
        ResultStore(tmp_path)


def test_a_line_that_is_no_text_is_named(tmp_path):
    (tmp_path / "reproduce-cora.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(EdgewiseError, match=r"reproduce-cora\.jsonl:1 is not a result"):
        ResultStore(tmp_path)


@pytest.mark.parametrize("flag", ["--results", "--out"])
def test_a_file_where_a_folder_belongs_is_a_sentence(flag, tmp_path):
    (tmp_path / "taken").write_text("mine")
    outcome = edgewise("reproduce", flag, tmp_path / "taken")
    assert outcome.returncode == 2
    assert "taken is a file; name a folder" in outcome.stderr
    assert (tmp_path / "taken").read_text() == "mine"


def test_results_of_other_settings_do_not_count(tmp_path):
    experiment = Experiment(**CELL, row="GCN", run=0)
    old = {**line(experiment, 0.9), "settings": "00000000"}
    (tmp_path / "reproduce-cora.jsonl").write_text(json.dumps(old) + "\n")
    results = ResultStore(tmp_path)
    assert (len(results.lines), results.outdated) == (0, 1)


def test_the_difference_is_paired_by_run(tmp_path):
    draw = np.random.default_rng(0)
    theirs = draw.normal(0.8, 0.05, 8)
    ours = theirs + draw.normal(0.01, 0.005, 8)
    results = ResultStore(tmp_path)
    add(results, "GCN", theirs)
    add(results, "EGNN(C)", [*ours, 0.1])  # one run more, which has no partner
    found = difference(results, **CELL, row="EGNN(C)")
    interval = ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.runs == 8
    assert found.certain
    assert math.isnan(difference(results, **CELL, row="EGNN(A)").mean)


def test_tables_put_the_paper_beside_what_is_known(tmp_path):
    results = ResultStore(tmp_path)
    add(results, "EGNN(C)", [0.89, 0.87])
    add(results, "GCN", [0.70, 0.60])
    text = table_2(results, "fixed", ["cora"]).markdown()
    assert "| EGNN(C) | none (83.0) | 88.0 ± 1.4 (88.8) |" in text
    assert "| GCN | none (72.9) | 65.0 ± 7.1 (72.0) |" in text
    assert "mean and standard deviation over 0 to 2 runs" in text
    gains = comparisons(results, "fixed", ["cora"])
    assert gains.rows[2][:2] == ("EGNN(C) over GCN", "none")
    assert gains.rows[2][2].startswith("+23.0 [")
    fixed = table_3(results, protocol="fixed")
    assert (fixed.name, fixed.title) == ("table-3-fixed", "Table 3 on one fixed split")
    assert table_3(results).csv().splitlines()[3].startswith("EGNN(C),none (0.82),none (0.82)")


@pytest.fixture
def _forked(monkeypatch):
    """Workers that need not import the package; the command below starts them as it does."""
    forks = SimpleNamespace(
        get_context=lambda _: forking(), active_children=multiprocessing.active_children
    )
    monkeypatch.setattr(execution, "multiprocessing", forks)


def sleep_for_long(folder, experiment):
    (folder / f"under-way-{experiment.row}-{experiment.run}-{os.getpid()}").touch()
    time.sleep(600)


def fail_or_die(experiment):
    if experiment.row == "GCN":
        raise EdgewiseError("the loss is not a number")
    if experiment.row == "GCN*":
        os.kill(os.getpid(), signal.SIGKILL)
    return {**asdict(experiment), "settings": experiment.marks[0], "validation": 0.5, "test": 0.5}


@pytest.mark.usefixtures("_forked")
def test_a_run_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    def load(dataset):
        if dataset == "citeseer":
            raise EdgewiseError("the data set citeseer is unavailable")
        return direction_and_kind_graph(20, seed=1)[0]

    monkeypatch.setattr(execution, "load_data", load)
    monkeypatch.setattr(execution, "_run", fail_or_die)
    asked = plan(["citeseer", "cora", "cora"], ["GCN", "GAT"], 1, ["fixed"], ["dense"])
    assert len(asked) == 4
    results = ResultStore(tmp_path)
    failed = execution.run_all(asked, results, 1, lambda *_: None)
    assert [line["row"] for line in results.lines.values()] == ["GAT"]
    assert failed == [
        "2 run(s) of citeseer were left out: the data set citeseer is unavailable",
        "GCN on cora (dense, fixed), run 0 failed: the loss is not a number",
    ]
    asked = plan(["cora"], ["GAT"], 9, ["fixed"], ["dense"])
    execution.run_all(asked, results, 2, lambda *_: None, lambda: len(results.lines) >= 3)
    assert 3 <= len(results.lines) < 9  # told to stop, it ends what was under way
    asked = plan(["cora"], ["GCN*"], 1, ["fixed"], ["dense"])
    with pytest.raises(EdgewiseError, match=r"killed while GCN\* on cora .* fewer --jobs"):
        execution.run_all(asked, results, 1, lambda *_: None)
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("_forked")
def test_who_interrupts_again_does_not_wait_for_the_runs_under_way(tmp_path, monkeypatch):
    def interrupt(*_):
        if len([*tmp_path.glob("under-way-*")]) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(execution, "load_data", lambda _: direction_and_kind_graph(20, seed=1)[0])
    monkeypatch.setattr(execution, "_run", partial(sleep_for_long, tmp_path))
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            execution.run_all(plan(["cora"]), ResultStore(tmp_path), 2, lambda *_: None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for worker in multiprocessing.active_children():  # killed, and perhaps not gone yet
        worker.join(60)
    assert time.monotonic() - start < 120
    assert not multiprocessing.active_children()


@pytest.mark.dataset
def test_the_command_runs_what_is_missing_and_nothing_else(tmp_path):
    from edgewise.data.citation import load_citation

    try:
        for name in ("cora", "citeseer", "pubmed"):
            load_citation(name)
    except EdgewiseError as error:
        pytest.skip(f"a citation network is unavailable: {error}")
    command = [
        *("reproduce", "--dataset", "cora", "--runs", "1"),
        *("--rows", "GCN", "--protocol", "fixed", "--split", "dense", "--results", str(tmp_path)),
    ]
    first, second = (edgewise(*command) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("0 of 1 runs are there; 1 to do")
    assert second.stdout.startswith("1 of 1 runs are there; 0 to do")
    (found,) = ResultStore(tmp_path).lines.values()
    assert found["test"] > 0.8
    files = {path.name for path in tmp_path.iterdir()}
    assert {"index.html", "tables.md", "table-2-fixed.csv", "figure-2.svg"} <= files
