"""A saved model is whole or refused, and predicts the same bits elsewhere."""

import json
import os
import pickle
import shutil

import pytest
import torch
from commands import python
from run_toys import EDGES, SETTINGS, rows_of
from safetensors.torch import load_file, save_file

from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.core.manifest import write_manifest
from edgewise.runs import open_run, reopen
from edgewise.runs.checkpoint import train_run
from edgewise.training import load_model

PREDICT = """
import sys
from edgewise import runs
runs.predict(sys.argv[1], sys.argv[2:3], sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nodes", "edges", "molecules"])
def test_a_saved_model_predicts_the_same_bits_in_a_new_process(
    kind, graph_folder, molecule_file, tmp_path
):
    data = str(molecule_file if kind == "molecules" else graph_folder)
    run = runs.train(data, tmp_path / "run", **SETTINGS, **(EDGES if kind == "edges" else {}))
    runs.predict(run.folder, [data], tmp_path / "here.csv")
    done = python(PREDICT, run.folder, data, tmp_path / "there.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    trained = {row.get("id") or row["row"]: row for row in rows_of(run.folder / "predictions.csv")}
    for number, row in enumerate(rows_of(tmp_path / "here.csv")):
        if row.get("error"):
            continue
        name = row.get("id") or str(number)
        column = {"nodes": "p_a", "edges": "amount_predicted"}.get(kind, "logp_predicted")
        assert float(row[column]) == pytest.approx(float(trained[name][column]), rel=1e-5)


@pytest.fixture
def model_folder(graph_folder, tmp_path):
    return runs.train(str(graph_folder), tmp_path / "run", **SETTINGS).folder


def refused_as(folder, reason):
    """By its checksum; and where somebody rewrote the manifest as well, for this reason."""
    with pytest.raises(EdgewiseError, match=r"checksum in manifest\.json differs"):
        load_model(folder)
    write_manifest(folder, ["model.json", "model.safetensors"])
    with pytest.raises(EdgewiseError, match=reason):
        load_model(folder)


def test_a_truncated_model_is_refused(model_folder):
    path = model_folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    refused_as(model_folder, "not a whole safetensors file")


def test_a_renamed_pickle_is_refused_and_never_run(model_folder, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    (model_folder / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    refused_as(model_folder, "not a whole safetensors file")
    assert not (tmp_path / "sprung").exists()


def change(tensors, how):
    name = sorted(tensors)[0]
    match how:
        case "shape":
            tensors[name] = tensors[name].unsqueeze(0).contiguous()
        case "missing":
            tensors.pop(name)
        case "extra":
            tensors["0.unknown"] = torch.zeros(2)
        case "type":
            tensors[name] = tensors[name].double()
        case "nan":
            tensors[name] = torch.full_like(tensors[name], float("nan"))
    return tensors


@pytest.mark.parametrize("how", ["shape", "missing", "extra", "type", "nan"])
def test_tensors_that_do_not_fit_are_refused(model_folder, how):
    path = model_folder / "model.safetensors"
    save_file(change(load_file(path), how), path)
    refused_as(model_folder, "train again")


@pytest.mark.slow
@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c.pop("task"),
        lambda c: c.update(format="other 7"),
        lambda c: c.update(features="many"),
        lambda c: c.update(members=0),
        lambda c: c.update(settings={"model": {"hidden": -1}}),
        lambda c: c.update(settings={"model": {"hidden_layers": 1}}),
        lambda c: c["task"].update(kind="guess"),
        lambda c: c["task"].update(classes=[]),
        lambda c: c.update(settings={"training": {"hidden": 4}}),
        lambda c: c.update(unit="picture"),
    ],
)
def test_a_description_that_was_changed_is_refused(model_folder, edit):
    path = model_folder / "model.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(EdgewiseError, match=r"is not a saved model|there is no (task|unit) '"):
        load_model(model_folder)


@pytest.mark.slow
def test_a_description_of_another_width_does_not_fit_the_tensors(model_folder):
    path = model_folder / "model.json"
    path.write_text(path.read_text().replace('"hidden": 4', '"hidden": 5'))
    refused_as(model_folder, r"but model\.json asks for")


def test_a_copy_of_the_folder_works_elsewhere(model_folder, tmp_path):
    shutil.copytree(model_folder, tmp_path / "copy")
    assert load_model(tmp_path / "copy").task.classes == ("a", "b")
    run = open_run(tmp_path / "copy")
    train_run(run, reopen(run))
