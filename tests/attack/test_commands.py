"""Commands whose output, memory or life is taken from them end in a sentence, and leave nobody."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from commands import python

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "edgewise"]
SMALL = ("--hidden", "4", "--epochs", "2")

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")


def write_graph(folder, nodes=20):
    folder.mkdir(parents=True)
    rows = [f"n{i},{i % 5}.5,{'ab'[i % 2]}" for i in range(nodes)]
    (folder / "nodes.csv").write_text("id,size,label\n" + "\n".join(rows) + "\n")
    edges = [f"n{i},n{(i + step) % nodes}" for i in range(nodes) for step in (2, 4)]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from edgewise import runs

    place = tmp_path_factory.mktemp("commands")
    graph = write_graph(place / "graph", nodes=3000)
    settings = {"hidden": 4, "epochs": 2, "target": "label"}
    return runs.train(str(graph), place / "run", **settings).folder


def in_shell(command):
    """A command of ``sh`` that may say ``edgewise``; its codes, and what it said."""
    program = " ".join(COMMAND)
    return subprocess.run(
        ["bash", "-c", command.replace("edgewise", program)],
        capture_output=True,
        text=True,
        check=False,
    )


def assert_one_sentence(ended, words):
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    assert words in ended.stderr
    assert ended.stderr.startswith("edgewise: ")
    assert ended.returncode == 2


@linux
def test_a_full_disk_behind_the_output_is_a_sentence(run):
    assert_one_sentence(in_shell(f"edgewise predict {run} > /dev/full"), "No space left on device")


@linux
def test_a_full_disk_behind_a_few_words_is_a_sentence():
    assert_one_sentence(in_shell("edgewise version > /dev/full"), "No space left on device")


def test_predictions_for_a_closed_output_are_a_sentence(run):
    assert_one_sentence(in_shell(f"edgewise predict {run} >&-"), "standard output is closed")


def test_a_command_whose_output_is_closed_does_its_work(run, tmp_path):
    ended = in_shell(f"edgewise predict {run} --out {tmp_path}/out.csv >&-")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "out.csv").read_text().count("\n") == 3001


def test_a_reader_that_has_enough_ends_the_command_without_a_word(run):
    ended = in_shell(f"edgewise predict {run} | head -1; exit ${{PIPESTATUS[0]}}")
    assert ended.stdout.startswith("id,")
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""
    assert ended.returncode == 128 + signal.SIGPIPE


LITTLE_MEMORY = """
import resource, sys
import edgewise.runs, torch._dynamo, sklearn.metrics
from edgewise.cli.app import main
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 400 * 2**20,) * 2)
sys.argv = ["edgewise", *sys.argv[1:]]
main()
"""


@linux
def test_training_that_does_not_fit_into_memory_is_a_sentence(tmp_path):
    graph = write_graph(tmp_path / "graph", nodes=4000)
    train = ["train", str(graph), "--target", "label", "--hidden", "10000", "--depth", "3"]
    ended = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY, *train, "--out", str(tmp_path / "run"), "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert_one_sentence(ended, "there was not enough memory; set a smaller hidden")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_ctrl_c_while_modules_are_imported_ends_with_its_code(tmp_path):
    graph = write_graph(tmp_path / "graph")
    train = ["train", str(graph), "--target", "label", *SMALL]
    # Python itself must be up: before that no program has a say.
    program = "import sys, edgewise.cli; print('up', flush=True); edgewise.cli.main()"
    for delay in (0.0, 0.02, 0.05, 0.1, 0.3, 1.0):
        process = subprocess.Popen(
            [sys.executable, "-c", program, *train, "--out", str(tmp_path / f"run{delay}")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "up\n"
        time.sleep(delay + 0.005)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
        assert "Traceback" not in said, (delay, said)
        assert process.returncode in (130, 0), (delay, said)
        assert process.returncode == 130 or delay == 1.0


def test_ctrl_c_while_a_class_is_made_is_no_error():
    program = (
        "import edgewise.cli.app as app\n"
        "def interrupted():\n"
        "    raise RuntimeError('Error calling __set_name__') from KeyboardInterrupt()\n"
        "app.app = interrupted\n"
        "app.main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "")


WORKERS = """
import multiprocessing, sys, time
from concurrent.futures import ProcessPoolExecutor
from edgewise.paper.execution import _start

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, _start, ("cora", None)) as pool:
        busy = [pool.submit(time.sleep, seconds) for seconds in (0, 0, 600)]
        busy[0].result()
        busy[1].result()
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        time.sleep(600)
"""


def at_work(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@linux
@pytest.mark.slow
def test_workers_end_with_a_parent_that_was_killed(tmp_path):
    """One is at work and one waits, as in reproduce, and both ignore SIGTERM."""
    script = tmp_path / "workers.py"
    script.write_text(textwrap.dedent(WORKERS))
    program = [sys.executable, str(script)]
    parent = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    workers = [int(word) for word in parent.stdout.readline().split()]
    assert len(workers) == 2
    assert all(map(at_work, workers))
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 60
    while any(map(at_work, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [worker for worker in workers if at_work(worker)]
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    assert not left


KILLED_SEARCH = """
import os, signal, sys
import edgewise.tuning
from edgewise.data.sources import find_source
from edgewise.units.base import resolve

source = find_source([sys.argv[1]])
fixed = {"target": "label", "layer": "conv", "epochs": 3}
unit, base = resolve(source, "default", fixed)
def kill(*_):
    if sys.argv[3] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
edgewise.tuning.tune(source, unit, base, fixed, sys.argv[2], trials=2, on_epoch=kill)
"""


@pytest.mark.slow
def test_a_search_that_was_killed_in_its_first_trial_tries_the_preset_again(tmp_path):
    import csv

    graph = write_graph(tmp_path / "graph")
    trials = {}
    for name, ways in (("killed", (*["kill"] * 4, "on")), ("quiet", ("on",))):
        for way in ways:
            ended = python(KILLED_SEARCH, graph, tmp_path / name, way)
            assert ended.returncode == (-signal.SIGKILL if way == "kill" else 0), ended.stderr
        with (tmp_path / name / "trials.csv").open(newline="") as stream:
            trials[name] = [r for r in csv.DictReader(stream) if r["state"] != "interrupted"]
    first, undisturbed = trials["killed"][0], trials["quiet"][0]
    told = ("hidden", "depth", "dropout", "learning_rate", "value")
    assert [first[name] for name in told] == [undisturbed[name] for name in told]
    assert len(trials["killed"]) == len(trials["quiet"]) == 2
