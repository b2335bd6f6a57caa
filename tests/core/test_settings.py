"""A setting stands in one place: flags, config files and saved settings cannot disagree."""

import inspect
import json
from dataclasses import field, fields, make_dataclass

import pytest

from edgewise.cli.flags import chosen, setting_flags
from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.foreign import refuse_foreign
from edgewise.core.presets import make_settings
from edgewise.core.settings import (
    PART_OF,
    PARTS,
    RENAMED,
    SETTINGS,
    Settings,
    flattened,
    load_settings,
)


def flagged():
    seen = {}

    @setting_flags
    def command(place: str = "", *, settings: dict) -> None:
        """Do it."""
        seen.update(settings)

    return command, seen


def test_every_setting_is_a_flag_with_its_help():
    command, _ = flagged()
    parameters = inspect.signature(command).parameters
    for name, one in SETTINGS.items():
        option = parameters[name].annotation.__metadata__[0]
        assert option.help.startswith(one.metadata["help"])
        assert parameters[name].default is None


def test_only_flags_that_were_given_become_settings():
    command, seen = flagged()
    nothing = dict.fromkeys((*SETTINGS, *RENAMED))
    command(place="x", **(nothing | {"hidden": 3, "adapt": False, "target": []}))
    assert seen == {"hidden": 3, "adapt": False}


def test_a_flag_of_version_0_1_still_works_and_says_its_name_of_today(capsys):
    command, seen = flagged()
    command(**(dict.fromkeys((*SETTINGS, *RENAMED)) | {"target_column": "to"}))
    assert seen == {"destination_column": "to"}
    assert "--target-column is called --destination-column today" in capsys.readouterr().err


def test_flags_win_over_the_file_and_the_file_over_the_preset(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('preset = "paper"\nhidden = 8\ndepth = 3\n')
    found = chosen(None, str(path), {"depth": 4})
    assert (found.preset, found.named) == ("paper", {"hidden": 8, "depth": 4})
    assert chosen("default", str(path), {}).preset == "default"
    assert (chosen(None, None, {}).preset, chosen(None, None, {}).named) == ("default", {})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"layer": "pool"}, "layer = 'pool' is unknown; choose one of conv, attention"),
        ({"layer": "pool"}, "the Python file that registers it with --plugin"),
        ({"task": "rank"}, "task = 'rank' is unknown; choose one of auto, multilabel"),
        ({"norm": "group"}, "norm = 'group' is unknown; choose one of none, batch, layer$"),
        ({"hidden": 0}, "hidden = 0 is out of range; it must be at least 1 and at most 10,000"),
        ({"hidden": 2.5}, "hidden = 2.5 is not a whole number"),
        ({"hidden": True}, "hidden = True is not a whole number"),
        ({"dropout": 1.0}, "dropout = 1.0 is out of range; it must be at least 0 and below 1"),
        ({"dropout": "much"}, "dropout = 'much' is not a number"),
        ({"learning_rate": float("inf")}, "learning_rate = inf is out of range"),
        ({"learning_rate": float("nan")}, "learning_rate = nan is out of range"),
        ({"adapt": 1}, "adapt = 1 is not true or false"),
        ({"target": [1]}, r"target = \[1\] is not a list of column names"),
        ({"hiden": 3}, r"there is no setting \[hiden\]; the settings are task, "),
        ({"seed": -1}, "seed = -1 is out of range"),
    ],
)
def test_a_wrong_value_is_a_sentence(settings, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        make_settings("node", **settings)


def test_one_column_may_be_given_without_a_list():
    assert make_settings("graph", target="logp").data.target == ("logp",)


def test_every_setting_belongs_to_one_part_and_flat_access_finds_it_there():
    names = [one.name for part in PARTS.values() for one in fields(part)]
    assert len(names) == len(set(names)) == len(SETTINGS)
    settings = Settings().changed(hidden=3, target="a", seed=7, split="sparse")
    assert (settings.model.hidden, settings.training.seed) == (3, 7)
    assert (settings.data.target, settings.split.split) == (("a",), "sparse")
    assert Settings().changed(**settings.flat()) == settings


def test_settings_are_loaded_from_tables_and_flat_as_version_0_1_wrote_them():
    settings = Settings().changed(hidden=3, target=["a"], seed=7, destination_column="to")
    assert load_settings(json.loads(json.dumps(settings.to_json()))) == settings
    flat = {k: list(v) if isinstance(v, tuple) else v for k, v in settings.flat().items()}
    flat["target_column"] = flat.pop("destination_column")
    assert load_settings(flat) == settings


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"model": {"epochs": 3}}, r"epochs stands in \[model\]; it belongs in \[training\]"),
        ({"data": {"hiden": 3}}, r"\[data\] there is no setting \[hiden\]"),
        ({"mdel": {"hidden": 3}}, r"there is no setting \[mdel\]"),
        ({"model": 3}, r"there is no setting \[model\]"),
    ],
)
def test_a_setting_in_the_wrong_table_is_named(content, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        flattened(content)


def test_only_what_differs_from_its_default_tells_settings_apart():
    assert Settings().differences() == {}
    changed = Settings().changed(hidden=3, target="a", device="cpu")
    assert changed.differences() == {"hidden": 3, "target": ["a"]}


def test_a_setting_that_is_added_later_changes_no_differences(monkeypatch):
    now = make_settings("graph", "paper", layer="attention")
    before = now.differences()
    metadata = {"help": "", "of": "", "choices": (), "low": 0, "high": 9}
    grown = make_dataclass(
        "Grown",
        [("wisdom", int, field(default=4, metadata=metadata))],
        bases=(ModelSettings,),
        frozen=True,
    )
    monkeypatch.setitem(SETTINGS, "wisdom", grown.__dataclass_fields__["wisdom"])
    monkeypatch.setitem(PART_OF, "wisdom", "model")
    later = Settings(now.data, now.split, grown(**vars(now.model)), now.training)
    assert later.flat()["wisdom"] == 4
    assert later.differences() == before


@pytest.mark.parametrize("owner", ["source", "unit", "layer", "task"])
def test_a_setting_that_does_not_apply_is_refused_in_a_sentence(owner):
    name = next(n for n, one in SETTINGS.items() if one.metadata["of"] == owner)
    with pytest.raises(EdgewiseError, match=rf"the setting \[{name}\] does not apply here: why;"):
        refuse_foreign([name, "hidden"], owner, (), "why")
    refuse_foreign([name, "hidden"], owner, (name,), "why")


def test_several_settings_that_do_not_apply_are_all_named():
    with pytest.raises(EdgewiseError, match=r"settings \[text, ignore\] do not apply.*leave them"):
        refuse_foreign(["text", "ignore"], "source", (), "why")
