"""A run on a graph store is a run on its tables; a store of other columns is refused."""

import shutil

import pytest
from run_toys import SETTINGS, files_of

import edgewise as ew
from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.data.graph_store import open_store

FAST = {**SETTINGS, "preset": "fast", "epochs": 3}


@pytest.fixture
def trained(graph_folder, tmp_path):
    """The tables, their store, and a run on it."""
    store = ew.import_graph(graph_folder, tmp_path / "store", target="label").folder
    return graph_folder, store, runs.train(store, tmp_path / "run", **FAST)


def test_a_run_on_a_store_is_a_run_on_its_tables(trained, tmp_path):
    tables, store, run = trained
    other = runs.train(tables, tmp_path / "other", target="label", split_seed=0, **FAST)
    ours, theirs = files_of(run.folder), files_of(other.folder)
    for name in ("predictions.csv", "history.csv", "splits.json", "reader.json", "metrics"):
        assert ours[name] == theirs[name], name
    written = []
    for place, model in ((store, other), (store, run), (tables, run)):
        written.append(tmp_path / f"{len(written)}.csv")
        runs.predict(model.folder, [str(place)], written[-1])
    assert len({path.read_bytes() for path in written}) == 1
    assert runs.evaluate(run.folder, [str(store)]) == runs.evaluate(run.folder, [str(tables)])
    assert runs.evaluate(run.folder)["test"] == runs.evaluate(other.folder)["test"]


def test_a_store_with_other_columns_is_imported_again_like_the_run(trained, tmp_path):
    tables, _, run = trained
    nodes = (tables / "nodes.csv").read_text().replace("n3,", "n3,1")
    (tables / "nodes.csv").write_text(nodes)
    ew.import_graph(tables, tmp_path / "other", target="label")
    with pytest.raises(EdgewiseError, match=r"features \[size\] differ\); import .* --like RUN"):
        runs.predict(run.folder, [str(tmp_path / "other")], tmp_path / "out.csv")
    ew.import_graph(tables, tmp_path / "alike", like=run.folder)
    runs.predict(run.folder, [str(tmp_path / "alike")], tmp_path / "out.csv")
    runs.predict(run.folder, [str(tables)], tmp_path / "tables.csv")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "tables.csv").read_bytes()


def test_training_rows_that_were_not_learnt_from_are_told(trained, tmp_path):
    _, store, _ = trained
    told = []
    runs.train(store, tmp_path / "new", tell=told.append, split="sparse", **FAST)
    (notice,) = [line for line in told if "learnt from other rows" in line]
    assert "--split dense --split-seed 0" in notice


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"numbers": ("size",)}, r"\[numbers\] does not apply here: .* is a graph store"),
        ({"target": "size"}, r"imported with the target\(s\) \[label\], not \[size\]; import"),
        ({"predict": "edges"}, "is a graph store.* has no edges to predict"),
    ],
)
def test_what_was_decided_by_the_import_is_not_asked_again(trained, tmp_path, settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        runs.train(trained[1], tmp_path / "new", **{**FAST, **settings})
    assert not (tmp_path / "new").exists()


def test_a_run_does_not_go_on_with_another_store(trained, tmp_path):
    tables, store, run = trained
    (run.folder / "metrics.json").unlink()
    nodes = (tables / "nodes.csv").read_text().replace("n3,", "n3,1")
    (tables / "nodes.csv").write_text(nodes)
    shutil.rmtree(store)
    ew.import_graph(tables, store, target="label")
    assert open_store(store).graph.num_nodes == 40
    with pytest.raises(EdgewiseError, match="changed"):
        runs.resume(run.folder)


@pytest.mark.parametrize("sampled", [{}, {"neighbors": "3", "batch_size": 32}])
def test_links_of_a_store_are_learnt_and_scored(sampled, trained, tmp_path):
    small = {"hidden": 4, "epochs": 1, "patience": 1, **sampled}
    run = runs.train(trained[1], tmp_path / "links", predict="links", **small)
    assert run.metrics["test"]["rows"] > 0
    (tmp_path / "pairs.csv").write_text("source,target\nn0,n4\nn1,n3\n")
    out = tmp_path / "scores.csv"
    runs.predict(run.folder, [str(trained[1])], out, pairs=tmp_path / "pairs.csv")
    assert len(out.read_text().splitlines()) == 3
