"""A store is opened as it was written, or refused with a sentence."""

import json
import multiprocessing
import shutil

import numpy as np
import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.core.manifest import MANIFEST
from edgewise.data.graph_store import ARRAYS, NODES, open_store, write_store
from edgewise.data.stores import is_any_store
from edgewise.graphs.array_graph import Adjacency, ArrayGraph


def arrays(nodes=5, edges=((0, 1), (0, 3), (1, 3), (4, 0))):
    """A small graph, its edges in both orders by plain sorting."""
    edges = np.array(sorted(edges), dtype=np.int32).reshape(-1, 2)
    back = np.lexsort((edges[:, 0], edges[:, 1]))
    starts = [np.searchsorted(np.sort(edges[:, side]), np.arange(nodes + 1)) for side in (0, 1)]
    adjacency = Adjacency(
        starts[0].astype(np.int64), edges[:, 1].copy(), starts[1].astype(np.int64),
        edges[back, 0], back.astype(np.int32),
    )  # fmt: skip
    x = np.arange(nodes * 2, dtype=np.float32).reshape(nodes, 2)
    return ArrayGraph(x, adjacency, np.ones((len(edges), 3), dtype=np.float32))


@pytest.fixture
def store(tmp_path):
    graph = arrays()
    write_store(tmp_path / "graph", graph, {"y": ["a", "b", "a", None, "b"]})
    return tmp_path / "graph"


def test_a_store_gives_back_what_was_written(store):
    written, opened = arrays(), open_store(store)
    assert np.array_equal(opened.graph.x, written.x)
    assert np.array_equal(opened.graph.edge_attr, written.edge_attr)
    for name, array in vars(written.adjacency).items():
        found = getattr(opened.graph.adjacency, name)
        assert np.array_equal(found, array)
        assert found.dtype == array.dtype
    assert opened.info.targets == ("y",)
    assert opened.nodes.column("id") == ("0", "1", "2", "3", "4")
    assert opened.nodes.column("y") == ("a", "b", "a", "", "b")
    opened.verify()


def test_numpy_alone_reads_the_arrays(store):
    assert np.array_equal(np.load(store / "x.npy", mmap_mode="r"), arrays().x)


def test_a_graph_without_edges_is_a_store(tmp_path):
    opened = write_store(tmp_path / "graph", arrays(edges=()))
    assert (opened.graph.num_nodes, opened.graph.num_edges) == (5, 0)
    opened.verify()


def test_arrays_are_mapped_read_only(store):
    x = open_store(store).graph.x
    assert not x.flags.writeable
    assert isinstance(x.base, np.memmap)


def _sum_of_x(folder, out):
    out.put(float(open_store(folder).graph.x.sum()))


@pytest.mark.slow
def test_two_processes_open_a_store_at_once(store):
    context = multiprocessing.get_context("fork")
    out = context.Queue()
    workers = [context.Process(target=_sum_of_x, args=(store, out)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert [out.get(timeout=60) for _ in workers] == [45.0, 45.0]
    for worker in workers:
        worker.join()


def test_an_occupied_place_is_refused_and_left_alone(store, tmp_path):
    with pytest.raises(EdgewiseError, match="there already, and not empty; choose another --out"):
        write_store(store, arrays())
    (tmp_path / "file").write_text("mine")
    with pytest.raises(EdgewiseError, match="there already"):
        write_store(tmp_path / "file", arrays())
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert write_store(tmp_path / "empty", arrays()).graph.num_nodes == 5


@pytest.mark.parametrize("name", [*(f"{name}.npy" for name in ARRAYS), NODES, MANIFEST])
@pytest.mark.parametrize("damage", ["missing", "cut", "longer", "empty"])
def test_a_file_of_another_size_is_refused(store, name, damage):
    path = store / name
    data = path.read_bytes()
    path.unlink()
    changed = {"cut": data[:-1], "longer": data + b"\n0", "empty": b""}
    if damage != "missing":
        path.write_bytes(changed[damage])
    assert is_any_store(store)
    with pytest.raises(EdgewiseError, match=r"damaged .*import the tables again"):
        open_store(store)


def test_no_flipped_byte_of_the_manifest_passes(store):
    path = store / MANIFEST
    data = path.read_bytes()
    for place in range(0, len(data), 7):
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
            open_store(store)


@pytest.mark.parametrize("name", [*(f"{name}.npy" for name in ARRAYS), NODES])
def test_a_flipped_byte_of_the_numbers_is_found_by_verify(store, name):
    path = store / name
    data = bytearray(path.read_bytes())
    data[-1 if name != NODES else 6] ^= 1
    path.write_bytes(data)
    with pytest.raises(EdgewiseError, match=rf"{name} is damaged \(its checksum differs\)"):
        open_store(store).verify()


def test_an_array_of_another_store_is_refused(store, tmp_path):
    write_store(tmp_path / "other", arrays(6))
    shutil.copy(tmp_path / "other" / "x.npy", store / "x.npy")
    with pytest.raises(EdgewiseError, match=r"float32\[6, 2\] in place of float32\[5, 2\]"):
        open_store(store)


def test_a_link_to_a_file_elsewhere_is_refused(store, tmp_path):
    (store / "x.npy").rename(tmp_path / "x.npy")
    (store / "x.npy").symlink_to(tmp_path / "x.npy")
    with pytest.raises(EdgewiseError, match="is a link"):
        open_store(store)


def test_folders_of_other_kinds_are_no_stores(tmp_path):
    assert not is_any_store(tmp_path)
    (tmp_path / MANIFEST).write_text("{}")
    assert not is_any_store(tmp_path)
    with pytest.raises(EdgewiseError, match="format is missing"):
        open_store(tmp_path)
