"""Predicting needs no flag of the training again, and keeps the rows as they are."""

import os
import subprocess
import sys
import time

import pytest
from pyarrow import parquet
from rdkit import Chem
from run_toys import EDGES, SETTINGS, rows_of

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.data import streams
from edgewise.data.molecule_tables import read_molecules
from edgewise.tasks import prediction


@pytest.mark.slow
def test_predictions_keep_rows_and_columns_and_mark_bad_ones(molecule_run, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text('key,smiles,note\nk1,CCO,"a, b"\nk2,C(,\nk3,CC,x,y\n\nk4,,\nk5,CCN,é\n')
    assert runs.predict(molecule_run.folder, [str(path)], tmp_path / "out.csv") == (2, 3)
    rows = rows_of(tmp_path / "out.csv")
    assert [row["key"] for row in rows] == ["k1", "k2", "k3", "k4", "k5"]
    assert (rows[0]["note"], rows[4]["note"]) == ("a, b", "é")
    assert [bool(row["logp_predicted"]) for row in rows] == [True, False, False, False, True]
    assert [bool(row["error"]) for row in rows] == [False, True, True, True, False]
    assert float(rows[0]["logp_std"]) > 0


def test_structures_count_whatever_their_properties_are_called(molecule_run, tmp_path):
    molecules = [Chem.MolFromSmiles(smiles) for smiles in ("CCO", "CCN")]
    with Chem.SDWriter(str(tmp_path / "new.sdf")) as writer:
        for molecule in molecules:
            for name in ("smiles", "mol", "SMILES"):
                molecule.SetProp(name, "C")
            molecule.SetProp("key", "007")
            writer.write(molecule)
    for column in ("", "mol"):
        runs.predict(
            molecule_run.folder, [str(tmp_path / "new.sdf")], tmp_path / "out.csv",
            smiles_column=column,
        )  # fmt: skip
        rows = rows_of(tmp_path / "out.csv")
        assert [(row["smiles"], row["mol"]) for row in rows] == [("CCO", "C"), ("CCN", "C")]
        assert [row["key"] for row in rows] == ["007"] * 2
        assert rows[0]["logp_predicted"] != rows[1]["logp_predicted"]
    assert read_molecules(tmp_path / "new.sdf").smiles == ("CCO", "CCN")


@pytest.mark.slow
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
    runs.predict(
        molecule_run.folder, [str(tmp_path / "new.csv")], tmp_path / "out.csv", encoding="latin-1"
    )
    assert [row["note"] for row in rows_of(tmp_path / "out.csv")][:2] == ["fine", "5 µg"]
    assert not rows_of(tmp_path / "out.csv")[1]["error"]


def test_predicting_in_stretches_changes_nothing(molecule_run, place, tmp_path, monkeypatch):
    data = [str(place / "molecules.csv")]
    runs.predict(molecule_run.folder, data, tmp_path / "whole.csv")
    read = streams.stream_table
    monkeypatch.setattr(
        "edgewise.data.molecule_rows.stream_table", lambda *a, **k: read(*a, **k, rows=3)
    )
    runs.predict(molecule_run.folder, data, tmp_path / "parts.csv")
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
        runs.predict(molecule_run.folder, [str(tmp_path / "bad.csv")], tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv", "out.csv"]


def test_the_input_is_never_overwritten(molecule_run, place):
    path = place / "molecules.csv"
    with pytest.raises(EdgewiseError, match="is the input itself"):
        runs.predict(molecule_run.folder, [str(path)], path)


def test_a_table_in_the_folder_that_is_read_is_never_overwritten(node_run, tmp_path):
    (tmp_path / "nodes.csv").write_text("who,weight\nz,1\na,2\n")
    (tmp_path / "edges.csv").write_text("from,to,amount\nz,a,1\n")
    with pytest.raises(EdgewiseError, match="is the input itself"):
        runs.predict(node_run.folder, [str(tmp_path)], tmp_path / "nodes.csv")
    assert (tmp_path / "nodes.csv").read_text().startswith("who,weight")


@pytest.mark.parametrize("name", ["logp_predicted", "logp_std", "error"])
def test_a_column_that_predictions_need_is_not_overwritten(molecule_run, tmp_path, name):
    path = tmp_path / "again.csv"
    path.write_text(f"smiles,{name}\nCCO,1\n")
    with pytest.raises(EdgewiseError, match=f"has a column '{name}' already"):
        runs.predict(molecule_run.folder, [str(path)], tmp_path / "out.csv")


@pytest.mark.slow
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
    assert runs.predict(node_run.folder, (), tmp_path / "own.csv") == (20, 0)
    (tmp_path / "nodes.csv").write_text("who,weight\nz,1\na,2\nm,0\n")
    (tmp_path / "edges.csv").write_text("from,to,amount\na,m,2\nz,a,1\n")
    runs.predict(node_run.folder, [str(tmp_path)], tmp_path / "new.csv")
    rows = rows_of(tmp_path / "new.csv")
    assert [row["id"] for row in rows] == ["z", "a", "m"]
    assert all(row["predicted"] in ("x", "y") for row in rows)
    assert all(abs(float(row["p_x"]) + float(row["p_y"]) - 1) < 1e-6 for row in rows)


def test_a_new_graph_with_other_columns_is_refused(node_run, tmp_path):
    (tmp_path / "nodes.csv").write_text("who,height\nz,1\n")
    (tmp_path / "edges.csv").write_text("from,to,amount\n")
    with pytest.raises(EdgewiseError, match="has no column 'weight'"):
        runs.predict(node_run.folder, [str(tmp_path)], tmp_path / "new.csv")


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["nodes", "edges"])
def test_predictions_written_in_stretches_are_those_written_at_once(
    unit, graph_folder, tmp_path, monkeypatch
):
    target = {"nodes": {"target": "label"}, "edges": EDGES}[unit]

    def written(name):
        run = runs.train(str(graph_folder), tmp_path / name, **target, **SETTINGS)
        for ending in ("csv", "parquet"):
            runs.predict(run.folder, [], tmp_path / f"{name}.{ending}")
        files = (run.folder / "predictions.csv", tmp_path / f"{name}.csv")
        rows = parquet.read_table(tmp_path / f"{name}.parquet").to_pylist()
        return [path.read_bytes() for path in files], rows

    whole = written("whole")
    monkeypatch.setattr(prediction, "_AT_ONCE", 7)
    assert written("stretches") == whole
