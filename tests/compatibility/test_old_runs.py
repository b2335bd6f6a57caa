"""Run folders of version 0.1.0 predict, evaluate, go on and compare as they did."""

import csv
import json
from importlib import import_module

import pytest

from edgewise import runs
from edgewise.core.errors import EdgewiseError

DATA = {"nodes": ("nodes.csv", "edges.csv"), "molecules": ("molecules.csv",)}
FINISHED = (
    *("nodes-attention", "nodes-ensemble", "nodes-regression"),
    *("molecules-multilabel", "molecules-regression"),
)


@pytest.fixture(autouse=True)
def _no_report(monkeypatch):
    monkeypatch.setattr(import_module("edgewise.runs.train"), "write_report", lambda *_: None)


def cells(path):
    """The cells of a table, numbers as numbers."""
    with path.open(newline="") as stream:
        return [[number_or_word(cell) for cell in row] for row in csv.reader(stream)]


def number_or_word(cell):
    try:
        return float(cell)
    except ValueError:
        return cell


def table(path):
    """What a table of then must equal today: the names of its columns, and its cells."""
    header, *rows = cells(path)
    header = ["std" if name == "spread" else name for name in header]
    return [header, *([rounded(cell) for cell in row] for row in rows)]


def rounded(cell):
    """A number within the rounding of float32, in which processors differ; a word as it is."""
    return cell if isinstance(cell, str) else pytest.approx(cell, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", FINISHED)
@pytest.mark.parametrize("given", [True, False], ids=["data", "own data"])
def test_predictions_are_what_they_were_cell_by_cell(old, tmp_path, name, given):
    data = [str(old / file) for file in DATA[name.partition("-")[0]]] if given else []
    runs.predict(old / name, data, tmp_path / "out.csv")
    assert cells(tmp_path / "out.csv") == table(old / name / "expected.csv")


@pytest.mark.parametrize("name", FINISHED)
def test_evaluating_on_the_own_data_gives_the_metrics_of_then(old, name):
    run = runs.open_run(old / name)
    metrics = runs.evaluate(run.folder)
    headline = run.metrics["headline"]
    for part in ("train", "validation", "test"):
        assert metrics[part]["rows"] == run.metrics[part]["rows"]
        found, then = metrics[part][headline], run.metrics[part][headline]
        assert found == (then if then is None else pytest.approx(then, rel=1e-9))


def test_an_interrupted_run_ends_as_it_would_have_then(old):
    seen = []
    run = runs.resume(old / "nodes-interrupted", on_epoch=lambda _, epoch, best: seen.append(epoch))
    history = (old / "nodes-interrupted" / "expected-history.csv").read_text()
    assert 0 < len(seen) < len(history.splitlines()) - 1  # it went on, and did not begin anew
    assert (run.folder / "history.csv").read_text() == history
    assert cells(run.folder / "predictions.csv") == table(run.folder / "expected.csv")
    assert run.metrics["epochs"] == [len(history.splitlines()) - 1]
    assert run.finished


def test_runs_of_then_are_compared(old):
    lines = runs.compare([old / "nodes-attention", old / "nodes-ensemble"])
    assert [line.metric for line in lines] == ["accuracy", "accuracy"]
    assert {line.differs["layer"] for line in lines} == {"attention", "conv"}
    found = json.loads((old / "nodes-attention" / "metrics.json").read_text())
    (attention,) = (line for line in lines if line.differs["layer"] == "attention")
    assert attention.test[0] == found["test"]["accuracy"]


def test_a_run_of_then_learnt_columns_from_all_rows(old):
    assert runs.open_run(old / "nodes-attention").settings.data.fit_on == "all"


def test_data_that_changed_since_then_are_refused(old):
    with (old / "edges.csv").open("a") as stream:
        stream.write("n0,n39,pays,1\n")
    with pytest.raises(EdgewiseError, match="has changed since"):
        runs.resume(old / "nodes-interrupted")
