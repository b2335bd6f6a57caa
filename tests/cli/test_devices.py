"""``--device`` holds for every command that computes, and one that is not there is a sentence."""

from importlib import import_module
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from edgewise import runs
from edgewise.cli.app import app
from edgewise.core.errors import EdgewiseError

OLD = Path(__file__).parents[1] / "fixtures" / "0.1.0"
DATA = [str(OLD / "nodes.csv"), str(OLD / "edges.csv")]
TRAIN = [*DATA, "--target", "risk", "--epochs", "2", "--hidden", "4"]
ABSENT = ["nonsense", *([] if torch.cuda.is_available() else ["cuda", "cuda:1"])]


@pytest.fixture(autouse=True)
def _no_report(monkeypatch):
    monkeypatch.setattr(import_module("edgewise.runs.train"), "write_report", lambda *_: None)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("edgewise.runs.train"), "write_report", lambda *_: None)
        settings = {"target": "risk", "epochs": 2, "hidden": 4}
        return runs.train(DATA, folder, **settings).folder


def command(name, run, out):
    return {
        "check": ["check", *TRAIN],
        "train": ["train", *TRAIN, "--out", str(out)],
        "tune": ["tune", *TRAIN, "--trials", "1", "--out", str(out)],
        "predict": ["predict", str(run), *DATA, "--out", str(out)],
        "predict own": ["predict", str(run), "--out", str(out)],
        "evaluate": ["evaluate", str(run), *DATA],
        "evaluate own": ["evaluate", str(run)],
    }[name]


def invoke(*words):
    done = CliRunner().invoke(app, words)
    if done.exception is not None:
        raise done.exception
    return done.stdout


NAMES = ["check", "train", "tune", "predict", "predict own", "evaluate", "evaluate own"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_command_computes_on_the_device_it_is_told(name, trained, tmp_path):
    out = tmp_path / ("out.csv" if "predict" in name else "out")
    assert invoke(*command(name, trained, out), "--device", "cpu")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("device", ABSENT)
def test_a_device_that_is_not_there_is_a_sentence_and_nothing_is_written(
    name, device, trained, tmp_path
):
    out = tmp_path / ("out.csv" if "predict" in name else "out")
    with pytest.raises(EdgewiseError, match=f"the device '{device}' is unavailable here; choose"):
        invoke(*command(name, trained, out), "--device", device)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_run_that_was_trained_elsewhere_predicts_and_goes_on_here(tmp_path, monkeypatch):
    seen = []
    with monkeypatch.context() as patch:  # as a machine with a GPU would have written it
        for module in ("units.base", "units.node", "training.predictor"):
            patch.setattr(f"edgewise.{module}.find_device", lambda _: torch.device("cpu"))
        folder = runs.train(
            *(DATA, tmp_path / "run"),
            **{"target": "risk", "epochs": 6, "hidden": 4, "device": "cuda"},
            on_epoch=lambda *what: seen.append(what),
            stop=lambda: len(seen) >= 3,
        ).folder
    for words in (["predict"], ["evaluate"], ["train", "--resume"]):
        with pytest.raises(EdgewiseError, match="the device 'cuda' is unavailable here"):
            invoke(*words, str(folder))
        assert invoke(*words, str(folder), "--device", "cpu")
    assert runs.open_run(folder).finished
