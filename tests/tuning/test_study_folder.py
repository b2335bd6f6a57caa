"""The folder of a search survives stops and kills, and is never mixed with another search."""

import os
import signal
import subprocess
import sys
import time

import pytest
from filelock import FileLock
from tuning_toys import EPOCHS, after, lines_of, made, search, settings_in, write_tables

from edgewise.core.errors import EdgewiseError
from edgewise.tuning.trials import KILLED


@pytest.mark.slow
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(source, tmp_path, whole):
    folder = tmp_path / "parts"
    with pytest.raises(EdgewiseError, match=r"ended before a trial did.*the same command"):
        search(source, folder, trials=12, stop=after(3))
    assert search(source, folder, trials=12, stop=after(EPOCHS + 3)).counted == 1
    assert search(source, folder, trials=4).counted == 4
    done = search(source, folder, trials=12)
    assert made(done) == made(whole)
    assert [t.reason for t in done.trials if t.state == "interrupted"] == ["it was stopped"] * 2
    again = search(source, folder, trials=12)  # nothing is left to do
    assert again == done
    assert search(source, folder, trials=13).counted == 13


@pytest.mark.slow
def test_the_best_settings_are_a_config_file(source, tmp_path):
    found = []

    def on_trial(trial, so_far):
        assert settings_in(tmp_path / "out" / "best.toml") == so_far.settings(so_far.ranking[0])
        found.append(trial)

    tuned = search(source, tmp_path / "out", on_trial=on_trial, settings={"target": ("label",)})
    assert tuple(found) == tuned.trials
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.name != ".lock") == [
        "best.toml",
        "journal.jsonl",
        "study.json",
        "trials.csv",
    ]


def test_changed_data_are_refused(source, tmp_path):
    search(source, tmp_path / "out", trials=1)
    write_tables(tmp_path / "data", seed=1)
    with pytest.raises(EdgewiseError, match=r"made for other data.*choose another --out"):
        search(source, tmp_path / "out")


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"settings": {"hidden": 5}}, "hidden"),
        ({"settings": {"hidden": 64}}, "hidden"),  # its default, but now it is fixed
        ({"settings": {"seed": 3}}, "seed"),
        ({"repeats": 2}, "repeats"),
    ],
)
def test_other_settings_are_refused(changed, named, source, tmp_path):
    search(source, tmp_path / "out", trials=1)
    with pytest.raises(EdgewiseError, match=rf"other settings \(\[{named}\]\)"):
        search(source, tmp_path / "out", **changed)


def test_a_folder_of_something_else_is_left_alone(source, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("x")
    with pytest.raises(EdgewiseError, match=r"holds \[thesis.tex\]; choose another --out"):
        search(source, tmp_path / "out")
    assert (tmp_path / "out" / "thesis.tex").read_text() == "x"


@pytest.mark.parametrize("name", ["study.json", "journal.jsonl"])
@pytest.mark.parametrize("content", ["[1, 2]\n", "{}\n", "{}\n\0\0\n", "{nonsense\n"])
def test_a_damaged_folder_is_refused(name, content, source, tmp_path):
    search(source, tmp_path / "out", trials=1)
    (tmp_path / "out" / name).write_text(content)
    with pytest.raises(EdgewiseError, match=f"{name} cannot be used"):
        search(source, tmp_path / "out")


def test_two_searches_do_not_share_a_folder(source, tmp_path):
    (tmp_path / "out").mkdir()
    with (
        FileLock(tmp_path / "out" / ".lock"),
        pytest.raises(EdgewiseError, match="another search is at work"),
    ):
        search(source, tmp_path / "out")


FOREVER = """
import sys
from edgewise.data.sources import find_source
from edgewise.core.presets import make_settings
from edgewise.tuning import tune
from edgewise.units.node import NODE
fixed = dict(layer="conv", epochs=6, patience=6, split_column="part")
nodes, edges, out = sys.argv[1:]
tune(
    find_source([nodes, edges]), NODE, make_settings("node", **fixed), fixed, out, trials=100000
)
"""


@pytest.mark.slow
def test_a_killed_search_goes_on(source, tmp_path):
    folder = tmp_path / "out"
    deadline = time.monotonic() + 120
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", FOREVER, *source.places, str(folder)],
        env=os.environ | {"EDGEWISE_KERNELS": "plain", "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
    ) as process:
        while not (folder / "trials.csv").exists() or len(lines_of(folder)) < 4:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGKILL
    with (folder / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"op_code": 4, "worker')  # the process could have died in the middle
    before = len([line for line in lines_of(folder) if ",interrupted," not in line]) - 1
    tuned = search(source, folder, trials=before + 3)
    assert tuned.counted == before + 3
    killed = [trial for trial in tuned.trials if trial.state == "interrupted"]
    assert [trial.reason for trial in killed] == [KILLED] * len(killed)
    assert len(killed) <= 1
    assert settings_in(folder / "best.toml") == tuned.settings(tuned.ranking[0])


@pytest.mark.slow
def test_what_was_killed_is_not_drawn_once_more(source, tmp_path):
    class Killed(BaseException):
        pass

    def kill(number, epoch, so_far):
        if number == 2:
            raise Killed

    with pytest.raises(Killed):
        search(source, tmp_path / "out", on_epoch=kill)
    tuned = search(source, tmp_path / "out")
    assert [trial.state for trial in tuned.trials][2] == "interrupted"
    assert tuned.trials[2].reason == KILLED
    assert tuned.trials[3].settings != tuned.trials[2].settings
    assert tuned.counted == 6
