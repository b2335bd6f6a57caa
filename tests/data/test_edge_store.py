"""A store of edges holds what the reader of whole tables gives, exactly, or says the same sentence;
one that is damaged is refused.
"""

import json
import multiprocessing
import shutil

import numpy as np
import pytest
from test_importing import (
    NODES,
    WAYS,
    _import_and_stop,
    small_pieces,  # noqa: F401 a fixture
    spoil,
    tables,
    write,
)

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.core.manifest import MANIFEST
from edgewise.data.edge_store import ARRAYS, EDGES
from edgewise.data.graph_store import NODES as NODE_TABLE
from edgewise.data.sources import find_source
from edgewise.data.stores import open_any_store
from edgewise.graphs.edge_lookup import EdgeLookup
from edgewise.units.base import resolve

SAID = {"predict": "edges", "target": "good"}


def edge_tables(seed=0, *, parallel=150, **more):
    """Tables whose edges are parallel now and then, with labels, times and a split."""
    nodes, edges = tables(seed, repeats=parallel, **more)
    draw = np.random.default_rng(seed)
    edges["good"] = draw.choice(["yes", "no"], len(edges))
    edges["when"] = draw.integers(-20, 20, len(edges)) / 4
    edges["review"] = draw.choice(["ok", "odd"], len(edges))
    edges["part"] = draw.choice(["train", "validation", "test"], len(edges))
    return nodes, edges


def opened(place, **settings):
    source = find_source([str(place)])
    unit, resolved = resolve(source, "fast", settings)
    return unit.open(source, resolved)


def compare(folder, store, trained=(), **settings):
    """Every number of a store against what is read in memory."""
    whole = opened(folder, **settings)
    open_any_store(store).verify()
    given = {name: settings[name] for name in trained}
    stored = opened(store, **given)
    ours, theirs = stored.problem, whole.problem
    assert stored.notes == whole.notes
    assert ours.encoder == theirs.encoder
    assert ours.truth.equal(theirs.truth)
    for name, rows in theirs.split.parts().items():
        assert getattr(ours.split, name).equal(rows)
    assert ours.settings.model == theirs.settings.model
    for name in ("x", "edge_index", "edge_attr"):
        assert getattr(ours.data.graph, name).equal(getattr(theirs.data.graph, name))
    assert ours.data.graph.node_ids == theirs.data.graph.node_ids
    assert ours.data.graph.channel_names == theirs.data.graph.channel_names
    for name in ("labels", "known", "time", "starts", "rows"):
        one, other = getattr(ours.data, name), getattr(theirs.data, name)
        assert (one is None) == (other is None)
        assert one is None or one.equal(other)
    data, lookup = theirs.data, open_any_store(store).read().lookup
    time = np.zeros(len(data), np.int8) if data.time is None else data.time.numpy()
    nodes, ends = data.graph.num_nodes, data.graph.edge_index.numpy()
    found = EdgeLookup.of(ends, time, nodes, directed=data.directed)
    for name, array in found.incident._asdict().items():
        assert np.array_equal(getattr(lookup.incident, name), array), name
    for name in ("pair_key", "pair_start", "pair_edge", "directed"):
        assert np.array_equal(getattr(lookup, name), getattr(found, name)), name
    return whole, stored


@pytest.mark.parametrize("form", ["csv", "parquet", "csv.gz parts"])
@pytest.mark.parametrize("ids", ["words", "numbers"])
def test_a_store_of_edges_equals_the_tables(form, ids, tmp_path, small_pieces):  # noqa: F811
    frames = edge_tables(ids=ids)
    whole = write(tmp_path / "whole", frames, form.split()[0].split(".")[0])
    parts = write(tmp_path / "parts", frames, form)
    said = {**SAID, "ignore": ("y", "part", "when", "review")}
    ew.import_graph(parts, tmp_path / "graph", **said)
    compare(whole, tmp_path / "graph", **said)


FURTHER = {
    "undirected": {"edges": "undirected", "seed": 4, "split": "sparse"},
    "not directed": {"directed": False, "ports": False},
    "times": {"time_column": "when", "split": "0.5,0.2,0.3"},
    "labels": {"label_messages": True, "label_columns": ("review",)},
    "times and labels": {"label_messages": True, "time_column": "when"},
    "a split column": {"split_column": "part", "fit_on": "all", "categories": ("count",)},
    "several targets": {"target": ("count", "amount"), "task": "regression", "missing": "mean"},
}
# What is said again where a store is trained on.
OF_TRAINING = ("label_messages", "task")


@pytest.mark.parametrize("how", FURTHER)
def test_settings_and_gaps_are_treated_alike(how, tmp_path, small_pieces):  # noqa: F811
    frames = edge_tables(1, unknown=9, gaps=0 if how == "several targets" else 6)
    folder = write(tmp_path / "tables", frames, "csv")
    ignore = tuple(
        name
        for name in ("y", "good", "when", "review", "part", "count")
        if name not in str({**SAID, **FURTHER[how]})
    )
    said = {**SAID, "unknown": "drop", "missing": "mean", "ignore": ignore, **FURTHER[how]}
    imported = {name: value for name, value in said.items() if name != "label_messages"}
    store = ew.import_graph(folder, tmp_path / "graph", **imported)
    assert store.info.notes.dropped_edges == 9
    compare(folder, tmp_path / "graph", [name for name in OF_TRAINING if name in said], **said)


def test_without_parallel_edges_none_are_numbered(tmp_path):
    folder = write(tmp_path / "tables", edge_tables(parallel=0), "csv")
    said = {**SAID, "ignore": ("y", "part", "when", "review")}
    assert not ew.import_graph(folder, tmp_path / "graph", **said).info.reader.ports
    compare(folder, tmp_path / "graph", **said)


# Parallel edges are none, and where no edge joins two nodes there is nothing to split either.
OTHERWISE = ("repeated edge", "no node at all")


@pytest.mark.parametrize("how", [name for name in WAYS if name not in OTHERWISE])
def test_the_same_sentence_for_the_same_mistake(how, tmp_path, small_pieces):  # noqa: F811
    folder = write(tmp_path / "tables", spoil(*edge_tables(3), how), "csv")
    said = {**SAID, "ignore": ("part", "when", "review"), **WAYS[how]}
    with pytest.raises(EdgewiseError) as expected:
        opened(folder, **said)
    with pytest.raises(EdgewiseError) as found:
        ew.import_graph(folder, tmp_path / "graph", **said)
    assert str(found.value) == str(expected.value)
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_edges_of_which_none_joins_two_nodes_are_refused(tmp_path):
    folder = write(tmp_path / "tables", spoil(*edge_tables(3), "no node at all"), "csv")
    with pytest.raises(
        EdgewiseError, match=r"no edge of .* joins two nodes of .*; write ids alike"
    ):
        ew.import_graph(folder, tmp_path / "graph", **SAID, unknown="drop")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"target": "nothing"}, "has no column 'nothing'"),
        ({"target": ()}, "name the column to be predicted with --target"),
        ({"duplicates": "sum"}, "merges edges, which are the rows here"),
        ({"label_messages": True}, r"\[label_messages\] does not apply here: tables are imported"),
        ({"predict": "graphs"}, "there is no store of whole graphs; a store holds one graph"),
        ({"predict": "nodes", "target": "y", "ports": False}, r"\[ports\] does not apply here"),
        ({"time_column": "kind"}, "holds no times"),
    ],
)
def test_settings_that_make_no_store(settings, sentence, tmp_path):
    folder = write(tmp_path / "tables", edge_tables(), "csv")
    with pytest.raises(EdgewiseError, match=sentence):
        ew.import_graph(folder, tmp_path / "graph", **{**SAID, **settings})
    assert not (tmp_path / "graph").exists()


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A store with every array there is."""
    folder = tmp_path_factory.mktemp("edges")
    place = write(folder / "tables", edge_tables(), "csv")
    said = {"time_column": "when", "label_columns": ("review",), "ignore": ("part",)}
    return ew.import_graph(place, folder / "graph", **SAID, **said).folder


@pytest.fixture
def store(imported, tmp_path):
    return shutil.copytree(imported, tmp_path / "graph")


EVERY = (*ARRAYS, "time", "shown")


def test_arrays_are_mapped_read_only(store):
    found = open_any_store(store)
    assert set(found.arrays) == set(EVERY)
    for array in found.arrays.values():
        assert not array.flags.writeable
        base = array
        while getattr(base, "base", None) is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
    graph = found.read().graph
    assert graph.x.data_ptr() == found.arrays["x"].ctypes.data  # and nothing is copied
    assert graph.channels.data_ptr() == found.arrays["edge_attr"].ctypes.data
    assert graph.edge_index.data_ptr() == found.arrays["edge_index"].ctypes.data


@pytest.mark.parametrize("name", [*(f"{name}.npy" for name in EVERY), NODE_TABLE, EDGES])
def test_a_flipped_byte_of_the_numbers_is_found_by_verify(store, name):
    path = store / name
    data = bytearray(path.read_bytes())
    data[6 if name.endswith("parquet") else -1] ^= 1
    path.write_bytes(data)
    with pytest.raises(EdgewiseError, match=rf"{name} is damaged \(its checksum differs\)"):
        open_any_store(store).verify()


@pytest.mark.parametrize("name", [*(f"{name}.npy" for name in EVERY), NODE_TABLE, EDGES, MANIFEST])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_file_that_is_cut_or_gone_is_refused(store, name, how):
    path = store / name
    data = path.read_bytes()
    path.unlink()
    if how == "cut":
        path.write_bytes(data[: len(data) // 2])
    with pytest.raises(EdgewiseError, match=f"{name} is damaged .*import the tables again"):
        open_any_store(store)


def test_no_changed_byte_of_the_manifest_passes(store):
    path = store / MANIFEST
    data = path.read_bytes()
    for place in range(0, len(data), 17):
        flipped = bytearray(data)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        try:
            content = json.loads(flipped)
        except ValueError:
            content = None
        if content == json.loads(data):
            continue  # white space
        with pytest.raises(EdgewiseError, match="damaged"):
            open_any_store(store)


@pytest.mark.parametrize("name", ["edge_index", "out_edge", "pair_start", "in_start", "row"])
def test_numbers_that_name_no_edge_or_node_are_refused_before_they_are_used(store, name):
    path = store / f"{name}.npy"
    data = bytearray(path.read_bytes())
    data[-8:] = (2**31 - 5).to_bytes(8, "little") if name[0] != "o" else b"\xff\xff\xff\x7f" * 2
    path.write_bytes(data)
    with pytest.raises(EdgewiseError, match=r"an edge (joins|has) .* that there (are|is) not"):
        open_any_store(store).read()


def test_an_array_of_another_store_is_refused(store, tmp_path):
    frames = edge_tables(2, parallel=9)
    place = write(tmp_path / "tables", frames, "csv")
    said = {"time_column": "when", "label_columns": ("review",), "ignore": ("part",)}
    ew.import_graph(place, tmp_path / "other", **SAID, **said)
    shutil.copy(tmp_path / "other" / "row.npy", store / "row.npy")
    with pytest.raises(EdgewiseError, match=r"int64\[409\] in place of int64\[550\]"):
        open_any_store(store)


@pytest.mark.slow
@pytest.mark.parametrize(
    "phase", ["reading edges.csv", "matching edges with nodes", "sorting edges", "writing edges"]
)
def test_a_killed_import_leaves_no_store_and_the_next_sweeps_its_scraps(phase, tmp_path):
    folder = write(tmp_path / "tables", edge_tables(), "csv")
    whole = ew.import_graph(folder, tmp_path / "whole", **SAID)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    arguments = (folder, tmp_path / "graph", phase, there, SAID)
    worker = context.Process(target=_import_and_stop, args=arguments)
    worker.start()
    assert here.recv() == phase
    worker.kill()
    worker.join()
    scraps = {path.name for path in tmp_path.iterdir()} - {"tables", "whole"}
    assert len(scraps) == 2
    assert all(name.startswith(".part-") for name in scraps)
    store = ew.import_graph(folder, tmp_path / "graph", **SAID)
    assert store.checksum == whole.checksum
    assert {path.name for path in tmp_path.iterdir()} == {"tables", "whole", "graph"}


def test_like_reads_new_tables_as_a_store_learnt_to(store, tmp_path):
    nodes, edges = edge_tables(5, parallel=0)
    new = write(tmp_path / "new", (nodes, edges.drop(columns=["good", "review"])), "parquet")
    first = open_any_store(store)
    second = ew.import_graph(new, tmp_path / "second", like=store)
    assert second.info.reader == first.info.reader
    assert second.info.targets == ()
    second.verify()
    found = find_source([str(new)]).read_graph(ew.make_settings("edge").data)
    expected = first.info.reader.read(found.nodes, found.edges)
    read = second.read()
    assert read.graph.channels.equal(expected.graph.channels)
    assert read.graph.num_nodes == NODES
    assert read.shown.equal(expected.shown)
    assert np.array_equal(read.times, expected.times)
