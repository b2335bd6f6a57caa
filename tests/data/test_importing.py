"""An import gives what the reader of whole tables gives, exactly, or says the same sentence."""

import errno
import itertools
import multiprocessing
import os
import shutil
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import edgewise as ew
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.data import external_sort, table_parts
from edgewise.data.external_sort import ExternalSort
from edgewise.data.graph_store import open_store
from edgewise.data.sources import find_source
from edgewise.kernels.id_index import NumberIndex, WordIndex, Words
from edgewise.units.base import resolve

NODES, EDGES = 60, 400


def tables(seed=0, *, ids="words", repeats=0, unknown=0, gaps=0):
    """Nodes and edges with every kind of column; some edges repeat others or name no node."""
    draw = np.random.default_rng(seed)
    names = draw.permutation(10 * NODES)[:NODES]
    names = [f" n{i}" for i in names] if ids == "words" else names
    pairs = [(int(k) // NODES, int(k) % NODES) for k in draw.permutation(NODES**2)[:EDGES]]
    pairs += [pairs[k] for k in draw.integers(0, EDGES, repeats)]
    pairs = [pairs[k] for k in draw.permutation(len(pairs))]
    ends = [[names[pair[side]] for pair in pairs] for side in (0, 1)]
    for k in range(unknown):
        ends[k % 2][7 * k + 3] = "nobody" if ids == "words" else 10**6 + k
    words = ["red", "green", "blue", "old", "new", "big"]
    nodes = {
        "id": names,
        "size": draw.normal(5, 3, NODES),
        "age": draw.integers(0, 90, NODES),
        "sector": draw.choice(["a", "b", "c"], NODES),
        "note": [" ".join(draw.choice(words, 5)) for _ in range(NODES)],
        "y": draw.choice(["good", "bad"], NODES),
    }
    edges = {
        "source": ends[0],
        "target": ends[1],
        "amount": draw.normal(size=len(pairs)),
        "count": draw.integers(0, 9, len(pairs)),
        "kind": draw.choice(["pays", "owns", "knows"], len(pairs)),
    }
    frames = pd.DataFrame(nodes), pd.DataFrame(edges)
    for frame, columns in zip(frames, (("size", "sector"), ("amount", "kind")), strict=True):
        for column in columns:
            frame.loc[draw.permutation(len(frame))[:gaps], column] = None
    return frames


@pytest.fixture
def small_pieces(monkeypatch):
    """Rows, runs and samples so small that everything happens in several pieces."""
    monkeypatch.setattr(table_parts, "ROWS", 37)
    monkeypatch.setattr(external_sort, "RUN", 64)
    monkeypatch.setattr(external_sort, "SAMPLE", 8)


def write(folder, frames, form):
    """The two tables in a folder; ``parts`` are folders of several files."""
    folder.mkdir(exist_ok=True)
    for name, frame in zip(("nodes", "edges"), frames, strict=True):
        if form == "csv":
            frame.to_csv(folder / f"{name}.csv", index=False)
        elif form == "parquet":
            frame.to_parquet(folder / f"{name}.parquet", index=False)
        else:
            (folder / name).mkdir()
            for k in range(12):
                part = frame.iloc[len(frame) * k // 12 : len(frame) * (k + 1) // 12]
                if form == "parquet parts":
                    part.to_parquet(folder / name / f"part-{k}.parquet", index=False)
                else:
                    part.to_csv(folder / name / f"part-{k}.csv.gz", index=False)
    return folder


def in_memory(folder, **settings):
    """What training reads: graph, reader, notes, or a sentence."""
    source = find_source([str(folder)])
    unit, resolved = resolve(source, "fast", settings)
    opened = unit.open(source, resolved)
    return opened.problem, opened.notes


def by_pair(graph):
    source, target = graph.edge_index.numpy()
    order = np.lexsort((target, source))
    return np.stack([source, target])[:, order], graph.channels.numpy()[order]


def compare(folder, store, **settings):
    """Every number of a store against what is read in memory."""
    problem, notes = in_memory(folder, **settings)
    opened = open_store(store)
    opened.verify()
    graph, array = problem.data.graph, opened.graph
    assert opened.info.reader == problem.encoder
    assert np.array_equal(array.x, graph.x.numpy())
    assert array.x.dtype == np.float32
    edge_index, edge_attr = by_pair(graph)
    source = np.repeat(np.arange(array.num_nodes), np.diff(array.adjacency.out_start))
    assert np.array_equal(np.stack([source, array.adjacency.target]), edge_index)
    assert np.array_equal(array.edge_attr, edge_attr)
    back = np.lexsort(edge_index)  # by target, then by source
    target = np.repeat(np.arange(array.num_nodes), np.diff(array.adjacency.in_start))
    assert np.array_equal(target, edge_index[1][back])
    assert np.array_equal(array.adjacency.source, edge_index[0][back])
    assert np.array_equal(array.adjacency.in_edge, back)
    given = {k: v for k, v in settings.items() if k in ("target", "task")}
    stored, told = in_memory(store, **given)
    assert told == notes
    assert stored.data.ids == problem.data.ids
    assert stored.data.graph.channel_names == graph.channel_names
    assert stored.truth.equal(problem.truth)
    assert stored.split.train.equal(problem.split.train)
    assert stored.settings.model == problem.settings.model


@pytest.mark.parametrize("form", ["csv", "parquet", "parquet parts", "csv.gz parts"])
@pytest.mark.parametrize("ids", ["words", "numbers"])
def test_a_store_equals_the_tables(form, ids, tmp_path, small_pieces):
    frames = tables(ids=ids)
    whole = write(tmp_path / "whole", frames, form.split()[0].split(".")[0])
    parts = write(tmp_path / "parts", frames, form)
    ew.import_graph(parts, tmp_path / "graph", target="y")
    compare(whole, tmp_path / "graph", target="y")


@pytest.mark.parametrize("edges", ["directed", "undirected"])
@pytest.mark.parametrize("duplicates", ["sum", "max"])
def test_repeats_unknown_nodes_and_gaps_are_treated_alike(
    edges, duplicates, tmp_path, small_pieces
):
    frames = tables(1, repeats=150, unknown=9, gaps=6)
    folder = write(tmp_path / "tables", frames, "csv")
    said = {
        "target": "y", "edges": edges, "duplicates": duplicates, "unknown": "drop",
        "missing": "mean", "categories": ("age",), "ignore": ("count",), "split": "sparse",
        "seed": 4,
    }  # fmt: skip
    store = ew.import_graph(folder, tmp_path / "graph", **said)
    assert store.info.notes.dropped_edges == 9
    assert store.info.notes.merged_edges >= 100
    compare(folder, tmp_path / "graph", **said)


def test_scales_of_all_rows_a_split_column_and_values(tmp_path, small_pieces):
    nodes, edges = tables(2)
    nodes["part"] = ["train", "validation", "test"] * (NODES // 3)
    nodes["z"] = nodes["size"] ** 2
    folder = write(tmp_path / "tables", (nodes, edges), "parquet")
    said = {"target": ("z",), "fit_on": "all", "split_column": "part"}
    ew.import_graph(folder, tmp_path / "all", **said)
    compare(folder, tmp_path / "all", **said)
    del said["fit_on"]
    ew.import_graph(folder, tmp_path / "train", **said)
    compare(folder, tmp_path / "train", **said)


def test_a_graph_without_edges_or_columns(tmp_path):
    nodes = pd.DataFrame({"id": range(20), "y": [0.5, 1.5] * 10})
    folder = write(tmp_path / "tables", (nodes, pd.DataFrame({"source": [], "target": []})), "csv")
    ew.import_graph(folder, tmp_path / "graph", target="y", task="regression")
    compare(folder, tmp_path / "graph", target="y", task="regression")


def spoil(nodes, edges, how):
    match how:
        case "unknown node":
            edges.loc[77, "target"] = "nobody"
        case "no node at all":
            edges["source"] = "nobody"
        case "repeated edge":
            edges.iloc[301] = edges.iloc[12]
            edges.iloc[99] = edges.iloc[50]
        case "id twice":
            nodes.loc[41, "id"] = nodes.loc[3, "id"]
        case "no id":
            nodes.loc[13, "id"] = None
        case "gap":
            nodes.loc[[20, 50], "size"] = None
        case "slip":
            edges["amount"] = edges["amount"].astype(object)
            edges.loc[200, "amount"] = "12,5"
        case "many words":
            edges["kind"] = [f"k{i}" for i in range(len(edges))]
        case "text on edges":
            edges["kind"] = "quite a few words"
        case "no column":
            edges = edges.rename(columns={"target": "to"})
        case "huge":
            nodes.loc[30, "size"] = 1e30
    return nodes, edges


WAYS = {
    "unknown node": {}, "no node at all": {"unknown": "drop"}, "repeated edge": {},
    "id twice": {}, "no id": {}, "gap": {}, "slip": {}, "many words": {}, "text on edges": {},
    "no column": {}, "huge": {},
}  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("how", WAYS)
def test_the_same_sentence_for_the_same_mistake(how, form, tmp_path, small_pieces):
    frames = tables(3)
    if form == "parquet" and how in ("slip", "no id"):
        pytest.skip("a column of Parquet has one type")
    folder = write(tmp_path / "tables", spoil(*frames, how), form)
    with pytest.raises(EdgewiseError) as expected:
        in_memory(folder, target="y", **WAYS[how])
    with pytest.raises(EdgewiseError) as found:
        ew.import_graph(folder, tmp_path / "graph", target="y", **WAYS[how])
    assert str(found.value) == str(expected.value)
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_a_mistake_in_a_part_is_found_there(tmp_path):
    folder = write(tmp_path / "tables", spoil(*tables(3), "unknown node"), "csv.gz parts")
    with pytest.raises(EdgewiseError, match=r"part-2\.csv\.gz:13: the edge from"):
        ew.import_graph(folder, tmp_path / "graph", target="y")


def test_parts_with_other_columns_or_types_are_refused(tmp_path):
    folder = write(tmp_path / "tables", tables(), "parquet parts")
    part = folder / "edges" / "part-3.parquet"
    table = parquet.read_table(part)
    parquet.write_table(table.rename_columns([*table.column_names[:-1], "other"]), part)
    with pytest.raises(EdgewiseError, match=r"part-3.parquet has the columns .*'?other"):
        ew.import_graph(folder, tmp_path / "graph", target="y")
    words = pa.array(["x"] * len(table))
    parquet.write_table(table.set_column(2, "amount", words), part)
    with pytest.raises(EdgewiseError, match=r"'amount' is double in .*, but string in .*part-3"):
        ew.import_graph(folder, tmp_path / "graph", target="y")
    part.rename(folder / "edges" / "part-3.csv")
    with pytest.raises(EdgewiseError, match="Parquet and text"):
        ew.import_graph(folder, tmp_path / "graph", target="y")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"target": "nothing"}, "has no column 'nothing'"),
        ({"target": "why", "layer": "conv"}, r"setting \[layer\] does not apply here: tables are"),
        ({}, "name the column to be predicted with --target, for scales"),
        ({"target": "why", "ignore": ("nowhere",)}, "in neither table"),
    ],
)
def test_settings_that_make_no_store(settings, sentence, tmp_path):
    nodes, edges = tables()
    nodes = nodes.rename(columns={"y": "why"})
    folder = write(tmp_path / "tables", (nodes, edges), "csv")
    with pytest.raises(EdgewiseError, match=sentence):
        ew.import_graph(folder, tmp_path / "graph", **settings)
    assert not (tmp_path / "graph").exists()


def test_a_full_place_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "mine").write_text("mine")
    with pytest.raises(EdgewiseError, match="there already, and not empty"):
        ew.import_graph([tmp_path / "no.csv", tmp_path / "no.csv"], tmp_path / "graph")
    shutil.rmtree(tmp_path / "graph")
    with pytest.raises(EdgewiseError, match=r"no.csv cannot be read"):
        ew.import_graph([tmp_path / "no.csv", tmp_path / "no.csv"], tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


def test_like_reads_new_tables_as_a_store_learnt_to(tmp_path):
    folder = write(tmp_path / "tables", tables(4), "csv")
    new = write(tmp_path / "new", tables(5, gaps=0), "parquet")
    first = ew.import_graph(folder, tmp_path / "first", target="y")
    second = ew.import_graph(new, tmp_path / "second", like=tmp_path / "first")
    assert second.info.reader == first.info.reader
    assert second.info.targets == ("y",)
    found = find_source([str(new)]).read_graph(make_settings("node").data)
    graph, _ = first.info.reader.read(found.nodes, found.edges)
    assert np.array_equal(second.graph.x, graph.x.numpy())
    with pytest.raises(EdgewiseError, match=r"columns are read as .*first learnt to"):
        ew.import_graph(new, tmp_path / "third", like=tmp_path / "first", numbers=("age",))


def test_sorting_in_pieces_is_a_stable_sort(tmp_path, small_pieces):
    draw = np.random.default_rng(0)
    keys = np.concatenate([draw.integers(0, 50, 400), np.full(300, 25), draw.integers(0, 9, 99)])
    sort = ExternalSort(tmp_path, "s", {"place": (np.int32, 0), "pair": (np.float32, 2)})
    for first in range(0, len(keys), 23):
        piece = keys[first : first + 23]
        place = np.arange(first, first + len(piece))
        sort.add(key=piece, place=place, pair=np.stack([piece, place], axis=1))
    pieces = list(sort.merged())
    assert len(pieces) > 5
    for before, after in itertools.pairwise(pieces):
        assert before["key"][-1] < after["key"][0]
    order = np.argsort(keys, kind="stable")
    assert np.array_equal(np.concatenate([p["key"] for p in pieces]), keys[order])
    assert np.array_equal(np.concatenate([p["place"] for p in pieces]), order)
    assert np.array_equal(np.concatenate([p["pair"] for p in pieces])[:, 1], order)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("width", [1, 10**15])
def test_numbers_are_found_by_name(width):
    draw = np.random.default_rng(0)
    names = np.unique(draw.integers(-500 * width, 500 * width, 400))
    draw.shuffle(names)
    wanted = np.concatenate([names, draw.integers(-900 * width, 900 * width, 500)])
    expected = {int(name): place for place, name in enumerate(names)}
    index = NumberIndex(names)
    assert index.repeated == -1
    assert index.find(wanted).tolist() == [expected.get(int(name), -1) for name in wanted]
    assert NumberIndex(np.concatenate([names, names[7:9]])).repeated == len(names)


def test_words_are_found_by_name():
    names = ["", "a", "ab", "b", "abc", "ü", "a\0b"]

    def words(items):
        _, start, data = pa.array(items).buffers()
        return Words(np.frombuffer(start, np.int32), np.frombuffer(data, np.uint8))

    index = WordIndex(words(names))
    assert index.repeated == -1
    wanted = ["abc", "none", "", "ü", "a\0b", "a\0c"]
    assert index.find(words(wanted)).tolist() == [4, -1, 0, 5, 6, -1]
    assert WordIndex(words([*names, "ab"])).repeated == 7


def _import_and_stop(tables, out, phase, reached, said=None):
    """Import up to a phase, say so, and wait to be killed."""

    def progress(what, *_):
        if what == phase:
            reached.send(what)
            time.sleep(600)

    ew.import_graph(tables, out, progress=progress, **(said or {"target": "y"}))


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["reading nodes.csv", "encoding nodes", "writing edges"])
def test_a_killed_import_leaves_no_store_and_the_next_sweeps_its_scraps(phase, tmp_path):
    folder = write(tmp_path / "tables", tables(), "csv")
    whole = ew.import_graph(folder, tmp_path / "whole", target="y")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    arguments = (folder, tmp_path / "graph", phase, there)
    worker = context.Process(target=_import_and_stop, args=arguments)
    worker.start()
    assert here.recv() == phase
    worker.kill()
    worker.join()
    scraps = {path.name for path in tmp_path.iterdir()} - {"tables", "whole"}
    assert len(scraps) == 2
    assert all(name.startswith(".part-") for name in scraps)
    store = ew.import_graph(folder, tmp_path / "graph", target="y")
    assert store.checksum == whole.checksum
    assert {path.name for path in tmp_path.iterdir()} == {"tables", "whole", "graph"}


def test_a_disk_that_fills_up_is_a_sentence(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = write(tmp_path / "tables", tables(), "csv")
    monkeypatch.setattr(ExternalSort, "_write_run", full)
    with pytest.raises(EdgewiseError, match=r"graph \(No space left on device\); make room or"):
        ew.import_graph(folder, tmp_path / "graph", target="y")
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]
