"""The commands of runs say and do what the functions do."""

import json

import pytest
from commands import edgewise
from run_toys import SETTINGS

from edgewise import runs

pytestmark = pytest.mark.slow


def test_the_list_of_bad_rows_never_overwrites_the_table(tmp_path):
    (tmp_path / "bad.csv").write_text("smiles,y\nC(,1.5\nCCO,2.5\nCCN,0.5\n")
    told = edgewise("check", "bad.csv", "--invalid-file", "bad.csv", cwd=tmp_path)
    assert told.returncode == 2
    assert "bad.csv is the input itself; choose another --invalid-file" in told.stderr
    assert (tmp_path / "bad.csv").read_text().startswith("smiles,y")


def test_a_seed_that_is_no_number_is_a_sentence(place, tmp_path):
    (tmp_path / "settings.toml").write_text('seed = "5"')
    told = edgewise("train", place / "molecules.csv", "--config", tmp_path / "settings.toml")
    assert told.returncode == 2
    assert told.stderr == "edgewise: seed = '5' is not a whole number\n"


def test_every_line_of_json_can_be_parsed(place, tmp_path):
    data = (place / "molecules.csv", "--target", "logp", "--split", "1,0,0", "--hidden", "4")
    told = edgewise("train", *data, "--epochs", 2, "--repeat", 2, "--json", "--out", tmp_path / "r")
    events = [json.loads(line, parse_constant=pytest.fail) for line in told.stdout.splitlines()]
    assert events[-1]["event"] == "comparison"
    assert events[-1]["lines"][0]["test"] == [None, None]  # there was no row to test on
    compared = edgewise("compare", tmp_path / "r-0", tmp_path / "r-1", "--json")
    assert json.loads(compared.stdout, parse_constant=pytest.fail) == events[-1]["lines"]


@pytest.mark.slow
def test_command_line_and_python_give_the_same_numbers(place, tmp_path):
    run = runs.train(
        str(place / "molecules.csv"), tmp_path / "python", target="logp", seed=3, **SETTINGS
    )
    flags = ("--target", "logp", "--seed", 3, "--hidden", 4, "--epochs", 12, "--patience", 12)
    done = edgewise("train", place / "molecules.csv", "--out", tmp_path / "shell", *flags, "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["epoch"] * 12 + ["done"]
    for name in ("model.safetensors", "predictions.csv", "history.csv", "splits.json"):
        assert (tmp_path / "shell" / name).read_bytes() == (run.folder / name).read_bytes()


@pytest.mark.slow
def test_the_command_line_tells_the_story(place, tmp_path):
    (tmp_path / "mine.toml").write_text('hidden = 4\nepochs = 5\ntarget = ["ring"]\n')
    done = edgewise(
        *("train", place / "molecules.csv", "--config", "mine.toml", "--repeat", 2, "--out", "r"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "1 binary label: [ring]" in done.stdout
    assert "r-0 and 1 more" in done.stdout
    assert (tmp_path / "r-1" / "report.html").exists()
    again = edgewise("train", "--resume", tmp_path / "r-1")
    assert "is finished already" in again.stdout
    shown = edgewise("evaluate", tmp_path / "r-0")
    assert shown.stdout.startswith("train: rows ")
    piped = edgewise("predict", tmp_path / "r-0", place / "molecules.csv")
    assert (
        piped.stdout.splitlines()[0]
        == "name,mol,logp,ring,size,ring_probability,ring_set,distance,error"
    )
    quiet = edgewise("predict", tmp_path / "r-0", "--out", tmp_path / "p.csv", "--quiet")
    assert (quiet.stdout, quiet.returncode) == ("", 0)
