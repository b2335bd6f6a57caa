"""Evaluating compares with the truth of the own data or of others."""

import re
from dataclasses import replace

import pytest
import torch
from run_toys import rows_of

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.data.graph_files import save_graph


@pytest.mark.slow
def test_evaluating_gives_the_metrics_of_the_run(molecule_run, node_run):
    for run in (molecule_run, node_run):
        again = runs.evaluate(run.folder)
        for part in ("train", "validation", "test"):
            name = run.metrics["headline"]
            assert again[part][name] == pytest.approx(run.metrics[part][name], rel=1e-9)


def test_evaluating_on_other_data_needs_their_truth(molecule_run, place, tmp_path):
    metrics = runs.evaluate(molecule_run.folder, [str(place / "molecules.csv")])
    assert metrics["rows"] == 20
    (tmp_path / "no-truth.csv").write_text("smiles\nCCO\n")
    with pytest.raises(EdgewiseError, match="has no column 'logp'"):
        runs.evaluate(molecule_run.folder, [str(tmp_path / "no-truth.csv")])


def test_evaluating_without_any_truth_is_a_sentence(molecule_run, tmp_path):
    (tmp_path / "empty.csv").write_text("smiles,logp\nCCO,\nCC,\n")
    with pytest.raises(EdgewiseError, match="holds no known target to compare with"):
        runs.evaluate(molecule_run.folder, [str(tmp_path / "empty.csv")])


def test_what_is_left_out_of_an_evaluation_is_said(molecule_run, tmp_path):
    (tmp_path / "new.csv").write_text("smiles,logp\nCCO,1\nC(,2\nCCN,3\n")
    told = []
    metrics = runs.evaluate(molecule_run.folder, [str(tmp_path / "new.csv")], tell=told.append)
    assert metrics["rows"] == 2
    assert told == ["1 of 3 rows cannot be read and are left out: [3]"]


@pytest.mark.slow
def test_new_molecules_may_call_their_column_otherwise(molecule_run, place, tmp_path):
    path = tmp_path / "other.csv"
    path.write_text((place / "molecules.csv").read_text().replace("mol", "formula", 1))
    for call in (runs.predict, runs.evaluate):
        with pytest.raises(EdgewiseError, match="no column looks like SMILES"):
            call(molecule_run.folder, [str(path)])
        with pytest.raises(EdgewiseError, match="has no column 'form'"):
            call(molecule_run.folder, [str(path)], smiles_column="form")
    expected = runs.evaluate(molecule_run.folder, [str(place / "molecules.csv")])
    assert runs.evaluate(molecule_run.folder, [str(path)], smiles_column="formula") == expected
    out, alike = tmp_path / "out.csv", tmp_path / "alike.csv"
    runs.predict(molecule_run.folder, [str(path)], out, smiles_column="formula")
    runs.predict(molecule_run.folder, [str(place / "molecules.csv")], alike)
    assert [tuple(row.values()) for row in rows_of(out)] == [
        tuple(row.values()) for row in rows_of(alike)
    ]


def test_a_model_is_given_data_of_its_own_kind(node_run, molecule_run, place, tmp_path):
    tables = [str(place / "nodes.tsv"), str(place / "edges.csv")]
    with pytest.raises(EdgewiseError, match=r"predicts whole graphs, but .* a table of nodes"):
        runs.predict(molecule_run.folder, tables, tmp_path / "x.csv")
    with pytest.raises(EdgewiseError, match=r"predicts nodes, but .* is a file of molecules"):
        runs.evaluate(node_run.folder, [str(place / "molecules.csv")])
    with pytest.raises(EdgewiseError, match="the setting smiles_column does not apply"):
        runs.evaluate(node_run.folder, tables, smiles_column="formula")


def graph_of(node_run, place, **changes):
    """The graph of the tables as the model reads it, with its labels."""
    data = runs.reopen(node_run).problem
    classes = {"y": data.truth, "class_names": data.task.classes}
    return replace(data.data.graph, **{**classes, **changes})


def test_classes_are_told_apart_by_name(node_run, place, tmp_path):
    graph = graph_of(node_run, place)
    expected = runs.evaluate(node_run.folder, [str(place / "nodes.tsv"), str(place / "edges.csv")])
    other = replace(graph, y=2 - graph.y, class_names=("w", "y", "x"))
    save_graph(other, tmp_path / "other.safetensors")
    assert runs.evaluate(node_run.folder, [str(tmp_path / "other.safetensors")]) == expected
    runs.predict(node_run.folder, [str(tmp_path / "other.safetensors")], tmp_path / "out.csv")
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
        runs.evaluate(node_run.folder, [str(other)])
    told: list[str] = []
    runs.predict(node_run.folder, [str(other)], tmp_path / "out.csv", tell=told.append)
    assert re.search(rf"without the truth .*{sentence}", told[0])
    rows = rows_of(tmp_path / "out.csv")
    assert len(rows) == 20
    assert ("true" in rows[0], "predicted" in rows[0]) == (False, True)
