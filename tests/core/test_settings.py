"""A knob stands in one place: flags, config files and saved settings cannot disagree."""

import inspect
import json
from dataclasses import fields

import pytest

from edgewise.cli.flags import chosen, recipe_flags
from edgewise.core.errors import EdgewiseError
from edgewise.core.recipe import (
    KINDS,
    PRESETS,
    Recipe,
    load_recipe,
    make_recipe,
    read_config,
    write_config,
)


def flagged():
    seen = {}

    @recipe_flags
    def command(place: str = "", *, settings: dict) -> None:
        """Do it."""
        seen.update(settings)

    return command, seen


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_preset_survives_being_saved(preset, kind, tmp_path):
    recipe = make_recipe(kind, preset, target=["a", "b"], split_seed=4)
    assert load_recipe(json.loads(json.dumps(recipe.to_json()))) == recipe
    write_config(tmp_path / "recipe.toml", recipe.to_json())
    assert load_recipe(read_config(tmp_path / "recipe.toml")) == recipe


def test_the_paper_preset_is_what_the_paper_says():
    nodes, molecules = (make_recipe(kind, "paper") for kind in KINDS)
    assert (nodes.learning_rate, nodes.patience, nodes.hidden) == (0.005, 100, 64)
    assert (nodes.dropout, nodes.weight_decay) == (0.6, 0.0005)
    assert (molecules.learning_rate, molecules.patience, molecules.hidden) == (0.0005, 200, 16)
    assert (molecules.pooling, molecules.weight_decay, molecules.depth) == ("max", 0.0001, 2)


def test_undirected_edges_have_no_direction_to_encode_unless_it_is_asked_for():
    assert make_recipe("nodes").directed
    assert not make_recipe("nodes", edges="undirected").directed
    assert make_recipe("nodes", edges="undirected", directed=True).directed


def test_every_setting_is_a_flag_with_its_help():
    command, _ = flagged()
    parameters = inspect.signature(command).parameters
    for knob in fields(Recipe):
        option = parameters[knob.name].annotation.__metadata__[0]
        assert option.help.startswith(knob.metadata["help"])
        assert parameters[knob.name].default is None


def test_only_flags_that_were_given_become_settings():
    command, seen = flagged()
    names = [knob.name for knob in fields(Recipe)]
    command(place="x", **(dict.fromkeys(names) | {"hidden": 3, "adapt": False, "target": []}))
    assert seen == {"hidden": 3, "adapt": False}


def test_any_column_name_survives_a_config_file(tmp_path):
    write_config(tmp_path / "best.toml", {"target": ["größe 😀", 'a"b\\c']})
    assert read_config(tmp_path / "best.toml") == {"target": ["größe 😀", 'a"b\\c']}


def test_flags_win_over_the_file_and_the_file_over_the_preset(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('preset = "paper"\nhidden = 8\ndepth = 3\n')
    assert chosen(None, str(path), {"depth": 4}) == ("paper", {"hidden": 8, "depth": 4})
    assert chosen("default", str(path), {})[0] == "default"
    assert chosen(None, None, {}) == ("default", {})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"layer": "pool"}, "layer = 'pool' is not known; choose one of conv, attention"),
        ({"hidden": 0}, "hidden = 0 is out of range; it must be at least 1 and at most 10,000"),
        ({"hidden": 2.5}, "hidden = 2.5 is not a whole number"),
        ({"hidden": True}, "hidden = True is not a whole number"),
        ({"dropout": 1.0}, "dropout = 1.0 is out of range; it must be at least 0 and below 1"),
        ({"dropout": "much"}, "dropout = 'much' is not a number"),
        ({"learning_rate": float("inf")}, "learning_rate = inf is out of range"),
        ({"learning_rate": float("nan")}, "learning_rate = nan is out of range"),
        ({"adapt": 1}, "adapt = 1 is not true or false"),
        ({"target": [1]}, r"target = \[1\] is not a list of column names"),
        ({"hiden": 3}, r"there is no setting \[hiden\]; the settings are layer, "),
        ({"heads": 2}, "heads belong to attention"),
        ({"seed": -1}, "seed = -1 is out of range"),
    ],
)
def test_a_wrong_value_is_a_sentence(settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        make_recipe("nodes", **settings)


def test_an_unknown_preset_is_a_sentence():
    with pytest.raises(EdgewiseError, match="no preset 'best'; choose one of default, paper"):
        make_recipe("nodes", "best")


def test_one_column_may_be_given_without_a_list():
    assert make_recipe("molecules", target="logp").target == ("logp",)


@pytest.mark.parametrize("text", ["hidden: 3", "hidden = ", "\x00"])
def test_a_file_that_is_not_toml_is_a_sentence(text, tmp_path):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(EdgewiseError, match=r"bad\.toml is not TOML"):
        read_config(tmp_path / "bad.toml")


def test_a_file_with_an_unknown_setting_is_named(tmp_path):
    (tmp_path / "odd.toml").write_text("hiden = 3")
    with pytest.raises(EdgewiseError, match=r"odd\.toml: there is no setting \[hiden\]"):
        read_config(tmp_path / "odd.toml")
