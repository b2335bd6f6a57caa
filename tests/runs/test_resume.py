"""A run can be killed at any moment and continued; it ends as if nothing had happened."""

import json
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from commands import forking
from run_toys import (
    EDGES,
    LINKS,
    SETTINGS,
    TRAIN_MODULE,
    files_of,
    stopping_after,
    with_types_and_times,
)
from safetensors.torch import load_file, save_file

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import find_source
from edgewise.runs import open_run
from edgewise.runs.checkpoint import train_run
from edgewise.runs.folder import start_run
from edgewise.training import load_model
from edgewise.units.base import resolve


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"neighbors": "3,2", "batch_size": 8},
        {**EDGES, "label_messages": True},
        {**EDGES, "label_messages": True, "neighbors": "3,2", "batch_size": 8},
        LINKS,
    ],
    ids=["nodes", "sampled nodes", "edges", "sampled edges", "links"],
)
def test_a_run_that_is_stopped_keeps_the_best_so_far_and_can_go_on(graph_folder, tmp_path, more):
    settings = {**SETTINGS, **more, "epochs": 6}
    if more is LINKS:
        graph_folder = with_types_and_times(graph_folder, tmp_path / "typed")
    whole = runs.train(str(graph_folder), tmp_path / "whole", ensemble=2, **settings)
    run = runs.train(
        str(graph_folder),
        tmp_path / "run",
        ensemble=2,
        **stopping_after(3),
        **settings,
    )
    assert not run.finished
    assert run.metrics["epochs"] == [3]
    assert len(load_model(run.folder).members) == 1
    runs.resume(run.folder)
    assert files_of(run.folder) == files_of(whole.folder)
    assert run.finished


def test_stopping_before_the_first_epoch_is_a_sentence(graph_folder, tmp_path):
    with pytest.raises(EdgewiseError, match="stopped before the first epoch"):
        runs.train(str(graph_folder), tmp_path / "run", stop=lambda: True, **SETTINGS)
    assert runs.resume(tmp_path / "run").finished


@pytest.mark.slow
@pytest.mark.report
def test_a_run_whose_report_cannot_be_written_is_kept_and_gets_it_later(
    graph_folder, tmp_path, monkeypatch
):
    def no_room(*_):
        raise EdgewiseError("cannot write report.html (No space left on device)")

    monkeypatch.setattr(TRAIN_MODULE, "write_report", no_room)
    with pytest.raises(EdgewiseError, match="No space left"):
        runs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    assert open_run(tmp_path / "run").finished
    monkeypatch.undo()
    run = runs.resume(tmp_path / "run")
    written = (run.folder / "report.html").stat().st_mtime_ns
    runs.resume(run.folder)
    assert (run.folder / "report.html").stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_split_file_that_changes_does_not_change_the_run(graph_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"train": [*range(10)], "validation": [*range(10, 20)], "test": [*range(20, 30)]}
    (tmp_path / "split.json").write_text(json.dumps(rows))
    whole = runs.train(str(graph_folder), "whole", split="split.json", **SETTINGS)
    run = runs.train(
        str(graph_folder),
        "run",
        split="split.json",
        **stopping_after(3),
        **SETTINGS,
    )
    scores = {name: whole.metrics[name] for name in rows}
    (tmp_path / "split.json").write_text(json.dumps({**rows, "train": [30], "test": [31]}))
    assert runs.evaluate(whole.folder) == scores
    monkeypatch.chdir(graph_folder)
    resumed = runs.resume(tmp_path / "run")
    assert files_of(resumed.folder) == files_of(tmp_path / "whole")
    assert run.settings.split.split == "split.json"


@pytest.mark.slow
@pytest.mark.report
def test_the_column_that_told_the_split_never_becomes_a_feature(graph_folder, tmp_path):
    header, *rows = (graph_folder / "nodes.csv").read_text().splitlines()
    parts = [("train", "validation", "test")[i % 3] for i in range(len(rows))]
    lines = [f"{row},{part}" for row, part in zip(rows, parts, strict=True)]
    (graph_folder / "nodes.csv").write_text("\n".join([f"{header},part", *lines, ""]))
    run = runs.train(
        str(graph_folder),
        tmp_path / "run",
        split_column="part",
        **stopping_after(3),
        **SETTINGS,
    )
    run = runs.resume(run.folder)
    assert run.finished
    assert runs.evaluate(run.folder)["test"] == run.metrics["test"]
    (run.folder / "report.html").unlink()
    runs.resume(run.folder)
    assert "is unavailable" not in (run.folder / "report.html").read_text()


def test_a_damaged_checkpoint_is_named(graph_folder, tmp_path):
    run = runs.train(
        str(graph_folder),
        tmp_path / "run",
        **stopping_after(2),
        **SETTINGS,
    )
    path = run.folder / "checkpoint" / "member-0.safetensors"
    tensors = load_file(path)
    save_file({"history": tensors["history"]}, path)
    with pytest.raises(EdgewiseError, match="does not fit the run"):
        runs.resume(run.folder)
    path.write_bytes(b"nothing")
    with pytest.raises(EdgewiseError, match="not a whole safetensors file"):
        runs.resume(run.folder)


def train_slowly(folder, told):
    run = open_run(folder)
    train_run(
        run,
        runs.reopen(run),
        checkpoint_seconds=0,
        on_epoch=lambda *_: (told.send("epoch"), time.sleep(0.02)),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["nodes", "sampled nodes", "edges", "links", "molecules", "graphs"]
)
def test_a_run_killed_at_any_moment_ends_as_if_it_had_not_been(kind, request, tmp_path):
    places = {"molecules": "molecule_file", "graphs": "graph_tables"}
    data = str(request.getfixturevalue(places.get(kind, "graph_folder")))
    settings = {**SETTINGS, "layer": "attention", "ensemble": 2, "dropout": 0.3, "epochs": 8}
    settings |= {
        "edges": {**EDGES, "label_messages": True},
        "graphs": {"target": "shape"},
        "sampled nodes": {"layer": "conv", "neighbors": "3,2", "batch_size": 8},
    }.get(kind, {})
    if kind == "links":
        data = str(with_types_and_times(Path(data), tmp_path / "typed"))
        settings |= LINKS
    whole = runs.train(data, tmp_path / "whole", **settings)
    source = find_source([data])
    _, resolved = resolve(source, "default", settings)
    notices = whole.notices
    folder = start_run(tmp_path / "killed", source, resolved, "default", "", notices).folder
    draw, context, kills = random.Random(kind), forking(), 0
    for _ in range(20):
        told, tell = context.Pipe(duplex=False)
        process = context.Process(target=train_slowly, args=(folder, tell))
        process.start()
        tell.close()
        with suppress(EOFError):  # it has ended
            for _ in range(draw.randint(1, 6)):
                told.recv()
        time.sleep(draw.random() * 0.03)
        process.kill()
        process.join()
        kills += process.exitcode == -signal.SIGKILL
        if open_run(folder).finished:
            break
    assert kills >= 2
    runs.resume(folder)
    assert files_of(folder) == files_of(whole.folder)
    assert not list(folder.rglob(".part-*"))


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_with_the_best_model_so_far(graph_folder, tmp_path):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "edgewise", "train", str(graph_folder), "--json"),
            *("--out", str(tmp_path / "run"), "--epochs", "100000", "--patience", "100000"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(3):
        assert json.loads(process.stdout.readline())["event"] == "epoch"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    done = json.loads(out.splitlines()[-1])
    assert (done["event"], done["metrics"]["finished"]) == ("done", False)
    assert load_model(tmp_path / "run").members
    assert (tmp_path / "run" / "report.html").exists()


def test_a_finished_run_is_rid_of_what_a_killed_report_left(graph_folder, tmp_path):
    run = runs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    scrap = run.folder / ".part-report.edgewise"
    scrap.write_bytes(b"<html>")
    runs.resume(run.folder)
    assert not scrap.exists()
