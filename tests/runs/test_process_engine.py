"""Several processes predict what one does, in order, and the loss of one is told in a sentence."""

import os
import signal
import time

import pytest
from run_toys import SMILES

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.runs import process_engine


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Some stretches of molecules, one row of which cannot be read and one of which is broken."""
    path = tmp_path_factory.mktemp("library") / "library.csv"
    rows = [f"{i},{SMILES[i % len(SMILES)]},é" for i in range(2500)]
    rows[7], rows[1500] = "7,C(,x", "1500,CC,x,y"
    path.write_text("key,smiles,note\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_two_processes_predict_what_one_does(molecule_run, library, tmp_path, monkeypatch):
    monkeypatch.setattr(process_engine, "_AHEAD", 1)  # fewer than there are stretches
    counts = [
        runs.predict(molecule_run.folder, [library], tmp_path / f"{n}.csv", workers=n)
        for n in (None, 1, 2)
    ]
    assert counts == 3 * [(2498, 2)]
    assert len({path.read_bytes() for path in tmp_path.glob("*.csv")}) == 1


def test_a_number_of_processes_below_zero_is_refused(molecule_run, library, tmp_path):
    with pytest.raises(EdgewiseError, match="workers = -1 is no number of processes"):
        runs.predict(molecule_run.folder, [library], tmp_path / "out.csv", workers=-1)


@pytest.mark.slow
def test_an_error_ends_no_process_of_others(molecule_run, library, tmp_path):
    import multiprocessing

    begun = []

    def fail(*_):
        other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
        other.start()
        begun.append(other)
        raise RuntimeError("while predicting")

    with pytest.raises(RuntimeError, match="while predicting"):
        runs.predict(molecule_run.folder, [library], tmp_path / "out.csv", fail, workers=2)
    (other,) = begun
    assert other.is_alive()
    other.kill()
    other.join()


@pytest.mark.slow
def test_a_lost_process_is_told_in_a_sentence_and_nothing_is_written(
    molecule_run, library, tmp_path, monkeypatch
):
    import multiprocessing

    def killing(content):
        for process in multiprocessing.active_children():
            os.kill(process.pid, signal.SIGKILL)
        return original(content)

    original = process_engine.stretch_to_bytes
    monkeypatch.setattr(process_engine, "stretch_to_bytes", killing)
    with pytest.raises(EdgewiseError, match=r"ended unexpectedly.*fewer --workers"):
        runs.predict(molecule_run.folder, [library], tmp_path / "out.csv", workers=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_keeps_a_process_from_predicting_is_told(molecule_run, library, tmp_path, monkeypatch):
    plugin = str(tmp_path / "gone.py")
    monkeypatch.setattr(process_engine, "loaded_plugins", lambda: (plugin,))
    with pytest.raises(EdgewiseError, match=r"gone\.py"):
        runs.predict(molecule_run.folder, [library], tmp_path / "out.csv", workers=2)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def started(monkeypatch):
    """How many processes are started, in place of starting them."""
    asked = []

    def pretended(model, source, asked_of, stretches, workers):
        asked.append((workers, sum(1 for _ in stretches)))
        return iter(())

    monkeypatch.setattr(process_engine, "_predicted", pretended)
    return asked


@pytest.mark.parametrize(("rows", "expected"), [(2499, [(2, 3)]), (2500, [])])
def test_processes_are_started_for_long_files_alone(
    molecule_run, library, tmp_path, started, monkeypatch, rows, expected
):
    monkeypatch.setattr(process_engine, "MIN_ROWS", rows)
    monkeypatch.setattr(process_engine.torch, "get_num_threads", lambda: 2)
    runs.predict(molecule_run.folder, [library], tmp_path / "out.csv", workers=0)
    assert started == expected


def test_without_being_asked_a_script_starts_no_process(
    molecule_run, library, tmp_path, started, monkeypatch
):
    monkeypatch.setattr(process_engine, "MIN_ROWS", 1)
    runs.predict(molecule_run.folder, [library], tmp_path / "out.csv")
    assert started == []


def test_rows_that_cannot_be_predicted_apart_are_refused(node_run, place, tmp_path):
    data = [str(place / name) for name in ("nodes.tsv", "edges.csv")]
    with pytest.raises(EdgewiseError, match="--workers and --engine ray are for files of mol"):
        runs.predict(node_run.folder, data, tmp_path / "out.csv", workers=2)
