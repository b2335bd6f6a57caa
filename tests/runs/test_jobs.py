"""Predicting, evaluating and comparing need no flag of the training again."""

import csv
import json
import math
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rdkit import Chem

from edgewise import jobs
from edgewise.core.errors import EdgewiseError
from edgewise.data import streams
from edgewise.data.graph_files import save_graph
from edgewise.data.molecule_tables import read_molecules
from edgewise.data.sources import find_source
from edgewise.fitted import load_model
from edgewise.jobs.new_data import read_graph
from edgewise.runs.compare import compare

SETTINGS = {"hidden": 4, "epochs": 6, "patience": 6}
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


def rows_of(path):
    with Path(path).open(newline="") as stream:
        return list(csv.DictReader(stream))


def edgewise(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "edgewise", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


@pytest.fixture(autouse=True)
def _no_report(monkeypatch):
    monkeypatch.setattr("edgewise.jobs.training.write_report", lambda *_: None)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Molecules, and a graph whose label column is not called so."""
    folder = tmp_path_factory.mktemp("data")
    rows = [
        f"m{i},{s},{len(s)}.5,{int('c' in s)},{'long' if len(s) > 4 else 'short'}"
        for i, s in enumerate(SMILES * 2)
    ]
    (folder / "molecules.csv").write_text("name,mol,logp,ring,size\n" + "\n".join(rows) + "\n")
    nodes = [f"{i},{i % 3},{'xy'[i % 2]}" for i in range(20)]
    (folder / "nodes.tsv").write_text(
        "who,weight,side\n".replace(",", "\t")
        + "\n".join(n.replace(",", "\t") for n in nodes)
        + "\n"
    )
    edges = [f"{i},{(i + step) % 20},{step}" for i in range(20) for step in (2, 4)]
    (folder / "edges.csv").write_text("from,to,amount\n" + "\n".join(edges) + "\n")
    return folder


@pytest.fixture(scope="module")
def molecule_run(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "molecules"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgewise.jobs.training.write_report", lambda *_: None)
        return jobs.train(
            str(place / "molecules.csv"), folder, target="logp", ensemble=2, **SETTINGS
        )


@pytest.fixture(scope="module")
def node_run(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "nodes"
    columns = {"id_column": "who", "source_column": "from", "target_column": "to"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgewise.jobs.training.write_report", lambda *_: None)
        return jobs.train(
            [str(place / "nodes.tsv"), str(place / "edges.csv")],
            folder,
            target="side",
            **columns,
            **SETTINGS,
        )


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
    run = jobs.train(
        str(place / "molecules.csv"), tmp_path / "run", target=target, tell=told.append, **SETTINGS
    )
    assert run.metrics["task"] == kind
    assert any(target[0] in note for note in told)


def test_the_task_can_be_set(place, tmp_path):
    run = jobs.train(
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
        ({"target": "logp", "split": "sometimes"}, "split = 'sometimes' is not known"),
        ({"target": "logp", "split": "a,b,c"}, "is not three shares"),
        ({"target": "logp", "directed": True}, "bonds have no direction"),
        ({"target": ["logp", "ring"], "stratify": True}, "cannot be balanced at once"),
    ],
)
def test_what_cannot_be_learnt_is_a_sentence(place, tmp_path, settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        jobs.train(str(place / "molecules.csv"), tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_predictions_keep_rows_and_columns_and_mark_bad_ones(molecule_run, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text('key,smiles,note\nk1,CCO,"a, b"\nk2,C(,\nk3,CC,x,y\n\nk4,,\nk5,CCN,é\n')
    assert jobs.predict(molecule_run.folder, [str(path)], tmp_path / "out.csv") == (2, 3)
    rows = rows_of(tmp_path / "out.csv")
    assert [row["key"] for row in rows] == ["k1", "k2", "k3", "k4", "k5"]
    assert (rows[0]["note"], rows[4]["note"]) == ("a, b", "é")
    assert [bool(row["logp_predicted"]) for row in rows] == [True, False, False, False, True]
    assert [bool(row["error"]) for row in rows] == [False, True, True, True, False]
    assert float(rows[0]["logp_spread"]) > 0


def test_new_molecules_may_call_their_column_otherwise(molecule_run, place, tmp_path):
    path = tmp_path / "other.csv"
    path.write_text((place / "molecules.csv").read_text().replace("mol", "formula", 1))
    for call in (jobs.predict, jobs.evaluate):
        with pytest.raises(EdgewiseError, match="no column looks like SMILES"):
            call(molecule_run.folder, [str(path)])
        with pytest.raises(EdgewiseError, match="has no column 'form'"):
            call(molecule_run.folder, [str(path)], smiles_column="form")
    expected = jobs.evaluate(molecule_run.folder, [str(place / "molecules.csv")])
    assert jobs.evaluate(molecule_run.folder, [str(path)], smiles_column="formula") == expected
    out, alike = tmp_path / "out.csv", tmp_path / "alike.csv"
    jobs.predict(molecule_run.folder, [str(path)], out, smiles_column="formula")
    jobs.predict(molecule_run.folder, [str(place / "molecules.csv")], alike)
    assert [tuple(row.values()) for row in rows_of(out)] == [
        tuple(row.values()) for row in rows_of(alike)
    ]


def test_structures_count_whatever_their_properties_are_called(molecule_run, tmp_path):
    molecules = [Chem.MolFromSmiles(smiles) for smiles in ("CCO", "CCN")]
    with Chem.SDWriter(str(tmp_path / "new.sdf")) as writer:
        for molecule in molecules:
            for name in ("smiles", "mol", "SMILES"):
                molecule.SetProp(name, "C")
            molecule.SetProp("key", "007")
            writer.write(molecule)
    for column in ("", "mol"):
        jobs.predict(
            molecule_run.folder, [str(tmp_path / "new.sdf")], tmp_path / "out.csv",
            smiles_column=column,
        )  # fmt: skip
        rows = rows_of(tmp_path / "out.csv")
        assert [(row["smiles"], row["mol"]) for row in rows] == [("CCO", "C"), ("CCN", "C")]
        assert [row["key"] for row in rows] == ["007"] * 2
        assert rows[0]["logp_predicted"] != rows[1]["logp_predicted"]
    assert read_molecules(tmp_path / "new.sdf").smiles == ("CCO", "CCN")


def test_bytes_that_are_no_text_come_out_as_they_went_in(molecule_run, tmp_path):
    (tmp_path / "new.csv").write_bytes(b"smiles,note\nCCO,fine\nCCN,5 \xb5g\n,,\n")
    told = subprocess.run(
        [sys.executable, "-m", "edgewise", "predict", str(molecule_run.folder), "new.csv"],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        check=False,
    )
    assert told.returncode == 0, told.stderr
    _, first, second, third = told.stdout.splitlines()
    assert first.startswith(b"CCO,fine,")
    assert second.startswith(b"CCN,5 \xb5g,,")
    assert b"bytes that are not utf-8" in second
    assert third.startswith(b",,")  # a row of empty cells keeps its place
    jobs.predict(
        molecule_run.folder, [str(tmp_path / "new.csv")], tmp_path / "out.csv", encoding="latin-1"
    )
    assert [row["note"] for row in rows_of(tmp_path / "out.csv")][:2] == ["fine", "5 µg"]
    assert not rows_of(tmp_path / "out.csv")[1]["error"]


def test_what_is_left_out_of_an_evaluation_is_said(molecule_run, tmp_path):
    (tmp_path / "new.csv").write_text("smiles,logp\nCCO,1\nC(,2\nCCN,3\n")
    told = []
    metrics = jobs.evaluate(molecule_run.folder, [str(tmp_path / "new.csv")], tell=told.append)
    assert metrics["rows"] == 2
    assert told == ["1 of 3 rows cannot be read and are left out: [3]"]


def test_predicting_in_stretches_changes_nothing(molecule_run, place, tmp_path, monkeypatch):
    data = [str(place / "molecules.csv")]
    jobs.predict(molecule_run.folder, data, tmp_path / "whole.csv")
    read = streams.stream_table
    monkeypatch.setattr(
        "edgewise.jobs.prediction.stream_table", lambda *a, **k: read(*a, **k, rows=3)
    )
    jobs.predict(molecule_run.folder, data, tmp_path / "parts.csv")
    for whole, part in zip(
        rows_of(tmp_path / "whole.csv"), rows_of(tmp_path / "parts.csv"), strict=True
    ):
        assert float(part["logp_predicted"]) == pytest.approx(
            float(whole["logp_predicted"]), rel=1e-5
        )
        assert part["name"] == whole["name"]


def test_an_output_that_exists_is_replaced_only_when_all_is_written(molecule_run, tmp_path):
    (tmp_path / "out.csv").write_text("precious")
    (tmp_path / "bad.csv").write_text("key,structures\n1,CCO\n")
    with pytest.raises(EdgewiseError, match="no column looks like SMILES"):
        jobs.predict(molecule_run.folder, [str(tmp_path / "bad.csv")], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv", "out.csv"]


def test_the_input_is_never_overwritten(molecule_run, place):
    path = place / "molecules.csv"
    with pytest.raises(EdgewiseError, match="is the input itself"):
        jobs.predict(molecule_run.folder, [str(path)], path)


def test_a_table_in_the_folder_that_is_read_is_never_overwritten(node_run, tmp_path):
    (tmp_path / "nodes.csv").write_text("who,weight\nz,1\na,2\n")
    (tmp_path / "edges.csv").write_text("from,to,amount\nz,a,1\n")
    with pytest.raises(EdgewiseError, match="is the input itself"):
        jobs.predict(node_run.folder, [str(tmp_path)], tmp_path / "nodes.csv")
    assert (tmp_path / "nodes.csv").read_text().startswith("who,weight")


def test_the_list_of_bad_rows_never_overwrites_the_table(tmp_path):
    (tmp_path / "bad.csv").write_text("smiles,y\nC(,1.5\nCCO,2.5\nCCN,0.5\n")
    told = edgewise("check", "bad.csv", "--invalid-file", "bad.csv", cwd=tmp_path)
    assert told.returncode == 2
    assert "bad.csv is the input itself; choose another --invalid-file" in told.stderr
    assert (tmp_path / "bad.csv").read_text().startswith("smiles,y")


@pytest.mark.parametrize("name", ["logp_predicted", "logp_spread", "error"])
def test_a_column_that_predictions_need_is_not_overwritten(molecule_run, tmp_path, name):
    path = tmp_path / "again.csv"
    path.write_text(f"smiles,{name}\nCCO,1\n")
    with pytest.raises(EdgewiseError, match=f"has a column '{name}' already"):
        jobs.predict(molecule_run.folder, [str(path)], tmp_path / "out.csv")


def test_a_table_without_rows_and_a_target_named_twice_are_sentences(place, tmp_path):
    (tmp_path / "empty.csv").write_text("smiles,y\n")
    with pytest.raises(EdgewiseError, match="has a header but no rows"):
        jobs.train(str(tmp_path / "empty.csv"), tmp_path / "run")
    with pytest.raises(EdgewiseError, match="a target is named twice"):
        jobs.train(str(place / "molecules.csv"), tmp_path / "run", target=["logp", "logp"])


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


def test_predicting_that_is_ended_leaves_nothing_half_written(molecule_run, tmp_path):
    (tmp_path / "long.csv").write_text("smiles\n" + "CCCCCCO\n" * 200_000)
    command = (sys.executable, "-m", "edgewise", "predict", str(molecule_run.folder))
    with subprocess.Popen([*command, "long.csv", "--out", "out.csv"], cwd=tmp_path) as process:
        while process.poll() is None and not list(tmp_path.glob(".part-*")):
            time.sleep(0.01)
        process.terminate()
        assert process.wait() == 128 + 15
    assert [path.name for path in tmp_path.iterdir()] == ["long.csv"]


def test_nodes_of_the_own_graph_and_of_a_new_one_are_predicted(node_run, tmp_path):
    assert jobs.predict(node_run.folder, (), tmp_path / "own.csv") == (20, 0)
    (tmp_path / "nodes.csv").write_text("who,weight\nz,1\na,2\nm,0\n")
    (tmp_path / "edges.csv").write_text("from,to,amount\na,m,2\nz,a,1\n")
    jobs.predict(node_run.folder, [str(tmp_path)], tmp_path / "new.csv")
    rows = rows_of(tmp_path / "new.csv")
    assert [row["id"] for row in rows] == ["z", "a", "m"]
    assert all(row["predicted"] in ("x", "y") for row in rows)
    assert all(abs(float(row["p_x"]) + float(row["p_y"]) - 1) < 1e-6 for row in rows)


def graph_of(node_run, place, **changes):
    model = load_model(node_run.folder)
    tables = find_source([str(place / "nodes.tsv"), str(place / "edges.csv")])
    return replace(read_graph(model, tables, lambda _: None), **changes)


def test_classes_are_told_apart_by_name(node_run, place, tmp_path):
    graph = graph_of(node_run, place)
    expected = jobs.evaluate(node_run.folder, [str(place / "nodes.tsv"), str(place / "edges.csv")])
    other = replace(graph, y=2 - graph.y, class_names=("w", "y", "x"))
    save_graph(other, tmp_path / "other.safetensors")
    assert jobs.evaluate(node_run.folder, [str(tmp_path / "other.safetensors")]) == expected
    jobs.predict(node_run.folder, [str(tmp_path / "other.safetensors")], tmp_path / "out.csv")
    assert [row["true"] for row in rows_of(tmp_path / "out.csv")] == ["x", "y"] * 10


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"class_names": ("x", "z")}, r"does not know the class\(es\) \[z\]; it learnt \[x, y\]"),
        ({"class_names": None}, r"does not know the class\(es\) \[0, 1\]"),
        ({"y": torch.ones(20), "class_names": None}, "labels of the graph are values"),
    ],
)
def test_labels_that_the_model_did_not_learn_cannot_be_compared_but_do_not_hinder_predictions(
    node_run, place, tmp_path, changes, sentence
):
    other = tmp_path / "other.safetensors"
    save_graph(graph_of(node_run, place, **changes), other)
    with pytest.raises(EdgewiseError, match=sentence):
        jobs.evaluate(node_run.folder, [str(other)])
    told: list[str] = []
    jobs.predict(node_run.folder, [str(other)], tmp_path / "out.csv", tell=told.append)
    assert re.search(rf"without the truth .*{sentence}", told[0])
    rows = rows_of(tmp_path / "out.csv")
    assert len(rows) == 20
    assert ("true" in rows[0], "predicted" in rows[0]) == (False, True)


def test_a_new_graph_with_other_columns_is_refused(node_run, tmp_path):
    (tmp_path / "nodes.csv").write_text("who,height\nz,1\n")
    (tmp_path / "edges.csv").write_text("from,to,amount\n")
    with pytest.raises(EdgewiseError, match="has no column 'weight'"):
        jobs.predict(node_run.folder, [str(tmp_path)], tmp_path / "new.csv")


def test_a_model_is_given_data_of_its_own_kind(node_run, molecule_run, place, tmp_path):
    tables = [str(place / "nodes.tsv"), str(place / "edges.csv")]
    with pytest.raises(EdgewiseError, match=r"predicts molecules, but .* holds nodes"):
        jobs.predict(molecule_run.folder, tables, tmp_path / "x.csv")
    with pytest.raises(EdgewiseError, match=r"predicts nodes of a graph, but .* holds molecules"):
        jobs.evaluate(node_run.folder, [str(place / "molecules.csv")])
    with pytest.raises(EdgewiseError, match="nodes have no SMILES"):
        jobs.evaluate(node_run.folder, tables, smiles_column="formula")


def test_evaluating_gives_the_metrics_of_the_run(molecule_run, node_run):
    for run in (molecule_run, node_run):
        again = jobs.evaluate(run.folder)
        for part in ("train", "validation", "test"):
            name = run.metrics["headline"]
            assert again[part][name] == pytest.approx(run.metrics[part][name], rel=1e-9)


def test_evaluating_on_other_data_needs_their_truth(molecule_run, place, tmp_path):
    metrics = jobs.evaluate(molecule_run.folder, [str(place / "molecules.csv")])
    assert metrics["rows"] == 20
    (tmp_path / "no-truth.csv").write_text("smiles\nCCO\n")
    with pytest.raises(EdgewiseError, match="has no column 'logp'"):
        jobs.evaluate(molecule_run.folder, [str(tmp_path / "no-truth.csv")])


def test_runs_that_differ_in_seed_alone_are_one_line_with_a_spread(place, tmp_path):
    data = str(place / "molecules.csv")
    for name, settings in (("a0", {"seed": 0}), ("a1", {"seed": 1}), ("b", {"hidden": 3})):
        jobs.train(data, tmp_path / name, target="logp", **{**SETTINGS, **settings})
    lines = compare([tmp_path / name for name in ("a0", "a1", "b")])
    by_runs = {line.runs: line for line in lines}
    assert by_runs[2].differs == {"hidden": 4}
    assert by_runs[2].test[1] > 0
    assert math.isnan(by_runs[1].test[1])
    assert lines[0].test[0] <= lines[1].test[0]  # errors: the lowest first


def test_interrupted_runs_are_not_compared(place, tmp_path):
    seen = []
    run = jobs.train(
        str(place / "molecules.csv"), tmp_path / "run", target="logp",
        on_epoch=lambda *what: seen.append(what), stop=lambda: len(seen) >= 2, **SETTINGS,
    )  # fmt: skip
    with pytest.raises(EdgewiseError, match="were interrupted; finish each"):
        compare([run.folder])


def test_runs_of_different_tasks_are_not_compared(molecule_run, node_run):
    with pytest.raises(EdgewiseError, match=r"different tasks \(accuracy, rmse\)"):
        compare([molecule_run.folder, node_run.folder])
    with pytest.raises(EdgewiseError, match="named twice"):
        compare([node_run.folder, node_run.folder])


@pytest.mark.slow
def test_command_line_and_python_give_the_same_numbers(place, tmp_path):
    run = jobs.train(
        str(place / "molecules.csv"), tmp_path / "python", target="logp", seed=3, **SETTINGS
    )
    flags = ("--target", "logp", "--seed", 3, "--hidden", 4, "--epochs", 6, "--patience", 6)
    done = edgewise("train", place / "molecules.csv", "--out", tmp_path / "shell", *flags, "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["epoch"] * 6 + ["done"]
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
    assert "1 yes-or-no label(s): [ring]" in done.stdout
    assert "r-0 and 1 more" in done.stdout
    assert (tmp_path / "r-1" / "report.html").exists()
    again = edgewise("train", "--resume", tmp_path / "r-1")
    assert "is finished already" in again.stdout
    shown = edgewise("evaluate", tmp_path / "r-0")
    assert shown.stdout.startswith("train: rows ")
    piped = edgewise("predict", tmp_path / "r-0", place / "molecules.csv")
    assert piped.stdout.splitlines()[0] == "name,mol,logp,ring,size,ring_probability,error"
    quiet = edgewise("predict", tmp_path / "r-0", "--out", tmp_path / "p.csv", "--quiet")
    assert (quiet.stdout, quiet.returncode) == ("", 0)


def test_a_slip_among_numbers_is_not_taken_for_a_class(place, tmp_path):
    text = (place / "molecules.csv").read_text().replace("8.5,", "high,", 1)
    (tmp_path / "slip.csv").write_text(text)
    with pytest.raises(EdgewiseError, match=r"slip\.csv:\d+: column 'logp' holds 'high', expected"):
        jobs.train(str(tmp_path / "slip.csv"), tmp_path / "run", target="logp", **SETTINGS)


def test_a_number_beyond_single_precision_is_named(place, tmp_path):
    text = (place / "molecules.csv").read_text().replace("8.5,", "1e300,", 1)
    (tmp_path / "huge.csv").write_text(text)
    with pytest.raises(EdgewiseError, match=r"holds '1e300', expected a number of ordinary size"):
        jobs.train(str(tmp_path / "huge.csv"), tmp_path / "run", target="logp", **SETTINGS)


def test_evaluating_without_any_truth_is_a_sentence(molecule_run, tmp_path):
    (tmp_path / "empty.csv").write_text("smiles,logp\nCCO,\nCC,\n")
    with pytest.raises(EdgewiseError, match="holds no known target to compare with"):
        jobs.evaluate(molecule_run.folder, [str(tmp_path / "empty.csv")])


def test_paths_are_as_good_as_names(place, tmp_path):
    run = jobs.train(place / "molecules.csv", tmp_path / "run", target="logp", **SETTINGS)
    assert run.finished
