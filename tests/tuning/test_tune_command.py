"""``edgewise tune`` tells each trial, and what to type next."""

import pytest
import typer
from tuning_toys import lines_of, settings_in
from typer.testing import CliRunner

from edgewise.cli.flags import setting_flags
from edgewise.cli.tune import tune as tune_command
from edgewise.core.config import read_config


@pytest.fixture
def command():
    app = typer.Typer()
    app.command()(setting_flags(tune_command))
    app.command("other")(lambda: None)
    return lambda *words: CliRunner().invoke(app, ["tune", *map(str, words)])


@pytest.mark.slow
def test_the_command_tells_each_trial_and_what_to_type_next(command, source, tmp_path):
    flags = ["--epochs", 4, "--layer", "conv", "--split-column", "part", "--out", tmp_path / "out"]
    done = command(*source.places, "--trials", 2, *flags)
    assert done.exit_code == 0, done.output
    assert "trial 0: accuracy 0." in done.output
    assert "2 trials (2 complete)" in done.output
    assert f"--config {tmp_path / 'out' / 'best.toml'}" in done.output.replace("\n", "")
    settings = settings_in(tmp_path / "out" / "best.toml")
    assert (settings.training.epochs, settings.model.layer) == (4, "conv")
    again = command(*source.places, "--trials", 3, *flags, "--quiet")
    assert (again.exit_code, again.output) == (0, "")
    assert len(lines_of(tmp_path / "out")) == 1 + 3


def test_a_config_file_fixes_what_it_says(command, source, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'preset = "paper"\nlayer = "conv"\nhidden = 7\nepochs = 3\nsplit_column = "part"\n'
    )
    out = tmp_path / "out"
    done = command(
        *source.places, "--trials", 2, "--config", tmp_path / "mine.toml", "--out", out, "--quiet"
    )
    assert done.exit_code == 0, done.output
    assert read_config(out / "best.toml")["hidden"] == 7
    assert "hidden" not in lines_of(out)[0]
