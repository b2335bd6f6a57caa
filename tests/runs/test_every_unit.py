"""The commands are the same for every unit: check, train, compare, tune, and what mistakes say."""

import shutil

import pytest
from run_toys import EDGES, LINKS, with_types_and_times, write_graph_tables
from typer.testing import CliRunner

from edgewise.cli.app import app
from edgewise.core.errors import EdgewiseError
from edgewise.runs import open_run

# What is asked of each unit, and how the line on its task begins.
UNITS = {
    "nodes": ({"target": "label"}, "classification of label"),
    "edges": (EDGES, "regression of [amount]"),
    "links": (LINKS, "links of 2 types (kind)"),
    "molecules": ({"target": "logp"}, "regression of [logp]"),
    "graphs": ({"target": "shape"}, "classification of shape"),
}
TABLE = {"nodes": "nodes.csv", "molecules": "molecules.csv", "graphs": "graphs.csv"}


@pytest.fixture(params=UNITS)
def asked(request, tmp_path):
    """A folder with the data of a unit, and the flags that ask for it."""
    folder, (settings, _) = tmp_path / "data", UNITS[request.param]
    if request.param == "molecules":
        folder.mkdir()
        shutil.copy(request.getfixturevalue("molecule_file"), folder)
    elif request.param == "graphs":
        write_graph_tables(folder)
    else:
        with_types_and_times(request.getfixturevalue("graph_folder"), folder)
    flags = [word for k, v in settings.items() for word in (f"--{k.replace('_', '-')}", v)]
    return request.param, folder, flags


def told(*words):
    """What a command prints, in this process; reports are not drawn."""
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
def test_what_is_checked_is_trained_compared_and_searched(asked, tmp_path, monkeypatch):
    kind, folder, flags = asked
    data = folder / TABLE[kind] if kind == "molecules" else folder
    small, out = ("--hidden", 4, "--epochs", 2), tmp_path / "run"
    assert UNITS[kind][1] in told("check", data, *flags, *small)
    assert not out.exists()
    told("train", data, *flags, *small, "--repeat", 2, "--out", out)
    monkeypatch.chdir(tmp_path)  # short names, which the table does not break
    assert "and 1 more" in told("compare", "run-0", "run-1")
    searched = ("--trials", 2, "--epochs", 2, "--hidden", 4, "--out", tmp_path / "search")
    assert "2 trials (2 complete)" in told("tune", data, *flags, *searched)
    told("train", data, "--config", tmp_path / "search" / "best.toml", "--out", out)
    assert open_run(out).finished


MISTAKES = {
    "no rows": lambda text: text.split("\n")[0] + "\n",
    "no header": lambda text: "",
    "no column": lambda text: text.replace(text.split("\n")[0], "a,b", 1),
    "no text": lambda text: "\0\1\2" + text,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_bad_tables_are_one_sentence_and_leave_nothing(asked, mistake, tmp_path):
    kind, folder, flags = asked
    path = folder / TABLE.get(kind, "edges.csv")
    path.write_text(MISTAKES[mistake](path.read_text()))
    data = path if kind == "molecules" else folder
    done = CliRunner().invoke(app, ["train", str(data), *flags, "--out", str(tmp_path / "run")])
    assert isinstance(done.exception, EdgewiseError), done.output  # a sentence, and code 2
    assert ";" in str(done.exception)  # what to do
    assert not (tmp_path / "run").exists()
