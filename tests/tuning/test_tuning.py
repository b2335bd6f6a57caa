"""A search finds settings, repeats itself, survives failures and kills, and never sees the test."""

import csv
import itertools
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace

import numpy as np
import optuna
import pytest
import torch
import typer
from filelock import FileLock
from typer.testing import CliRunner

import edgewise as ew
import edgewise.tuning.search
from edgewise.cli.flags import recipe_flags
from edgewise.cli.tune import tune as tune_command
from edgewise.core.errors import EdgewiseError
from edgewise.core.recipe import KINDS, PRESETS, Recipe, make_recipe, read_config
from edgewise.data.sources import find_source
from edgewise.problems import open_problem
from edgewise.training import fit_member
from edgewise.tuning import tune
from edgewise.tuning.space import SPACE, Range
from edgewise.tuning.trials import KILLED

EPOCHS = 6
# Few epochs, in which the preset's learning rate does not get far; convolution, for speed.
FIXED = {"layer": "conv", "epochs": EPOCHS, "patience": EPOCHS, "split_column": "part"}


@pytest.fixture(autouse=True, scope="module")
def _small():
    """The graphs are too small for compiled kernels and threads to pay."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with ew.plain_kernels():
        yield
    torch.set_num_threads(threads)


def write_tables(folder, seed=0, flip_test=False):
    """Sixty nodes whose class is that of the nodes they point to, seen through noise."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    label = draw.integers(2, size=60)
    parts = ["train", "validation", "test"]
    rows = ["id,a,b,label,part"]
    for i, kind in enumerate(label):
        part = parts[i % 3]
        shown = 1 - kind if flip_test and part == "test" else kind
        a, b = draw.normal(0.7 * kind, 1), draw.normal(size=1)[0]
        rows.append(f"{i},{a:.3f},{b:.3f},{'no' if shown else 'yes'},{part}")
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    pairs = {(int(i), int(j)) for i, j in draw.integers(60, size=(400, 2)) if i != j}
    kept = [f"{i},{j}" for i, j in sorted(pairs) if label[i] == label[j] or draw.random() < 0.2]
    (folder / "edges.csv").write_text("\n".join(["source,target", *kept]) + "\n")
    return find_source([str(folder / "nodes.csv"), str(folder / "edges.csv")])


@pytest.fixture
def source(tmp_path):
    return write_tables(tmp_path / "data")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search of 12 trials that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    return search(write_tables(folder / "data"), folder / "out", trials=12)


def recipe_in(path, kind="nodes"):
    """The recipe of a config file; its lists as tuples, on which the type checks insist."""
    config = {k: tuple(v) if isinstance(v, list) else v for k, v in read_config(path).items()}
    return make_recipe(kind, **config)


def search(source, folder, trials=6, **others):
    settings = FIXED | others.pop("settings", {})
    return tune(source, make_recipe("nodes", **settings), settings, folder, trials=trials, **others)


def made(tuned):
    """All that a search decided, without how long it took and how often it was interrupted."""
    return [
        (trial.state, trial.value, trial.settings, trial.epochs, trial.reason)
        for trial in tuned.trials
        if trial.state != "interrupted"
    ]


def after(epochs):
    """A ``stop`` that says yes once, after so many epochs."""
    count = itertools.count(1)
    return lambda: next(count) > epochs


def best_validation_score(source, recipe, member=0, lowest=False):
    history = fit_member(open_problem(source, recipe).problem, recipe, member).history
    scores = [epoch.validation_score for epoch in history]
    return min(scores) if lowest else max(scores)


def test_what_is_found_beats_the_preset_which_is_tried_first(source, whole):
    preset = make_recipe("nodes", **FIXED)
    first, best = whole.trials[0], whole.ranking[0]
    assert whole.recipe(first) == preset
    assert first.value == best_validation_score(source, preset)
    assert best.value == best_validation_score(source, whole.recipe(best))
    assert best.value > first.value
    assert best.value == max(trial.value for trial in whole.trials)


def test_the_same_seed_gives_the_same_trials(source, tmp_path, whole):
    same = search(source, tmp_path / "same", trials=12)
    other = search(source, tmp_path / "other", trials=3, settings={"seed": 1})
    assert made(same) == made(whole)
    assert made(other)[1:] != made(whole)[1:3]


def test_a_trial_without_prospects_is_cut_short(whole):
    pruned = [trial for trial in whole.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.epochs < EPOCHS and trial.value < whole.ranking[0].value for trial in pruned)
    assert all(trial.epochs == EPOCHS for trial in whole.ranking)


def test_repeats_average_over_weights(source, tmp_path):
    tuned = search(source, tmp_path / "out", trials=1, repeats=3)
    recipe = make_recipe("nodes", **FIXED)
    scores = [best_validation_score(source, recipe, member) for member in range(3)]
    assert tuned.trials[0].value == pytest.approx(sum(scores) / 3)
    assert len(set(scores)) > 1
    assert tuned.trials[0].epochs == 3 * EPOCHS


def test_the_labels_of_the_test_part_change_nothing(source, tmp_path, whole):
    flipped = write_tables(tmp_path / "flipped", flip_test=True)
    assert flipped.checksum() != source.checksum()
    other = search(flipped, tmp_path / "out")
    assert made(other) == made(whole)[:6]


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


def test_time_runs_out_between_trials(source, tmp_path):
    def slow(number, epoch, so_far):
        time.sleep(0.05)

    tuned = search(source, tmp_path / "out", trials=50, timeout=0.2, on_epoch=slow)
    assert 1 <= tuned.counted < 50
    assert all(trial.state != "interrupted" for trial in tuned.trials)


def test_fixed_settings_stay_fixed(source, tmp_path):
    tuned = search(source, tmp_path / "out", settings={"hidden": 5, "dropout": 0.25})
    assert not {"hidden", "dropout", "layer"} & set(tuned.names)
    for trial in tuned.trials:
        recipe = tuned.recipe(trial)
        assert (recipe.hidden, recipe.dropout, recipe.layer) == (5, 0.25, "conv")


def test_a_search_does_not_begin_outside_of_what_it_searches(source, tmp_path):
    base = replace(make_recipe("nodes"), normalize="gcn")
    with pytest.raises(EdgewiseError, match="normalize = 'gcn' is not among what is searched"):
        tune(source, base, (), tmp_path / "out", trials=1)


def test_all_settings_fixed_leave_nothing_to_search(source, tmp_path):
    fixed = {searched.name: getattr(Recipe(), searched.name) for searched in SPACE}
    with pytest.raises(EdgewiseError, match="nothing is left to search"):
        search(source, tmp_path / "out", settings=fixed)


def test_a_failing_trial_does_not_end_the_search(source, tmp_path, monkeypatch):
    whole = edgewise.tuning.search.make_trainer
    errors = {1: EdgewiseError("training went astray"), 2: MemoryError()}
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
    assert (lines[1]["state"], lines[1]["reason"]) == ("failed", "training went astray")
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
    settings = {"layer": "attention", "heads": 2, "adapt": True}
    with pytest.raises(EdgewiseError, match="all 3 trials failed; the last one: adapted edges"):
        search(source, tmp_path / "out", trials=3, settings=settings)
    assert not (tmp_path / "out" / "best.toml").exists()


def test_the_best_settings_are_a_config_file(source, tmp_path):
    found = []

    def on_trial(trial, so_far):
        assert recipe_in(tmp_path / "out" / "best.toml") == so_far.recipe(so_far.ranking[0])
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


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"repeats": 0}, {"timeout": -1.0}])
def test_a_search_of_nothing_is_refused(wrong, source, tmp_path):
    with pytest.raises(EdgewiseError, match="must be above 0"):
        search(source, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_no_validation_part_is_refused(source, tmp_path):
    settings = {"split_column": "", "split": "0.5,0,0.5"}
    with pytest.raises(EdgewiseError, match=r"validation.*choose another --split"):
        search(source, tmp_path / "out", settings=settings)


FOREVER = """
import sys
from edgewise.data.sources import find_source
from edgewise.core.recipe import make_recipe
from edgewise.tuning import tune
fixed = dict(layer="conv", epochs=6, patience=6, split_column="part")
nodes, edges, out = sys.argv[1:]
tune(find_source([nodes, edges]), make_recipe("nodes", **fixed), fixed, out, trials=100000)
"""


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
    assert recipe_in(folder / "best.toml") == tuned.recipe(tuned.ranking[0])


def lines_of(folder):
    return (folder / "trials.csv").read_text().splitlines()


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


@pytest.mark.parametrize("kind", KINDS)
def test_every_draw_is_a_recipe_that_a_model_can_be_built_from(kind):
    from edgewise.training import build_model

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    base = make_recipe(kind)
    seen = set()
    for _ in range(60):
        trial, recipe = study.ask(), base
        for searched in SPACE:
            if kind in searched.kinds and searched.when(kind, recipe):
                recipe = replace(recipe, **{searched.name: searched.suggest(trial)})
        build_model(kind, 4, 2, 1, recipe)
        assert ("adapt" in trial.params) == (recipe.layer == "attention" and recipe.depth > 1)
        assert "hidden" in trial.params or (kind, recipe.depth) == ("nodes", 1)
        seen |= set(trial.params)
    assert seen == {searched.name for searched in SPACE if kind in searched.kinds}


def test_convolution_alone_is_drawn_for_a_normalisation_that_only_it_has():
    layer = next(searched for searched in SPACE if searched.name == "layer")
    assert not layer.when("nodes", Recipe(normalize="gcn"))


def test_the_settings_of_every_preset_are_among_those_searched():
    names = [knob.name for knob in fields(Recipe)]
    for searched, preset, kind in itertools.product(SPACE, PRESETS, KINDS):
        assert searched.name in names
        value, among = getattr(make_recipe(kind, preset), searched.name), searched.among
        if kind in searched.kinds:
            inside = (
                among.low <= value <= among.high if isinstance(among, Range) else value in among
            )
            assert inside, (searched.name, preset, kind)


def test_molecules_are_searched_with_both_featurizers(tmp_path):
    smiles = ("CCO", "CCN", "CCCl", "c1ccccc1", "CC(=O)O", "CCCC", "C1CCCCC1", "c1ccncc1", "CC#N")
    rows = [f"{s},{len(s) + 0.1 * i}" for i, s in enumerate(smiles * 2)]
    (tmp_path / "molecules.csv").write_text("\n".join(["smiles,size", *rows]) + "\n")
    source = find_source([str(tmp_path / "molecules.csv")])
    fixed = {"layer": "conv", "epochs": 3, "split": "0.6,0.2,0.2"}
    base = make_recipe("molecules", **fixed)
    tuned = tune(source, base, fixed, tmp_path / "out", trials=6)
    assert {trial.settings["featurizer"] for trial in tuned.trials} == {"paper", "rich"}
    assert "weighted" not in tuned.names  # values have no classes
    values = [trial.value for trial in tuned.ranking]
    assert values == sorted(values)  # of an error the lowest is best
    for trial in tuned.ranking:
        assert trial.value == best_validation_score(source, tuned.recipe(trial), lowest=True)
    assert recipe_in(tmp_path / "out" / "best.toml", "molecules") == tuned.recipe(tuned.ranking[0])


def test_without_optuna_one_sentence_says_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("edgewise.tuning")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(EdgewiseError, match=r"edgewise tune needs.*edgewise\[tune\]"):
        import edgewise.tuning  # noqa: F401


@pytest.fixture
def command():
    app = typer.Typer()
    app.command()(recipe_flags(tune_command))
    app.command("other")(lambda: None)
    return lambda *words: CliRunner().invoke(app, ["tune", *map(str, words)])


def test_the_command_tells_each_trial_and_what_to_type_next(command, source, tmp_path):
    flags = ["--epochs", 4, "--layer", "conv", "--split-column", "part", "--out", tmp_path / "out"]
    done = command(*source.places, "--trials", 2, *flags)
    assert done.exit_code == 0, done.output
    assert "trial 0: accuracy 0." in done.output
    assert "2 trials (2 complete)" in done.output
    assert f"--config {tmp_path / 'out' / 'best.toml'}" in done.output.replace("\n", "")
    recipe = recipe_in(tmp_path / "out" / "best.toml")
    assert (recipe.epochs, recipe.layer) == (4, "conv")
    again = command(*source.places, "--trials", 3, *flags, "--quiet")
    assert (again.exit_code, again.output) == (0, "")
    assert len(lines_of(tmp_path / "out")) == 1 + 3


def test_a_config_file_fixes_what_it_says(command, source, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'preset = "paper"\nlayer = "conv"\nhidden = 7\nepochs = 3\nsplit_column = "part"\n'
    )
    out = tmp_path / "out"
    done = command(
        *source.places, "--trials", 2, "--config", tmp_path / "mine.toml", "--out", out, "--quiet"
    )
    assert done.exit_code == 0, done.output
    assert read_config(out / "best.toml")["hidden"] == 7
    assert "hidden" not in lines_of(out)[0]
