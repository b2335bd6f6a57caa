"""A run folder can be killed at any moment and continued; what it holds is whole or refused."""

import csv
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from edgewise import jobs
from edgewise.core.errors import EdgewiseError
from edgewise.core.files import alone_in
from edgewise.core.recipe import make_recipe
from edgewise.data.sources import find_source
from edgewise.fitted import load_model
from edgewise.problems import open_problem
from edgewise.runs import check_data, open_run, start_run, train_run

SETTINGS = {"hidden": 4, "epochs": 12, "patience": 12}
SMILES = (
    "CCO",
    "CCN",
    "CCCl",
    "c1ccccc1",
    "CC(=O)O",
    "CCCC",
    "C1CCCCC1",
    "c1ccncc1",
    "CC#N",
    "CBr",
)


@pytest.fixture(autouse=True)
def _no_report(request, monkeypatch):
    """Drawing takes longer than these small runs."""
    if "report" not in request.keywords:
        monkeypatch.setattr("edgewise.jobs.training.write_report", lambda *_: None)


@pytest.fixture
def graph_folder(tmp_path):
    """Two communities of twenty nodes, one node without a label."""
    folder = tmp_path / "firms"
    folder.mkdir()
    draw = random.Random(0)
    nodes = [f"n{i},{draw.gauss(i % 2, 1):.3f},{'ab'[i % 2]}" for i in range(40)]
    nodes[7] = nodes[7][:-1]
    (folder / "nodes.csv").write_text("id,size,label\n" + "\n".join(nodes) + "\n")
    pairs = {(i, (i + 2 * draw.randint(1, 9)) % 40) for i in range(40) for _ in range(3)}
    edges = [f"n{a},n{b},{draw.random():.3f}" for a, b in sorted(pairs)]
    (folder / "edges.csv").write_text("source,target,amount\n" + "\n".join(edges) + "\n")
    return folder


@pytest.fixture
def molecule_file(tmp_path):
    path = tmp_path / "molecules.csv"
    rows = [f"{smiles},{len(smiles)}.5" for smiles in SMILES * 3]
    path.write_text("smiles,logp\n" + "\n".join([*rows, "C(C,1.0"]) + "\n")
    return path


@pytest.mark.parametrize(("edges", "told"), [("directed", False), ("undirected", True)])
def test_a_graph_without_direction_is_told_to_need_none(graph_folder, edges, told):
    recipe = make_recipe("nodes", edges=edges, directed=True)
    notes = open_problem(find_source([str(graph_folder)]), recipe).notes
    assert any("there is no direction to learn from" in note for note in notes) == told


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def files_of(folder):
    """Every file of a run but the report, with the seconds it took left out."""
    found = {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}
    metrics = json.loads(found.pop("metrics.json"))
    metrics.pop("seconds")
    found.pop("report.html", None)
    recipe = json.loads(found.pop("recipe.json"))
    recipe.pop("command")
    return found | {"metrics": metrics, "recipe": recipe}


@pytest.mark.report
def test_a_run_leaves_everything_behind(graph_folder, tmp_path):
    run = jobs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    names = {path.name for path in run.folder.iterdir()}
    assert names == {
        *("recipe.json", "splits.json", "model.json", "model.safetensors", "reader.json"),
        *("history.csv", "predictions.csv", "metrics.json", "report.html"),
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


def test_bad_molecules_are_listed_and_the_run_goes_on(molecule_file, tmp_path):
    told = []
    run = jobs.train(str(molecule_file), tmp_path / "run", tell=told.append, **SETTINGS)
    assert any("1 of 31 rows cannot be read" in note for note in told)
    assert "not a SMILES" in (run.folder / "invalid.csv").read_text()
    assert len(rows_of(run.folder / "predictions.csv")) == 30


def test_the_saved_split_gives_the_same_run_again(molecule_file, tmp_path):
    first = jobs.train(str(molecule_file), tmp_path / "first", seed=5, **SETTINGS)
    split = str(first.folder / "splits.json")
    again = jobs.train(str(molecule_file), tmp_path / "again", seed=5, split=split, **SETTINGS)
    assert files_of(first.folder)["metrics"] == files_of(again.folder)["metrics"]


def test_an_ensemble_predicts_the_mean_and_the_spread_of_its_members(molecule_file, tmp_path):
    run = jobs.train(str(molecule_file), tmp_path / "run", ensemble=3, **SETTINGS)
    model = run.model()
    problem = open_problem(run.source, run.recipe).problem
    together = model.predict_problem(problem)
    alone = [
        type(model)(**{**vars(model), "members": (m,)}).predict_problem(problem).mean
        for m in model.members
    ]
    np.testing.assert_array_equal(together.mean, np.mean(alone, axis=0))
    np.testing.assert_array_equal(together.spread, np.std(alone, axis=0))
    assert (together.spread > 0).all()


def test_a_run_that_is_stopped_keeps_the_best_so_far_and_can_go_on(graph_folder, tmp_path):
    whole = jobs.train(str(graph_folder), tmp_path / "whole", ensemble=2, **SETTINGS)
    seen = []
    run = jobs.train(
        str(graph_folder),
        tmp_path / "run",
        ensemble=2,
        on_epoch=lambda *what: seen.append(what),
        stop=lambda: len(seen) >= 5,
        **SETTINGS,
    )
    assert not run.finished
    assert run.metrics["epochs"] == [5]
    assert len(load_model(run.folder).members) == 1
    jobs.resume(run.folder)
    assert files_of(run.folder) == files_of(whole.folder)
    assert run.finished


def test_stopping_before_the_first_epoch_is_a_sentence(graph_folder, tmp_path):
    with pytest.raises(EdgewiseError, match="stopped before the first epoch"):
        jobs.train(str(graph_folder), tmp_path / "run", stop=lambda: True, **SETTINGS)
    assert jobs.resume(tmp_path / "run").finished


@pytest.mark.report
def test_a_run_whose_report_cannot_be_written_is_kept_and_gets_it_later(
    graph_folder, tmp_path, monkeypatch
):
    def no_room(*_):
        raise EdgewiseError("cannot write report.html (No space left on device)")

    monkeypatch.setattr("edgewise.jobs.training.write_report", no_room)
    with pytest.raises(EdgewiseError, match="No space left"):
        jobs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    assert open_run(tmp_path / "run").finished
    monkeypatch.undo()
    run = jobs.resume(tmp_path / "run")
    written = (run.folder / "report.html").stat().st_mtime_ns
    jobs.resume(run.folder)
    assert (run.folder / "report.html").stat().st_mtime_ns == written


@pytest.mark.parametrize("made", [True, False])
def test_what_makes_no_model_leaves_no_folder(graph_folder, tmp_path, made, monkeypatch):
    if made:
        (tmp_path / "run").mkdir()

    def no_model(*_):
        raise EdgewiseError("no model can be made")

    monkeypatch.setattr("edgewise.runs.training.make_trainer", no_model)
    with pytest.raises(EdgewiseError, match="no model"):
        jobs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    assert not (tmp_path / "run").exists()


def test_a_split_file_that_changes_does_not_change_the_run(graph_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"train": [*range(10)], "validation": [*range(10, 20)], "test": [*range(20, 30)]}
    (tmp_path / "split.json").write_text(json.dumps(rows))
    whole = jobs.train(str(graph_folder), "whole", split="split.json", **SETTINGS)
    seen = []
    run = jobs.train(
        str(graph_folder),
        "run",
        split="split.json",
        on_epoch=lambda *what: seen.append(what),
        stop=lambda: len(seen) >= 3,
        **SETTINGS,
    )
    scores = {name: whole.metrics[name] for name in rows}
    (tmp_path / "split.json").write_text(json.dumps({**rows, "train": [30], "test": [31]}))
    assert jobs.evaluate(whole.folder) == scores
    monkeypatch.chdir(graph_folder)
    resumed = jobs.resume(tmp_path / "run")
    assert files_of(resumed.folder) == files_of(tmp_path / "whole")
    assert run.recipe.split == "split.json"


@pytest.mark.report
def test_the_column_that_told_the_split_never_becomes_a_feature(graph_folder, tmp_path):
    header, *rows = (graph_folder / "nodes.csv").read_text().splitlines()
    parts = [("train", "validation", "test")[i % 3] for i in range(len(rows))]
    lines = [f"{row},{part}" for row, part in zip(rows, parts, strict=True)]
    (graph_folder / "nodes.csv").write_text("\n".join([f"{header},part", *lines, ""]))
    seen = []
    run = jobs.train(
        str(graph_folder),
        tmp_path / "run",
        split_column="part",
        on_epoch=lambda *what: seen.append(what),
        stop=lambda: len(seen) >= 3,
        **SETTINGS,
    )
    run = jobs.resume(run.folder)
    assert run.finished
    assert jobs.evaluate(run.folder)["test"] == run.metrics["test"]
    (run.folder / "report.html").unlink()
    jobs.resume(run.folder)
    assert "The data are unavailable" not in (run.folder / "report.html").read_text()


def test_a_run_is_trained_by_one_process_at_a_time(graph_folder, tmp_path):
    run = start_run(
        tmp_path / "run", find_source([str(graph_folder)]), make_recipe("nodes"), "default", ""
    )
    with (
        alone_in(run.folder, "training"),
        pytest.raises(EdgewiseError, match="another training is at work in"),
    ):
        jobs.resume(run.folder)
    assert sorted(path.name for path in run.folder.iterdir()) == ["recipe.json"]


def test_bad_data_leave_no_folder_behind(graph_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EdgewiseError, match="has no column 'gone'"):
        jobs.train(str(graph_folder), target="gone")
    assert [path.name for path in tmp_path.iterdir()] == ["firms"]


def test_folders_are_reserved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [jobs.reserve_folder("firms").name for _ in range(3)] == ["firms", "firms-2", "firms-3"]


TRAIN_SLOWLY = """
import sys, time
from edgewise import runs
from edgewise.problems import open_problem
run = runs.open_run(sys.argv[1])
runs.train_run(run, open_problem(run.source, run.recipe), checkpoint_seconds=0,
    on_epoch=lambda *_: (print("epoch", flush=True), time.sleep(0.02)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nodes", "molecules"])
def test_a_run_killed_at_any_moment_ends_as_if_it_had_not_been(
    kind, graph_folder, molecule_file, tmp_path
):
    data = str(graph_folder if kind == "nodes" else molecule_file)
    settings = {**SETTINGS, "layer": "attention", "ensemble": 2, "dropout": 0.3}
    whole = jobs.train(data, tmp_path / "whole", **settings)
    source = find_source([data])
    recipe = make_recipe(kind, "default", **settings)
    folder = start_run(tmp_path / "killed", source, recipe, "default", "").folder
    draw = random.Random(kind)
    kills = 0
    for _ in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", TRAIN_SLOWLY, str(folder)], stdout=subprocess.PIPE
        )
        for _ in range(draw.randint(1, 9)):
            process.stdout.readline()
        time.sleep(draw.random() * 0.03)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        process.stdout.close()
        if open_run(folder).finished:
            break
    assert kills >= 2
    jobs.resume(folder)
    assert files_of(folder) == files_of(whole.folder)
    assert not list(folder.rglob(".part-*"))


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_with_the_best_model_so_far(graph_folder, tmp_path):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "edgewise", "train", str(graph_folder), "--json"),
            *("--out", str(tmp_path / "run"), "--epochs", "100000", "--patience", "100000"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(3):
        assert json.loads(process.stdout.readline())["event"] == "epoch"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    done = json.loads(out.splitlines()[-1])
    assert (done["event"], done["metrics"]["finished"]) == ("done", False)
    assert load_model(tmp_path / "run").members
    assert (tmp_path / "run" / "report.html").exists()


def test_changed_data_are_not_taken_for_the_old_ones(graph_folder, tmp_path):
    run = start_run(
        tmp_path / "run", find_source([str(graph_folder)]), make_recipe("nodes"), "default", ""
    )
    check_data(run)
    with (graph_folder / "edges.csv").open("a") as stream:
        stream.write("n0,n39,1\n")
    with pytest.raises(EdgewiseError, match="has changed since"):
        jobs.resume(run.folder)


def test_data_that_are_gone_are_a_sentence(graph_folder, molecule_file, tmp_path):
    for name, data in (("nodes", graph_folder), ("molecules", molecule_file)):
        run = jobs.train(str(data), tmp_path / name, **SETTINGS)
        data.rename(data.with_name("moved"))
        with pytest.raises(EdgewiseError, match="put the data back"):
            jobs.evaluate(run.folder)
        with pytest.raises(EdgewiseError, match="is not there any more"):
            jobs.predict(run.folder, (), tmp_path / "out.csv")
        assert not (tmp_path / "out.csv").exists()
        data.with_name("moved").rename(data)


@pytest.mark.parametrize("content", ["{", "{}", "[]", "null"])
def test_damaged_metrics_are_a_sentence_whose_cure_works(graph_folder, tmp_path, content):
    run = jobs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    metrics = run.metrics
    (run.folder / "metrics.json").write_text(content)
    with pytest.raises(EdgewiseError, match=r"is damaged .* delete it and run"):
        jobs.resume(run.folder)
    (run.folder / "metrics.json").unlink()
    assert jobs.resume(run.folder).metrics["test"] == metrics["test"]


def test_a_folder_that_holds_something_is_left_alone(graph_folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    with pytest.raises(EdgewiseError, match="exists already and is not empty"):
        jobs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_settings_that_make_no_model_leave_no_folder(graph_folder, tmp_path):
    with pytest.raises(EdgewiseError, match="heads=1 or adapt=False"):
        jobs.train(str(graph_folder), tmp_path / "run", layer="attention", heads=2)
    assert not (tmp_path / "run").exists()


PREDICT = """
import sys
from edgewise import jobs
jobs.predict(sys.argv[1], sys.argv[2:3], sys.argv[3])
"""


@pytest.mark.parametrize("kind", ["nodes", "molecules"])
def test_a_saved_model_predicts_the_same_bits_in_a_new_process(
    kind, graph_folder, molecule_file, tmp_path
):
    data = str(graph_folder if kind == "nodes" else molecule_file)
    run = jobs.train(data, tmp_path / "run", **SETTINGS)
    jobs.predict(run.folder, [data], tmp_path / "here.csv")
    program = [sys.executable, "-c", PREDICT, str(run.folder), data, str(tmp_path / "there.csv")]
    subprocess.run(program, check=True)
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    trained = {row.get("id") or row["row"]: row for row in rows_of(run.folder / "predictions.csv")}
    for number, row in enumerate(rows_of(tmp_path / "here.csv")):
        if row.get("error"):
            continue
        name = row.get("id") or str(number)
        column = "p_a" if kind == "nodes" else "logp_predicted"
        assert float(row[column]) == pytest.approx(float(trained[name][column]), rel=1e-5)


@pytest.fixture
def model_folder(graph_folder, tmp_path):
    return jobs.train(str(graph_folder), tmp_path / "run", **SETTINGS).folder


def test_a_truncated_model_is_refused(model_folder):
    path = model_folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(EdgewiseError, match="not a whole safetensors file"):
        load_model(model_folder)


def test_a_renamed_pickle_is_refused_and_never_run(model_folder, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    (model_folder / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(EdgewiseError, match="not a whole safetensors file"):
        load_model(model_folder)
    assert not (tmp_path / "sprung").exists()


def change(tensors, how):
    name = sorted(tensors)[0]
    match how:
        case "shape":
            tensors[name] = tensors[name].unsqueeze(0).contiguous()
        case "missing":
            tensors.pop(name)
        case "extra":
            tensors["0.stranger"] = torch.zeros(2)
        case "type":
            tensors[name] = tensors[name].double()
        case "nan":
            tensors[name] = torch.full_like(tensors[name], float("nan"))
    return tensors


@pytest.mark.parametrize("how", ["shape", "missing", "extra", "type", "nan"])
def test_tensors_that_do_not_fit_are_refused(model_folder, how):
    path = model_folder / "model.safetensors"
    save_file(change(load_file(path), how), path)
    with pytest.raises(EdgewiseError, match="train again"):
        load_model(model_folder)


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c.pop("task"),
        lambda c: c.update(format="other 7"),
        lambda c: c.update(features="many"),
        lambda c: c.update(members=0),
        lambda c: c.update(recipe={"hidden": -1}),
        lambda c: c.update(recipe={"hidden_layers": 1}),
        lambda c: c["task"].update(kind="guess"),
        lambda c: c["task"].update(classes=[]),
        lambda c: c.update(kind="pictures"),
    ],
)
def test_a_description_that_was_changed_is_refused(model_folder, edit):
    path = model_folder / "model.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(EdgewiseError, match="is not a saved model"):
        load_model(model_folder)


def test_a_description_of_another_width_does_not_fit_the_tensors(model_folder):
    path = model_folder / "model.json"
    path.write_text(path.read_text().replace('"hidden": 4', '"hidden": 5'))
    with pytest.raises(EdgewiseError, match=r"but model\.json asks for"):
        load_model(model_folder)


def test_a_damaged_checkpoint_is_named(graph_folder, tmp_path):
    seen = []
    run = jobs.train(
        str(graph_folder),
        tmp_path / "run",
        on_epoch=lambda *what: seen.append(what),
        stop=lambda: len(seen) >= 2,
        **SETTINGS,
    )
    path = run.folder / "checkpoint" / "member-0.safetensors"
    tensors = load_file(path)
    save_file({"history": tensors["history"]}, path)
    with pytest.raises(EdgewiseError, match="does not fit the run"):
        jobs.resume(run.folder)
    path.write_bytes(b"nothing")
    with pytest.raises(EdgewiseError, match="not a whole safetensors file"):
        jobs.resume(run.folder)


def test_a_folder_without_a_run_is_a_sentence(tmp_path):
    with pytest.raises(EdgewiseError, match=r"no recipe\.json"):
        open_run(tmp_path)
    with pytest.raises(EdgewiseError, match="holds no model; give the folder of a run"):
        load_model(tmp_path)
    (tmp_path / "recipe.json").write_text("{}")
    with pytest.raises(EdgewiseError, match="cannot be used"):
        open_run(tmp_path)


def test_a_copy_of_the_folder_works_elsewhere(model_folder, tmp_path):
    shutil.copytree(model_folder, tmp_path / "copy")
    assert load_model(tmp_path / "copy").task.classes == ("a", "b")
    run = open_run(tmp_path / "copy")
    train_run(run, open_problem(run.source, run.recipe))
