"""No work is done twice: data are read once, operators built once, results kept in memory."""

import sys
from collections import Counter

import pytest
from run_toys import SETTINGS

import edgewise as ew
from edgewise import runs
from edgewise.data import molecule_sources, sources
from edgewise.data.own_datasets import OWN_DATASETS
from edgewise.nn.layers.base import ChannelLayer
from edgewise.units.graph import GraphUnit
from edgewise.units.node import NodeUnit

OPENED = []
WATCHING = []


def _watch(event, arguments):
    if WATCHING and event == "open":
        OPENED.append(str(arguments[0]))


sys.addaudithook(_watch)  # it cannot be taken away again


@pytest.fixture
def opened_files():
    OPENED.clear()
    WATCHING.append(True)
    yield OPENED
    WATCHING.clear()


@pytest.fixture
def calls(monkeypatch):
    """How often data are opened, tables parsed, and operators built."""
    count = Counter()

    def counted(owner, name):
        whole = getattr(owner, name)

        def counting(*arguments, **named):
            count[name] += 1
            return whole(*arguments, **named)

        monkeypatch.setattr(owner, name, counting)

    for owner, name in (
        *((NodeUnit, "open"), (GraphUnit, "open"), (ChannelLayer, "operator")),
        *((sources, "read_table"), (sources, "read_folder"), (molecule_sources, "read_molecules")),
    ):
        counted(owner, name)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_nodes_are_read_once_and_all_members_share_one_operator(
    graph_folder, tmp_path, calls, layer
):
    runs.train(str(graph_folder), tmp_path / "run", ensemble=3, layer=layer, **SETTINGS)
    assert calls == {"open": 1, "read_folder": 1, "operator": 1}


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_molecules_are_read_once_and_all_members_share_one_operator(
    molecule_file, tmp_path, calls, layer
):
    settings = {"batch_size": 7, "ensemble": 3, "layer": layer}
    runs.train(str(molecule_file), tmp_path / "run", **settings, **SETTINGS)
    assert calls == {"open": 1, "read_molecules": 1, "operator": 1}


def test_going_on_reads_once_more(graph_folder, tmp_path, calls):
    seen = []
    watched = {"on_epoch": lambda *what: seen.append(what), "stop": lambda: len(seen) == 3}
    run = runs.train(str(graph_folder), tmp_path / "run", **watched, **SETTINGS)
    calls.clear()
    runs.resume(run.folder)
    assert calls == {"open": 1, "read_folder": 1, "operator": 1}


@pytest.mark.slow
@pytest.mark.report
def test_what_was_predicted_is_not_read_back(graph_folder, tmp_path, opened_files):
    runs.train(str(graph_folder), tmp_path / "run", **SETTINGS)
    assert [path for path in opened_files if path.startswith(str(tmp_path / "run"))]
    for name in ("predictions.csv", "history.csv"):
        opened = [path for path in opened_files if path == str(tmp_path / "run" / name)]
        assert len(opened) <= 1  # for a checksum of what is on disk, and for nothing else


def test_a_data_set_of_ones_own_is_loaded_once(tmp_path):
    from edgewise.data.synthetic import direction_and_kind_graph

    loaded = []

    @ew.register_dataset("counted_for_a_test")
    def load():
        loaded.append(True)
        return direction_and_kind_graph(60)[0]

    try:
        runs.train("counted_for_a_test", tmp_path / "run", **SETTINGS)
    finally:
        del OWN_DATASETS["counted_for_a_test"]
    assert len(loaded) == 1
