"""A search finds settings, repeats itself, survives failures, and never sees the test part."""

import csv
import itertools
import sys
import time

import pytest
from tuning_toys import (
    EPOCHS,
    FIXED,
    best_validation_score,
    made,
    search,
    settings_in,
    write_tables,
)

import edgewise.tuning.search
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.core.settings import SETTINGS
from edgewise.data.sources import find_source
from edgewise.tuning import tune
from edgewise.tuning.space import SPACE
from edgewise.units.graph import GRAPH
from edgewise.units.node import NODE


@pytest.mark.slow
def test_what_is_found_beats_the_preset_which_is_tried_first(source, whole):
    preset = make_settings("node", **FIXED)
    first, best = whole.trials[0], whole.ranking[0]
    assert whole.settings(first) == preset
    assert first.value == best_validation_score(source, preset)
    assert best.value == best_validation_score(source, whole.settings(best))
    assert best.value > first.value
    assert best.value == max(trial.value for trial in whole.trials)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trials(source, tmp_path, whole):
    same = search(source, tmp_path / "same", trials=12)
    other = search(source, tmp_path / "other", trials=3, settings={"seed": 1})
    assert made(same) == made(whole)
    assert made(other)[1:] != made(whole)[1:3]


@pytest.mark.slow
def test_a_trial_without_prospects_is_cut_short(whole):
    pruned = [trial for trial in whole.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.epochs < EPOCHS and trial.value < whole.ranking[0].value for trial in pruned)
    assert all(trial.epochs == EPOCHS for trial in whole.ranking)


@pytest.mark.slow
def test_repeats_average_over_weights(source, tmp_path):
    tuned = search(source, tmp_path / "out", trials=1, repeats=3)
    settings = make_settings("node", **FIXED)
    scores = [best_validation_score(source, settings, member) for member in range(3)]
    assert tuned.trials[0].value == pytest.approx(sum(scores) / 3)
    assert len(set(scores)) > 1
    assert tuned.trials[0].epochs == 3 * EPOCHS


@pytest.mark.slow
def test_the_labels_of_the_test_part_change_nothing(source, tmp_path, whole):
    flipped = write_tables(tmp_path / "flipped", flip_test=True)
    assert flipped.checksum() != source.checksum()
    other = search(flipped, tmp_path / "out")
    assert made(other) == made(whole)[:6]


def test_time_runs_out_between_trials(source, tmp_path):
    def slow(number, epoch, so_far):
        time.sleep(0.05)

    tuned = search(source, tmp_path / "out", trials=50, timeout=0.2, on_epoch=slow)
    assert 1 <= tuned.counted < 50
    assert all(trial.state != "interrupted" for trial in tuned.trials)


@pytest.mark.slow
def test_fixed_settings_stay_fixed(source, tmp_path):
    tuned = search(source, tmp_path / "out", settings={"hidden": 5, "dropout": 0.25})
    assert not {"hidden", "dropout", "layer"} & set(tuned.names)
    for trial in tuned.trials:
        model = tuned.settings(trial).model
        assert (model.hidden, model.dropout, model.layer) == (5, 0.25, "conv")


def test_a_search_does_not_begin_outside_of_what_it_searches(source, tmp_path):
    base = make_settings("node", layer="gated", normalize="row")
    with pytest.raises(EdgewiseError, match=r"layer = .gated. is not among what is searched"):
        tune(source, NODE, base, (), tmp_path / "out", trials=1)


def test_all_settings_fixed_leave_nothing_to_search(source, tmp_path):
    fixed = {searched.name: SETTINGS[searched.name].default for searched in SPACE}
    with pytest.raises(EdgewiseError, match="nothing is left to search"):
        search(source, tmp_path / "out", settings=fixed)


def test_a_failing_trial_does_not_end_the_search(source, tmp_path, monkeypatch):
    whole = edgewise.tuning.search.make_trainer
    errors = {1: EdgewiseError("training diverged"), 2: MemoryError()}
    errors[3] = RuntimeError("DefaultCPUAllocator: can't allocate memory")
    calls = itertools.count()

    def failing(*arguments):
        if (call := next(calls)) in errors:
            raise errors[call]
        return whole(*arguments)

    monkeypatch.setattr(edgewise.tuning.search, "make_trainer", failing)
    tuned = search(source, tmp_path / "out")
    assert [trial.state for trial in tuned.trials[:5]] == ["complete", *3 * ["failed"], "complete"]
    assert tuned.counted == 6
    with (tmp_path / "out" / "trials.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert [line["number"] for line in lines] == list("012345")
    assert (lines[1]["state"], lines[1]["reason"]) == ("failed", "training diverged")
    assert "not enough memory" in lines[3]["reason"]
    assert float(lines[0]["value"]) == tuned.trials[0].value
    assert float(lines[4]["learning_rate"]) == tuned.trials[4].settings["learning_rate"]


def test_a_mistake_in_the_code_is_not_taken_for_a_failing_trial(source, tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(edgewise.tuning.search, "make_trainer", broken)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        search(source, tmp_path / "out")


def test_a_search_of_which_nothing_works_says_why(source, tmp_path):
    settings = {"layer": "attention", "heads": 2, "adapt": True, "depth": 2}
    with pytest.raises(EdgewiseError, match="all 3 trials failed; the last one: adapted edges"):
        search(source, tmp_path / "out", trials=3, settings=settings)
    assert not (tmp_path / "out" / "best.toml").exists()


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"repeats": 0}, {"timeout": -1.0}])
def test_a_search_of_nothing_is_refused(wrong, source, tmp_path):
    with pytest.raises(EdgewiseError, match="must be above 0"):
        search(source, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_no_validation_part_is_refused(source, tmp_path):
    settings = {"split_column": "", "split": "0.5,0,0.5"}
    with pytest.raises(EdgewiseError, match=r"validation.*choose another --split"):
        search(source, tmp_path / "out", settings=settings)


@pytest.mark.slow
def test_molecules_are_searched_with_several_featurizers(tmp_path):
    smiles = ("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N")
    rows = [f"{s},{len(s) + 0.1 * i}" for i, s in enumerate(smiles * 2)]
    (tmp_path / "molecules.csv").write_text("\n".join(["smiles,size", *rows]) + "\n")
    source = find_source([str(tmp_path / "molecules.csv")])
    fixed = {"layer": "conv", "epochs": 3, "split": "0.6,0.2,0.2"}
    base = make_settings("graph", implied=source.implied, **fixed)
    tuned = tune(source, GRAPH, base, fixed, tmp_path / "out", trials=6)
    assert len({trial.settings["featurizer"] for trial in tuned.trials}) > 1
    assert "weighted" not in tuned.names  # values have no classes
    values = [trial.value for trial in tuned.ranking]
    assert values == sorted(values)  # of an error the lowest is best
    for trial in tuned.ranking:
        assert trial.value == best_validation_score(source, tuned.settings(trial), lowest=True)
    assert settings_in(tmp_path / "out" / "best.toml", "graph") == tuned.settings(tuned.ranking[0])


def test_without_optuna_one_sentence_says_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("edgewise.tuning")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(EdgewiseError, match=r"edgewise tune needs.*edgewise\[tune\]"):
        import edgewise.tuning  # noqa: F401
