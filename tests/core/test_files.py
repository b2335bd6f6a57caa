"""Files are whole or not there, and what killed processes leave is swept, nothing else."""

import os
import subprocess
import sys
import threading

import pytest

from edgewise.core.files import replacing, sweep, write_atomically

WRITER = """
import sys, time
from edgewise.core.files import replacing
with replacing(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def fail_half_way(path):
    with replacing(path) as stream:
        stream.write(b"half")
        raise RuntimeError


def parts(folder):
    return sorted(path.name for path in folder.glob(".part-*"))


@pytest.fixture
def writer(tmp_path):
    """Another process, half through with a file."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "out.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"writing\n"
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_the_scrap_of_a_killed_process_is_swept_and_that_of_a_running_one_is_not(writer, tmp_path):
    (scrap,) = parts(tmp_path)
    sweep(tmp_path)
    assert parts(tmp_path) == [scrap]
    writer.kill()
    writer.wait()
    sweep(tmp_path)
    assert parts(tmp_path) == []


def test_files_that_are_not_ours_are_not_swept(tmp_path):
    for name in (".part-of-mine", "a.edgewise", ".part-00.zip"):
        (tmp_path / name).write_text("mine")
    (tmp_path / ".part-link.edgewise").symlink_to(tmp_path / "a.edgewise")
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.slow
def test_sweeping_while_others_write_loses_nothing(tmp_path):
    """Sweeps and writes at once, for a while: each file arrives, whole."""
    done = threading.Event()

    def sweeping():
        while not done.is_set():
            sweep(tmp_path)

    sweeper = threading.Thread(target=sweeping)
    sweeper.start()
    try:
        for number in range(300):
            write_atomically(tmp_path / f"{number}.txt", "whole")
    finally:
        done.set()
        sweeper.join()
    assert {path.read_text() for path in tmp_path.glob("*.txt")} == {"whole"}
    assert len(list(tmp_path.iterdir())) == 300


def test_a_failure_leaves_neither_file_nor_descriptor(tmp_path):
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        with pytest.raises(RuntimeError):
            fail_half_way(tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
    if before:
        assert len(os.listdir("/proc/self/fd")) == before
