"""A run on a store of links is the run on its tables, number for number; others are refused."""

import json

import pytest
from run_toys import files_of

import edgewise as ew
from edgewise import runs
from edgewise.core.errors import EdgewiseError
from edgewise.data import store_files
from edgewise.data.stores import open_any_store

FAST = {"hidden": 4, "depth": 1, "epochs": 2, "patience": 2, "seed": 3}
KINDS = {
    "links": ({"ignore": ("when",)}, {}),
    "links without direction": ({"ignore": ("when",), "directed": False}, {}),
    "types": ({"ignore": ("when",), "target": ("kind",)}, {}),
    "time": ({"time_column": "when"}, {}),
    "types by time": ({"time_column": "when", "target": ("kind",)}, {}),
    "sampled types": (
        {"ignore": ("when",), "target": ("kind",)},
        {"neighbors": "3", "batch_size": 32},
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Nodes, and edges with times and kinds, of which some are parallel and one goes nowhere."""
    folder = tmp_path_factory.mktemp("tables")
    nodes = [f"n{i},{i * 7 % 11},{'xyz'[i % 3]}" for i in range(30)]
    edges = [
        f"n{i},n{(i + step) % 30},{i % 7},{'ab'[(i + step) % 2]},{2000 + (i * 11 + step) % 40}"
        for i in range(30)
        for step in (1, 2, 5)
    ]
    edges += [edges[3], "n1,nowhere,1,a,2001", "n4,n9,2,,2010"]
    write(folder / "nodes.csv", "id,size,shape", nodes)
    write(folder / "edges.csv", "source,target,amount,kind,when", edges)
    return folder


def write(path, header, lines):
    path.write_text("\n".join([header, *lines]) + "\n")


def both(tables, tmp_path, imported, trained):
    """A store of the tables, and a run on each."""
    said = {"unknown": "drop", "predict": "links", **imported}
    store = ew.import_graph(tables, tmp_path / "store", **said, seed=FAST["seed"]).folder
    of_tables = runs.train(tables, tmp_path / "run", **{**said, **FAST, **trained})
    # What the import was told follows from the store.
    return store, of_tables, runs.train(store, tmp_path / "stored", **{**FAST, **trained})


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_on_a_store_of_links_is_a_run_on_its_tables(kind, tables, tmp_path):
    store, of_tables, of_store = both(tables, tmp_path, *KINDS[kind])
    ours, theirs = files_of(of_store.folder), files_of(of_tables.folder)
    for name in ("predictions.csv", "history.csv", "splits.json", "reader.json", "metrics"):
        assert ours[name] == theirs[name], name
    written = []
    for run, place in ((of_tables, tables), (of_tables, store), (of_store, store)):
        written.append(tmp_path / f"{len(written)}.csv")
        runs.predict(run.folder, [str(place)], written[-1], top=2)
    assert len({path.read_bytes() for path in written}) == 1


def test_a_column_called_target_may_be_the_type_where_ends_are_called_otherwise(tables, tmp_path):
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    (renamed / "nodes.csv").write_bytes((tables / "nodes.csv").read_bytes())
    _, *rows = (tables / "edges.csv").read_text().splitlines()
    write(renamed / "edges.csv", "from,to,amount,target,when", rows)
    said = {"ignore": ("when",), "source_column": "from", "destination_column": "to"}
    store, run, of_store = both(renamed, tmp_path, {**said, "target": ("target",)}, {})
    assert files_of(of_store.folder)["predictions.csv"] == files_of(run.folder)["predictions.csv"]
    runs.train(store, tmp_path / "named", target="target", **FAST)
    for name, like in (("a", run.folder), ("b", store)):
        found = ew.import_graph(renamed, tmp_path / name, like=like)
        assert found.info.targets == ("target",)


def test_new_tables_are_imported_like_a_run_or_a_store(tables, tmp_path):
    store, run, _ = both(tables, tmp_path, *KINDS["types"])
    new = tmp_path / "new"
    new.mkdir()
    (new / "nodes.csv").write_bytes((tables / "nodes.csv").read_bytes())
    header, *rows = (tables / "edges.csv").read_text().splitlines()
    write(new / "edges.csv", header, rows[:60])
    runs.predict(run.folder, [str(new)], tmp_path / "tables.csv", top=3)
    for name, like in (("a", run.folder), ("b", store)):
        found = ew.import_graph(new, tmp_path / name, like=like)
        assert (found.unit, found.info.targets) == ("link", ("kind",))
        runs.predict(run.folder, [str(found.folder)], tmp_path / f"{name}.csv", top=3)
        assert (tmp_path / f"{name}.csv").read_bytes() == (tmp_path / "tables.csv").read_bytes()
    said = {"unknown": "drop", "ignore": ("when",), "seed": FAST["seed"], "fit_on": "all"}
    plain = ew.import_graph(tables, tmp_path / "plain", predict="links", **said)
    typed = runs.train(
        tables, tmp_path / "typed", predict="links", target="kind", **{**said, **FAST}
    )
    with pytest.raises(EdgewiseError, match=r"no column 'kind' with the types"):
        runs.predict(typed.folder, [str(plain.folder)], tmp_path / "out.csv", top=3)
    for settings, sentence in (
        ({"target": "amount"}, r"knows the types of links by \[kind\], not by \[amount\]"),
        ({"split_column": "kind"}, r"\[split_column\] does not apply here"),
    ):
        with pytest.raises(EdgewiseError, match=sentence):
            ew.import_graph(new, tmp_path / "c", like=run.folder, **settings)


def test_times_are_not_asked_of_tables_whose_links_are_still_to_come(tables, tmp_path):
    store, run, _ = both(tables, tmp_path, *KINDS["types by time"])
    new = tmp_path / "new"
    new.mkdir()
    (new / "nodes.csv").write_bytes((tables / "nodes.csv").read_bytes())
    lines = (tables / "edges.csv").read_text().splitlines()
    write(new / "edges.csv", lines[0].rpartition(",")[0], [x.rpartition(",")[0] for x in lines[1:]])
    timeless = ew.import_graph(new, tmp_path / "timeless", like=run.folder).folder
    written = []
    for place in (tables, new, store, timeless):
        written.append(tmp_path / f"{len(written)}.csv")
        runs.predict(run.folder, [str(place)], written[-1], top=2)
    assert len({path.read_bytes() for path in written}) == 1


def test_a_store_of_nodes_is_checked_against_the_model(tables, tmp_path):
    said = {"unknown": "drop", "fit_on": "all", "ignore": ("when",)}
    nodes = ew.import_graph(tables, tmp_path / "nodes", target="shape", duplicates="sum", **said)
    run = runs.train(tables, tmp_path / "run", predict="links", **said, **FAST)
    with pytest.raises(EdgewiseError, match=r"import its tables again with --like RUN"):
        runs.predict(run.folder, [str(nodes.folder)], tmp_path / "out.csv", top=2)


def test_a_split_file_with_other_rows_is_refused(tables, tmp_path):
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"train": [0, 1, 9999], "validation": [2], "test": [3]}))
    for said in ({"ignore": ("when",)}, {"time_column": "when"}):
        with pytest.raises(EdgewiseError, match="9999"):
            ew.import_graph(
                tables, tmp_path / "s", predict="links", unknown="drop", split=str(split), **said
            )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"target": "amount"}, r"imported with other settings of \[target\]"),
        ({"time_column": "when"}, r"imported with other settings of \[time_column\]"),
        ({"directed": False}, r"imported with other settings of \[directed\]"),
        ({"predict": "edges", "target": "kind"}, "imported with --predict links, .* edges"),
        ({"predict": "nodes", "target": "shape"}, "imported with --predict links, to predict its"),
        ({"split": "0.5,0.2,0.3"}, "learnt from other rows"),
    ],
)
def test_a_store_of_links_says_what_it_is_not_for(settings, sentence, tables, tmp_path):
    said = {"unknown": "drop", "target": "kind", "ignore": ("when",)}
    store = ew.import_graph(tables, tmp_path / "store", predict="links", **said)
    if "split" in settings:
        run = runs.train(store.folder, tmp_path / "run", **FAST, **settings)
        assert any(sentence in notice for notice in run.notices)
        return
    with pytest.raises(EdgewiseError, match=sentence):
        runs.train(store.folder, tmp_path / "run", **FAST, **settings)


def test_a_store_of_edges_is_none_of_links(tables, tmp_path):
    said = {"unknown": "drop", "target": "kind", "ignore": ("when",)}
    store = ew.import_graph(tables, tmp_path / "store", predict="edges", **said)
    with pytest.raises(EdgewiseError, match=r"imported with --predict edges, .* --predict links"):
        runs.train(store.folder, tmp_path / "run", predict="links", **FAST)


def test_a_unit_that_nobody_knows_is_refused(tables, tmp_path):
    said = {"unknown": "drop", "ignore": ("when",)}
    folder = ew.import_graph(tables, tmp_path / "store", predict="links", **said).folder
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    assert content["graph"]["unit"] == "link"
    content["graph"]["unit"] = "word"
    content["checksum"] = store_files._checksum(content)
    path.write_text(json.dumps(content))
    with pytest.raises(EdgewiseError, match="rows are 'word', which this version does not know"):
        open_any_store(folder)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"target": ("kind", "amount")}, "one column names the types of links"),
        ({"target": "source"}, "names ends of edges, not their type"),
        ({"target": "nothing"}, "has no column 'nothing'"),
        ({"duplicates": "sum"}, "merges edges"),
        ({"split_column": "kind"}, r"\[split_column\] does not apply here"),
        ({"label_columns": ("amount",)}, r"\[label_columns\] does not apply here"),
    ],
)
def test_imports_that_make_no_store_of_links(settings, sentence, tables, tmp_path):
    said = {"unknown": "drop", **settings}
    with pytest.raises(EdgewiseError, match=sentence):
        ew.import_graph(tables, tmp_path / "store", predict="links", **said)
    assert not (tmp_path / "store").exists()
