"""Training leaves a run folder, and what cannot be learnt is a sentence."""

from dataclasses import replace

import numpy as np
import pytest
from run_toys import SETTINGS, files_of, rows_of

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.data.sources import find_source
from edgewise.units.node import NODE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (["logp"], "regression"),
        (["ring"], "multilabel"),
        (["size"], "classification"),
        (["logp", "ring"], "regression"),
    ],
)
def test_the_task_is_guessed_and_said(place, tmp_path, target, kind):
    told = []
    run = runs.train(
        str(place / "molecules.csv"), tmp_path / "run", target=target, tell=told.append, **SETTINGS
    )
    assert run.metrics["task"] == kind
    assert any(target[0] in note for note in told)


@pytest.mark.slow
def test_the_task_can_be_set(place, tmp_path):
    run = runs.train(
        str(place / "molecules.csv"), tmp_path / "run", target="ring", task="regression", **SETTINGS
    )
    assert run.metrics["task"] == "regression"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, r"name the column\(s\) to be predicted with --target; .*name, logp"),
        (
            {"target": "size", "task": "regression"},
            "column 'size' holds 'short', expected a number",
        ),
        ({"target": "logp", "task": "multilabel"}, "expected 0 or 1"),
        ({"target": ["size", "ring"], "task": "classification"}, "has one target, not 2"),
        ({"target": "nothing"}, "has no column 'nothing'"),
        ({"target": "logp", "split": "nowhere.json"}, r"nowhere\.json is not a split"),
        ({"target": "logp", "split": "sometimes"}, "split = 'sometimes' is unknown here"),
        ({"target": "logp", "split": "a,b,c"}, "is not three shares"),
        (
            {"target": "logp", "directed": True},
            r"\[directed\] does not apply here: .* file of molecules",
        ),
        ({"target": ["logp", "ring"], "stratify": True}, "cannot be balanced at once"),
    ],
)
def test_what_cannot_be_learnt_is_a_sentence(place, tmp_path, settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        runs.train(str(place / "molecules.csv"), tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_a_table_without_rows_and_a_target_named_twice_are_sentences(place, tmp_path):
    (tmp_path / "empty.csv").write_text("smiles,y\n")
    with pytest.raises(EdgewiseError, match="has a header but no rows"):
        runs.train(str(tmp_path / "empty.csv"), tmp_path / "run")
    with pytest.raises(EdgewiseError, match="a target is named twice"):
        runs.train(str(place / "molecules.csv"), tmp_path / "run", target=["logp", "logp"])


def test_a_slip_among_numbers_is_not_taken_for_a_class(place, tmp_path):
    text = (place / "molecules.csv").read_text().replace("8.5,", "high,", 1)
    (tmp_path / "slip.csv").write_text(text)
    with pytest.raises(EdgewiseError, match=r"slip\.csv:\d+: column 'logp' holds 'high', expected"):
        runs.train(str(tmp_path / "slip.csv"), tmp_path / "run", target="logp", **SETTINGS)


def test_a_number_beyond_single_precision_is_named(place, tmp_path):
    text = (place / "molecules.csv").read_text().replace("8.5,", "1e300,", 1)
    (tmp_path / "huge.csv").write_text(text)
    with pytest.raises(EdgewiseError, match=r"holds '1e300', expected a number of ordinary size"):
        runs.train(str(tmp_path / "huge.csv"), tmp_path / "run", target="logp", **SETTINGS)


@pytest.mark.slow
def test_paths_are_as_good_as_names(place, tmp_path):
    run = runs.train(place / "molecules.csv", tmp_path / "run", target="logp", **SETTINGS)
    assert run.finished


@pytest.mark.parametrize(("edges", "told"), [("directed", False), ("undirected", True)])
def test_a_graph_without_direction_is_told_to_need_none(graph_folder, edges, told):
    settings = make_settings("node", edges=edges, directed=True)
    notes = NODE.open(find_source([str(graph_folder)]), settings).notes
    assert any("there is no direction to learn from" in note for note in notes) == told


@pytest.mark.slow
@pytest.mark.report
def test_a_run_leaves_everything_behind(graph_folder, tmp_path):
    run = runs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    names = {path.name for path in run.folder.iterdir()}
    assert names == {
        *("recipe.json", "splits.json", "model.json", "model.safetensors", "reader.json"),
        *("history.csv", "predictions.csv", "metrics.json", "report.html", "manifest.json"),
    }
    rows = rows_of(run.folder / "predictions.csv")
    assert [row["id"] for row in rows] == [f"n{i}" for i in range(40)]
    assert (rows[7]["split"], rows[7]["true"]) == ("", "")  # unlabelled, and predicted all the same
    assert rows[7]["predicted"] in ("a", "b")
    test = [row for row in rows if row["split"] == "test"]
    hits = [row["true"] == row["predicted"] for row in test]
    assert run.metrics["test"]["accuracy"] == pytest.approx(np.mean(hits))
    assert len(rows_of(run.folder / "history.csv")) == 12
    assert run.finished


@pytest.mark.slow
def test_bad_molecules_are_listed_and_the_run_goes_on(molecule_file, tmp_path):
    told = []
    run = runs.train(str(molecule_file), tmp_path / "run", tell=told.append, **SETTINGS)
    assert any("1 of 31 rows cannot be read" in note for note in told)
    assert "not a SMILES" in (run.folder / "invalid.csv").read_text()
    assert len(rows_of(run.folder / "predictions.csv")) == 30


@pytest.mark.slow
def test_the_saved_split_gives_the_same_run_again(molecule_file, tmp_path):
    first = runs.train(str(molecule_file), tmp_path / "first", seed=5, **SETTINGS)
    split = str(first.folder / "splits.json")
    again = runs.train(str(molecule_file), tmp_path / "again", seed=5, split=split, **SETTINGS)
    assert files_of(first.folder)["metrics"] == files_of(again.folder)["metrics"]


@pytest.mark.slow
def test_an_ensemble_predicts_the_mean_and_the_standard_deviation_of_its_members(
    molecule_file, tmp_path
):
    settings = {**SETTINGS, "descriptors": "none"}
    run = runs.train(str(molecule_file), tmp_path / "run", ensemble=3, **settings)
    model = run.model()
    data = runs.reopen(run).problem.data
    together = model.predict(data)
    alone = [replace(model, members=(m,)).predict(data).mean for m in model.members]
    np.testing.assert_array_equal(together.mean, np.mean(alone, axis=0))
    np.testing.assert_array_equal(together.deviation, np.std(alone, axis=0))
    assert (together.deviation > 0).all()
