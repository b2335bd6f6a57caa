"""Settings in TOML files: tables of today, the flat files of version 0.1, mistakes as sentences."""

import pytest

from edgewise.core.config import read_config, says_something, write_config
from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import SETTINGS, Settings


def test_any_column_name_survives_a_config_file(tmp_path):
    write_config(tmp_path / "best.toml", Settings().changed(target=["größe 😀", 'a"b\\c']))
    assert read_config(tmp_path / "best.toml")["target"] == ["größe 😀", 'a"b\\c']


def test_tables_and_settings_outside_of_them_are_read_alike(tmp_path):
    (tmp_path / "nested.toml").write_text(
        'preset = "paper"\n[model]\nhidden = 8\n[training]\nepochs = 3\n'
    )
    (tmp_path / "flat.toml").write_text('preset = "paper"\nhidden = 8\nepochs = 3\n')
    read = {"preset": "paper", "hidden": 8, "epochs": 3}
    assert read_config(tmp_path / "nested.toml") == read_config(tmp_path / "flat.toml") == read


def test_a_name_of_version_0_1_is_read_as_that_of_today(tmp_path):
    (tmp_path / "old.toml").write_text('target_column = "to"')
    assert read_config(tmp_path / "old.toml") == {"destination_column": "to"}


@pytest.mark.parametrize("text", ["hidden: 3", "hidden = ", "\x00"])
def test_a_file_that_is_not_toml_is_a_sentence(text, tmp_path):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(EdgewiseError, match=r"bad\.toml is not TOML"):
        read_config(tmp_path / "bad.toml")


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(EdgewiseError, match=r"none\.toml cannot be read \(No such file"):
        read_config(tmp_path / "none.toml")


def test_a_file_with_an_unknown_setting_is_named(tmp_path):
    (tmp_path / "odd.toml").write_text("hiden = 3")
    with pytest.raises(EdgewiseError, match=r"odd\.toml: there is no setting \[hiden\]"):
        read_config(tmp_path / "odd.toml")


def test_a_setting_in_the_wrong_table_is_named_with_its_own(tmp_path):
    (tmp_path / "odd.toml").write_text("[data]\nhidden = 3")
    with pytest.raises(EdgewiseError, match=r"odd\.toml: hidden stands in \[data\].*in \[model\]"):
        read_config(tmp_path / "odd.toml")


def test_a_setting_at_its_default_says_nothing():
    for name, one in SETTINGS.items():
        default = list(one.default) if isinstance(one.default, tuple) else one.default
        assert not says_something(name, default)
        assert says_something(name, "something else")
