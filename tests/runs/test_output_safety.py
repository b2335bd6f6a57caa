"""What is written harms nobody: not the reader's spreadsheet, not the terminal, not the run."""

import re
import signal
import sys
from importlib import import_module
from pathlib import Path

import pytest
from run_toys import SETTINGS, TRAIN_MODULE, rows_of

import edgewise
from edgewise import runs
from edgewise.cli.app import main
from edgewise.cli.console import Console
from edgewise.core.errors import EdgewiseError
from edgewise.core.terminal import printable
from edgewise.report.run_results import RunResults

HOSTILE = ("=1+1", "@SUM(A1)", "+x", "-name", "'=quoted", "-1.5", "plain")
# What a terminal obeys; newlines are ours to print.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def command(monkeypatch, *arguments):
    """Run a command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["edgewise", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def named_graph(folder, names, classes=("a", "b")):
    folder.mkdir()
    rows = [f'"{name}",{i % 5},"{classes[i % 2]}"\n' for i, name in enumerate(names)]
    (folder / "nodes.csv").write_text("id,size,label\n" + "".join(rows), newline="")
    edges = [f'"{a}","{b}"\n' for a, b in zip(names, names[2:] + names[:2], strict=True)]
    (folder / "edges.csv").write_text("source,target\n" + "".join(edges), newline="")
    return str(folder)


@pytest.mark.slow
def test_cells_of_users_are_harmless_and_numbers_stay_numbers(molecule_run, tmp_path):
    rows = "".join(f'"{cell}",CCO\n' for cell in HOSTILE)
    (tmp_path / "new.csv").write_text(f"=id,smiles\n{rows}")
    runs.predict(molecule_run.folder, [str(tmp_path / "new.csv")], tmp_path / "out.csv")
    written = [row["'=id"] for row in rows_of(tmp_path / "out.csv")]
    assert written == ["'=1+1", "'@SUM(A1)", "'+x", "'-name", "''=quoted", "-1.5", "plain"]
    assert (tmp_path / "out.csv").read_text().count("CCO") == len(HOSTILE)
    runs.predict(
        molecule_run.folder, [str(tmp_path / "new.csv")], tmp_path / "raw.tsv", raw_cells=True
    )
    lines = (tmp_path / "raw.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[0] for line in lines] == list(HOSTILE)


@pytest.mark.slow
def test_the_files_of_a_run_are_harmless_and_read_back_as_they_were(tmp_path):
    names = [f"{cell}{i}" for i in range(4) for cell in HOSTILE]
    place = named_graph(tmp_path / "g", names, classes=("=a", "-b"))
    run = runs.train(place, tmp_path / "run", **SETTINGS)
    text = (run.folder / "predictions.csv").read_text()
    assert not re.search(r"(^|,)\"?[=@]", text, re.MULTILINE)
    assert "'=1+10" in text
    results = RunResults.from_folder(run, run.model().task)
    assert list(results.ids) == names
    known = [("=a", "-b")[i % 2] for i in range(len(names))]
    assert [run.model().task.classes[number] for number in results.truth] == known


def test_the_list_of_bad_rows_is_harmless(tmp_path):
    rows = [f"{'C' * (i + 1)},{i}.5" for i in range(20)]
    (tmp_path / "m.csv").write_text("smiles,y\n" + "\n".join([*rows, "=1+1,2.5"]) + "\n")
    run = runs.train(
        str(tmp_path / "m.csv"), tmp_path / "run", target="y", on_invalid="skip", **SETTINGS
    )
    assert [row["smiles"] for row in rows_of(run.folder / "invalid.csv")] == ["'=1+1"]


@pytest.mark.parametrize("name", ["predictions.csv", "history.csv", "Predictions.csv"])
def test_predictions_never_take_the_place_of_a_runs_own_file(molecule_run, place, name):
    out = molecule_run.folder / name
    before = {p.name: p.read_bytes() for p in molecule_run.folder.iterdir() if p.is_file()}
    for data in ((), [str(place / "molecules.csv")]):
        with pytest.raises(EdgewiseError, match="is a file of the run molecules itself"):
            runs.predict(molecule_run.folder, data, out)
    after = {p.name: p.read_bytes() for p in molecule_run.folder.iterdir() if p.is_file()}
    assert after == before


def test_other_files_in_the_folder_of_a_run_may_be_written_and_replaced(molecule_run, place):
    out = molecule_run.folder / "mine.csv"
    for _ in range(2):
        runs.predict(molecule_run.folder, [str(place / "molecules.csv")], out)
    out.unlink()


def test_the_scrap_of_a_killed_predict_is_swept_by_the_next(molecule_run, place, tmp_path):
    (tmp_path / ".part-0a1b2c3d.edgewise").write_text("half")
    (tmp_path / ".part-of-mine").write_text("mine")
    runs.predict(molecule_run.folder, [str(place / "molecules.csv")], tmp_path / "out.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".part-of-mine", "out.csv"]


def test_the_scrap_of_a_killed_fetch_is_swept_by_the_next(tmp_path, monkeypatch):
    store = import_module("edgewise.data.store")
    monkeypatch.setenv("EDGEWISE_CACHE", str(tmp_path))
    (tmp_path / "freesolv").mkdir()
    (tmp_path / "freesolv" / ".part-0a1b2c3d.edgewise").write_text("half")
    monkeypatch.setattr(store, "_sources", lambda *_: iter(()))
    with pytest.raises(EdgewiseError, match="is unavailable"):
        store.fetch("freesolv")
    assert not list(tmp_path.rglob(".part-*"))


@pytest.mark.parametrize("there", [True, False])
def test_a_failed_training_leaves_the_folders_that_were_there(
    graph_folder, tmp_path, monkeypatch, there
):
    monkeypatch.chdir(tmp_path)
    if there:
        (tmp_path / "mine").mkdir()
    for flags in (("--target", "nothing"), ("--learning-rate", "-1"), ("--encoding", "utf-16")):
        assert command(monkeypatch, "train", graph_folder, "--out", "mine", *flags) == 2
        assert (tmp_path / "mine").exists() == there
    assert command(monkeypatch, "train", graph_folder, "--target", "nothing") == 2
    assert not (tmp_path / "runs").exists()


def test_a_scrap_does_not_make_a_folder_full(graph_folder, tmp_path):
    """Killed while it wrote its first file, a run has nothing to go on with."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".part-0a1b2c3d.edgewise").write_text("half")
    assert runs.train(str(graph_folder), tmp_path / "run", **SETTINGS).finished


def test_control_characters_are_spelt_out():
    text = printable("\x1b]0;title\x07 a\r\nb\tc \x9b31m é 名 \u202egnp")
    assert text == "\\x1b]0;title\\x07 a\\x0d\nb\tc \\x9b31m é 名 \\u202egnp"


def test_names_do_not_command_the_terminal(tmp_path, monkeypatch, capsys):
    evil = "\x1b[2J\x1b]0;owned\x07"
    names = [f"{evil}{i}" for i in range(20)]
    place = named_graph(tmp_path / f"g{evil}", names, classes=(f"{evil}a", "b"))
    out = tmp_path / f"run{evil}"
    flags = ("--epochs", 1, "--hidden", 4, "--out", out)
    assert command(monkeypatch, "check", place) == 0
    assert command(monkeypatch, "train", place, *flags) == 0
    assert command(monkeypatch, "train", place, *flags) == 2  # it is there already
    assert command(monkeypatch, "train", place, "--target", evil) == 2
    assert command(monkeypatch, "compare", out) == 0
    assert command(monkeypatch, "predict", out, "--out", tmp_path / f"{evil}.csv") == 0
    with Console().working(evil) as show:
        show(evil, 1, 2)
    said = capsys.readouterr()
    assert not OBEYED.search(said.out)
    assert not OBEYED.search(said.err)
    assert "\\x1b[2J" in said.err


def test_everything_that_is_said_goes_through_one_place():
    folder = Path(edgewise.__file__).parent / "cli"
    found = [path.name for path in folder.glob("*.py") if "echo(" in path.read_text()]
    assert found == ["console.py"]


def test_a_stop_before_the_first_epoch_ends_as_the_signal_says(
    graph_folder, tmp_path, monkeypatch, capsys
):
    begun = TRAIN_MODULE.train_run

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return begun(*arguments, **options)

    monkeypatch.setattr(TRAIN_MODULE, "train_run", interrupted)
    out = tmp_path / "run"
    flags = ("--epochs", 2, "--hidden", 4, "--out", out)
    assert command(monkeypatch, "train", graph_folder, *flags) == 130
    assert "stopped before the first epoch" in capsys.readouterr().err
    assert command(monkeypatch, "train", "--resume", out) == 130
    monkeypatch.setattr(TRAIN_MODULE, "train_run", begun)
    assert runs.resume(out).finished


def test_a_class_that_training_did_not_know_does_not_stop_predict(node_run, tmp_path):
    (tmp_path / "nodes.csv").write_text("who,weight,side\nz,1,x\na,2,never seen\nm,0,y\n")
    (tmp_path / "edges.csv").write_text("from,to,amount\na,m,2\nz,a,1\n")
    told = []
    done = runs.predict(node_run.folder, [str(tmp_path)], tmp_path / "o.csv", tell=told.append)
    assert done == (3, 0)
    assert "true" not in rows_of(tmp_path / "o.csv")[0]
    (reason,) = [line for line in told if line.startswith("written without the truth")]
    assert "'never seen' is not among the classes" in reason
