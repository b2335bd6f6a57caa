"""A run on a store of edges is the run on its tables, number for number; others are refused."""

import shutil
from pathlib import Path

import pytest
from commands import edgewise
from edge_toys import TARGETS, payments, without
from run_toys import files_of, stopping_after

import edgewise as ew
from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.data.stores import open_any_store

FAST = {"preset": "fast", "hidden": 8, "epochs": 2, "patience": 2, "seed": 3}
OLD_STORE = Path(__file__).parents[1] / "fixtures" / "graph-store-1"
FRAUD = TARGETS["fraud"]
TIMED = {**FRAUD, "ignore": without(FRAUD["ignore"], "when"), "time_column": "when"}
SHOWN = {**FRAUD, "ignore": without(FRAUD["ignore"], "review"), "label_columns": ("review",)}
# What an import is told, and what training is told beside it.
KINDS = {
    "binary labels": (FRAUD, {}),
    "values": (TARGETS["loss"], {"neighbors": "4,3", "batch_size": 32}),
    "classes of a split column": (
        {
            **TARGETS["review"],
            "ignore": without(TARGETS["review"]["ignore"], "part"),
            "split_column": "part",
        },
        {"ensemble": 2},
    ),
    "time": (TIMED, {}),
    "sampled by time, with labels": (
        TIMED,
        {"label_messages": True, "neighbors": "4", "batch_size": 32},
    ),
    "labels as messages": (SHOWN, {"label_messages": True}),
    "sampled labels as messages": (
        {**SHOWN, "directed": False},
        {"label_messages": True, "neighbors": "-1", "batch_size": 32},
    ),
}


def both(tmp_path, imported, trained):
    """A store, its tables, and a run on each."""
    tables = payments(tmp_path / "tables")
    seeded = {"seed": FAST["seed"], "predict": "edges"}
    store = ew.import_graph(tables, tmp_path / "store", **imported, **seeded).folder
    of_tables = runs.train(
        tables, tmp_path / "run", predict="edges", **{**FAST, **imported, **trained}
    )
    # What the import was told follows from the store.
    return tables, store, of_tables, runs.train(store, tmp_path / "stored", **{**FAST, **trained})


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_on_a_store_of_edges_is_a_run_on_its_tables(kind, tmp_path):
    tables, store, of_tables, of_store = both(tmp_path, *KINDS[kind])
    ours, theirs = files_of(of_store.folder), files_of(of_tables.folder)
    for name in ("predictions.csv", "history.csv", "splits.json", "reader.json", "metrics"):
        assert ours[name] == theirs[name], name
    written = []
    for place, run in (([store], of_tables), ([store], of_store), (tables, of_store)):
        written.append(tmp_path / f"{len(written)}.csv")
        runs.predict(run.folder, list(map(str, place)), written[-1])
    assert len({path.read_bytes() for path in written}) == 1
    found = [runs.evaluate(of_store.folder, list(map(str, p))) for p in ([store], tables)]
    assert found[0] == found[1]
    assert runs.evaluate(of_store.folder)["test"] == runs.evaluate(of_tables.folder)["test"]


@pytest.mark.slow
def test_two_workers_on_a_store_are_two_workers_on_its_tables(tmp_path):
    trained = {"neighbors": "3", "batch_size": 32, "workers": 2}
    _, _, of_tables, of_store = both(tmp_path, TIMED, trained)
    ours, theirs = files_of(of_store.folder), files_of(of_tables.folder)
    assert ours["predictions.csv"] == theirs["predictions.csv"]
    assert ours["history.csv"] == theirs["history.csv"]


@pytest.mark.slow
def test_every_command_takes_a_store_of_edges(tmp_path):
    tables = payments(tmp_path / "tables")
    store, run = tmp_path / "store", tmp_path / "run"
    left_out = [word for name in FRAUD["ignore"] for word in ("--ignore", name)]
    said = ["--predict", "edges", "--target", "fraud", *left_out]
    quick = ["--hidden", "4", "--epochs", "1", "--preset", "fast"]
    done = [
        edgewise("import", *tables, *said, "--out", store),
        edgewise("check", store),
        edgewise("train", store, *quick, "--neighbors", "3", "--out", run),
        edgewise("predict", run, store, "--out", tmp_path / "out.csv"),
        edgewise("evaluate", run, store),
        edgewise("import", *tables, "--like", run, "--out", tmp_path / "next"),
        edgewise("predict", run, tmp_path / "next", "--out", tmp_path / "next.csv"),
        edgewise("tune", store, *quick, "--trials", "1", "--out", tmp_path / "study"),
        edgewise("report", run),
    ]
    assert [(one.returncode, one.stderr[-500:]) for one in done if one.returncode] == []
    assert "edges=160" in done[1].stdout
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "next.csv").read_bytes()


@pytest.fixture
def store(tmp_path):
    tables = payments(tmp_path / "tables")
    return ew.import_graph(tables, tmp_path / "store", predict="edges", **TIMED).folder


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"directed": False}, r"imported with other settings of \[directed\]; leave them out, or"),
        ({"time_column": "then"}, r"imported with other settings of \[time_column\]"),
        ({"ports": False}, r"imported with other settings of \[ports\]"),
        ({"label_columns": ("review",), "label_messages": True}, r"of \[label_columns\]"),
        ({"target": "review"}, r"imported with the target\(s\) \[fraud\], not \[review\]; import"),
        ({"numbers": ("amount",)}, r"\[numbers\] does not apply here: .* is a graph store"),
        ({"predict": "nodes"}, r"imported with --predict edges, to predict its edges; import the"),
        ({"predict": "links"}, r"imported with --predict edges, to predict its edges; import the"),
    ],
)
def test_what_was_decided_by_the_import_is_not_asked_again(store, settings, sentence, tmp_path):
    with pytest.raises(EdgewiseError, match=sentence):
        runs.train(store, tmp_path / "new", **{**FAST, **settings})
    assert not (tmp_path / "new").exists()


def test_a_store_whose_columns_were_read_otherwise_is_imported_again_like_the_run(tmp_path):
    tables, _, run, _ = both(tmp_path, FRAUD, {})

    def larger(table):
        table["amount"] = [10 * amount for amount in table["amount"]]

    others = payments(tmp_path / "others", change=larger)
    said = {"predict": "edges", "seed": FAST["seed"]}
    ew.import_graph(others, tmp_path / "other", **FRAUD, **said)
    with pytest.raises(EdgewiseError, match=r"channels \[amount\] differ\); import .* --like RUN"):
        runs.predict(run.folder, [str(tmp_path / "other")], tmp_path / "out.csv")
    timed = ew.import_graph(tables, tmp_path / "timed", **TIMED, **said)
    with pytest.raises(EdgewiseError, match=r"\(the columns of times differ\)|scales, categories"):
        runs.predict(run.folder, [str(timed.folder)], tmp_path / "out.csv")
    ew.import_graph(others, tmp_path / "alike", like=run.folder)
    runs.predict(run.folder, [str(tmp_path / "alike")], tmp_path / "out.csv")
    runs.predict(run.folder, others, tmp_path / "tables.csv")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "tables.csv").read_bytes()


def test_training_rows_that_were_not_learnt_from_are_told(tmp_path):
    tables, told = payments(tmp_path / "tables"), []
    store = ew.import_graph(tables, tmp_path / "store", predict="edges", **FRAUD)
    runs.train(store.folder, tmp_path / "new", tell=told.append, split="sparse", **FAST)
    (notice,) = [line for line in told if "learnt from other rows" in line]
    assert "--split dense --split-seed 0" in notice


def test_a_run_goes_on_with_its_store_alone(store, tmp_path):
    run = runs.train(store, tmp_path / "run", **{**FAST, "epochs": 3}, **stopping_after(1))
    whole = runs.train(store, tmp_path / "whole", **{**FAST, "epochs": 3})
    assert files_of(runs.resume(run.folder).folder) == files_of(whole.folder)
    (run.folder / "metrics.json").unlink()
    shutil.rmtree(store)
    tables = payments(tmp_path / "tables", seed=1)
    ew.import_graph(tables, store, predict="edges", **TIMED)
    with pytest.raises(EdgewiseError, match="changed"):
        runs.resume(run.folder)


def test_a_store_of_an_older_version_predicts_nodes_and_says_how_to_predict_edges(tmp_path):
    store = shutil.copytree(OLD_STORE, tmp_path / "graph")
    opened = open_any_store(store)
    opened.verify()
    assert str(opened) == "30 nodes with 1 features, 76 edges with 1 channels"
    assert runs.train(store, tmp_path / "nodes", **FAST).metrics["test"]["rows"] > 0
    sentence = r"without rows of edges.*import the tables again with --predict edges --target"
    with pytest.raises(EdgewiseError, match=sentence):
        runs.train(store, tmp_path / "edges", predict="edges", **FAST)
    tables = payments(tmp_path / "tables")
    run = runs.train(tables, tmp_path / "run", predict="edges", **{**FAST, **FRAUD})
    with pytest.raises(EdgewiseError, match=r"cannot read .*--like RUN"):
        runs.predict(run.folder, [str(store)], tmp_path / "out.csv")
