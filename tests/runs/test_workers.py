"""Several processes train one model: one of them writes, and losing one loses nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from run_toys import TRAIN_MODULE, files_of, write_graph_tables

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.core.team import WorkerLost
from edgewise.runs import rendezvous

SETTINGS = {"target": "size", "hidden": 4, "depth": 1, "batch_size": 8, "epochs": 4}
SAMPLED = {"hidden": 4, "depth": 1, "neighbors": "3", "batch_size": 8, "epochs": 4}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    return str(write_graph_tables(tmp_path_factory.mktemp("graphs") / "data"))


@pytest.fixture
def started(monkeypatch):
    """The processes that a training starts."""
    found, start = [], subprocess.Popen

    def recorded(*what, **how):
        found.append(start(*what, **how))
        return found[-1]

    monkeypatch.setattr(rendezvous.subprocess, "Popen", recorded)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["graphs", "sampled nodes"])
def test_a_killed_worker_ends_the_run_which_goes_on_with_the_same_bits(
    kind, graphs, graph_folder, tmp_path, started
):
    told = []
    data, settings = (graphs, SETTINGS) if kind == "graphs" else (str(graph_folder), SAMPLED)
    whole = runs.train(data, tmp_path / "whole", workers=2, tell=told.append, **settings)
    assert len(told) == len({*told}) > 1  # by one process alone
    assert [child.returncode in (0, rendezvous.LOST) for child in started] == [True]

    def kill(member, epoch, best):
        if epoch.number == 2:
            started[-1].kill()

    with pytest.raises(WorkerLost, match=r"worker 1 was killed \(SIGKILL\); continue with .*run$"):
        runs.train(data, tmp_path / "run", workers=2, on_epoch=kill, **settings)
    assert all(child.returncode is not None for child in started)
    with pytest.raises(EdgewiseError, match=r"started with 2 worker\(s\).*not 3"):
        runs.resume(tmp_path / "run", workers=3)
    run = runs.resume(tmp_path / "run")
    assert run.workers == 2
    assert files_of(run.folder) == files_of(whole.folder)


@pytest.mark.slow
def test_what_goes_wrong_in_a_worker_is_told_once_and_leaves_nothing(graphs, tmp_path, monkeypatch):
    whole = TRAIN_MODULE.request

    def elsewhere(*what):
        return {**whole(*what), "places": [f"{graphs}-of-another-machine"]}

    monkeypatch.setattr(TRAIN_MODULE, "request", elsewhere)
    with pytest.raises(WorkerLost, match=r"worker 1 failed: .*another-machine"):
        runs.train(graphs, tmp_path / "run", workers=2, **SETTINGS)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_torchrun_starts_workers_too(graphs, tmp_path):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, "-m", "edgewise", "train", graphs, f"--out={tmp_path / 'run'}", *flags],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("report.html shows more") == 1
    run = runs.open_run(tmp_path / "run")
    assert (run.finished, run.workers) == (True, 2)


def test_workers_are_refused_where_there_is_nothing_to_divide(graph_folder, graphs, tmp_path):
    with pytest.raises(EdgewiseError, match=r"takes the whole graph.* --neighbors"):
        runs.train(str(graph_folder), tmp_path / "run", workers=2)
    with pytest.raises(EdgewiseError, match="batches of 2 rows cannot be divided among 3"):
        runs.train(graphs, tmp_path / "run", workers=3, **{**SETTINGS, "batch_size": 2})
    assert not (tmp_path / "run").exists()


def as_torchrun(monkeypatch, rank):
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 4, "LOCAL_WORLD_SIZE": 2}
    for name, value in {**place, "MASTER_ADDR": "localhost", "MASTER_PORT": 1}.items():
        monkeypatch.setenv(name, str(value))


def test_the_number_of_workers_is_that_of_torchrun(monkeypatch):
    assert rendezvous.number_of_workers(None) == 1
    assert rendezvous.number_of_workers(3) == 3
    as_torchrun(monkeypatch, 0)
    assert rendezvous.number_of_workers(None) == rendezvous.number_of_workers(4) == 4
    with pytest.raises(EdgewiseError, match="torchrun started 4 workers, not 3"):
        rendezvous.number_of_workers(3)
    as_torchrun(monkeypatch, 1)
    with pytest.raises(EdgewiseError, match="worker 1 of torchrun"):
        rendezvous.number_of_workers(None)


def test_processors_are_shared_by_the_workers_of_a_machine(monkeypatch):
    monkeypatch.setattr(rendezvous, "_processors", lambda: 12)
    as_torchrun(monkeypatch, 0)
    place = rendezvous.launched()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # what torchrun sets where nobody does
    assert rendezvous.threads_of(place) == 6
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert rendezvous.threads_of(place) == 4


@pytest.mark.slow
def test_a_worker_ends_with_the_process_that_started_it_and_both_can_go_on(graphs, tmp_path):
    program = (
        "import os, signal, sys, edgewise as ew\n"
        "from edgewise.runs import rendezvous\n"
        "def leave(*_):\n"
        "    print(*(child.pid for child in children), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "children, start = [], rendezvous.subprocess.Popen\n"
        "def recorded(*a, **k):\n"
        "    children.append(start(*a, **k)); return children[-1]\n"
        "rendezvous.subprocess.Popen = recorded\n"
        "ew.train(sys.argv[1], sys.argv[2], workers=2, on_epoch=leave, target='size', epochs=9,\n"
        "         hidden=4, depth=1, batch_size=8)\n"
    )
    command = [sys.executable, "-c", program, graphs, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout)
    assert _ends(pid)
    run = runs.resume(tmp_path / "run")
    whole = runs.train(graphs, tmp_path / "whole", workers=2, **{**SETTINGS, "epochs": 9})
    assert files_of(run.folder) == files_of(whole.folder)


def _ends(pid):
    """Whether a process that is not our child ends within some seconds."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":  # it has ended, and nobody asked how
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    return False
