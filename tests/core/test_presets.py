"""Presets are the paper's settings and the usual ones, for each unit."""

import json

import pytest

import edgewise as ew
from edgewise.core.config import read_config, write_config
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import PRESETS, make_settings
from edgewise.core.registries import UNITS
from edgewise.core.settings import load_settings


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("unit", UNITS.names)
def test_every_preset_survives_being_saved(preset, unit, tmp_path):
    settings = make_settings(unit, preset, target=["a", "b"], split_seed=4)
    assert load_settings(json.loads(json.dumps(settings.to_json()))) == settings
    write_config(tmp_path / "settings.toml", settings)
    assert load_settings(read_config(tmp_path / "settings.toml")) == settings


def test_the_paper_preset_is_what_the_paper_says():
    nodes, molecules = (make_settings(unit, "paper") for unit in ("node", "graph"))
    assert (nodes.training.learning_rate, nodes.training.patience) == (0.005, 100)
    assert (nodes.model.hidden, nodes.model.dropout) == (64, 0.6)
    assert nodes.training.weight_decay == 0.0005
    assert (molecules.training.learning_rate, molecules.training.patience) == (0.0005, 200)
    assert (molecules.model.hidden, molecules.model.depth) == (16, 2)
    assert (molecules.model.pooling, molecules.training.weight_decay) == ("max", 0.0001)


def test_by_default_whole_graphs_get_a_deep_network_of_learnt_channels():
    settings = make_settings("graph")
    assert (settings.model.layer, settings.model.normalize) == ("gated", "none")
    assert settings.model.depth >= 3
    assert (settings.training.optimizer, settings.training.schedule) == ("adamw", "cosine")


def test_another_layer_brings_the_settings_that_suit_it():
    conv = make_settings("graph", layer="conv")
    assert (conv.model.normalize, conv.model.depth, conv.model.hidden) == (
        "doubly_stochastic", 2, 32,
    )  # fmt: skip
    assert make_settings("graph", layer="gated") == make_settings("graph")
    assert make_settings("graph", "paper", layer="attention").model.hidden == 16


def test_undirected_edges_have_no_direction_to_encode_unless_it_is_asked_for():
    assert make_settings("node").model.directed
    assert not make_settings("node", edges="undirected").model.directed
    assert make_settings("node", edges="undirected", directed=True).model.directed


def test_what_the_data_imply_gives_way_to_what_is_given():
    assert not make_settings("graph", implied={"directed": False}).model.directed
    assert make_settings("graph", implied={"directed": False}, directed=True).model.directed


def test_an_unknown_preset_is_a_sentence():
    with pytest.raises(EdgewiseError, match="no preset 'best'; choose one of default, fast, paper"):
        make_settings("node", "best")


def test_the_recipes_of_version_0_1_are_the_settings_of_today():
    with pytest.warns(FutureWarning, match=r"edgewise\.make_recipe goes away.*make_settings"):
        make_recipe = ew.make_recipe
    assert make_recipe("nodes", "paper", hidden=3) == make_settings("node", "paper", hidden=3)
    assert make_recipe("molecules") == make_settings("graph", directed=False, norm="none")
    with pytest.warns(FutureWarning, match=r"edgewise\.Recipe goes away"):
        recipe = ew.Recipe
    assert recipe(hidden=3, target_column="to") == make_settings(
        "node", hidden=3, destination_column="to"
    )
    with pytest.warns(FutureWarning, match=r"edgewise\.Architecture goes away.*ModelSettings"):
        assert ew.Architecture is ew.ModelSettings
