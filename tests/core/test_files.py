"""Files are whole or not there, and what killed processes leave is swept, nothing else."""

import os
import subprocess
import sys
import threading

import pytest

from edgewise.core import files
from edgewise.core.errors import EdgewiseError
from edgewise.core.files import building, replacing, sweep, write_atomically

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


BUILDER = """
import sys, time
from edgewise.core.files import building
with building(sys.argv[1]) as folder:
    (folder / "half").write_text("half")
    print("building", flush=True)
    time.sleep(600)
"""


def test_a_folder_is_whole_or_not_there(tmp_path):
    def fail_half_way():
        with building(tmp_path / "new") as folder:
            (folder / "half").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert list(tmp_path.iterdir()) == []
    with building(tmp_path / "new") as folder:
        (folder / "whole").write_text("whole")
        assert not (tmp_path / "new").exists()
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "whole"]


def test_a_folder_that_holds_something_is_not_replaced(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(EdgewiseError, match="not empty"), building(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.slow
def test_the_next_folder_sweeps_what_a_killed_process_was_building(tmp_path):
    command = [sys.executable, "-c", BUILDER, str(tmp_path / "killed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"building\n"
        with building(tmp_path / "first"):
            pass
        assert len(parts(tmp_path)) == 2  # of the one that is still at work
        process.kill()
    with building(tmp_path / "second"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


def test_ctrl_c_in_the_moment_in_which_a_file_is_born_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(path, *, wait):
        assert path.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_hold", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a.txt", "text")
    with pytest.raises(KeyboardInterrupt), building(tmp_path / "folder"):
        pass
    assert not list(tmp_path.iterdir())
