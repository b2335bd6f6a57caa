"""A setting that does not hold for the data, the unit, the layer or the task is refused."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgewise.cli.app import app
from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import LAYERS, TASKS, UNITS
from edgewise.core.settings import SETTINGS, Settings
from edgewise.data.sources import find_source

OLD = Path(__file__).parents[1] / "fixtures" / "0.1.0"
DATA = {
    "cora": ["cora"],
    "graph file": [str(OLD / "graph.safetensors")],
    "tables": [str(OLD / "nodes.csv"), str(OLD / "edges.csv")],
    "molecules": [str(OLD / "molecules.csv")],
}
PLUGIN = """
import edgewise as ew

@ew.register_layer("bare_for_a_test")
class Bare(ew.Layer):
    pass
"""


def flag(name, implied):
    """The setting as a flag, with a value that is neither its default nor follows from the data."""
    one, dashed = SETTINGS[name], name.replace("_", "-")
    if one.type is bool:
        return [f"--no-{dashed}" if implied.get(name, one.default) else f"--{dashed}"]
    choices = [choice for choice in one.metadata["choices"] if choice != one.default]
    other = {int: "3", float: "0.5"}.get(one.type, "other")
    return [f"--{dashed}", choices[0] if choices else other]


def owned_by(owner):
    return [name for name, one in SETTINGS.items() if one.metadata["of"] == owner]


def foreign():
    """For each setting that the data or the unit decide about, the data for which it is foreign."""
    for kind, places in DATA.items():
        source = find_source(places)
        takes = {"source": source.settings, "unit": UNITS[source.unit].takes(Settings())}
        for owner, taken in takes.items():
            yield from ((kind, name) for name in owned_by(owner) if name not in taken)


FOREIGN = list(foreign())
# Refused for what they say, not for who says it; or by a layer, or by a task.
OTHERS = {
    "head": ("molecules", ["--target", "logp", "--head", "layer"], "head = layer gives outputs"),
    "adapt": ("tables", ["--no-adapt"], r"\[adapt\] does not apply here: the layer conv"),
    "channels": (
        "tables",
        ["--channels", "2"],
        r"\[channels\] does not apply here: the layer conv",
    ),
    "root_weight": (
        *("molecules", ["--root-weight"]),
        r"\[root_weight\] does not apply here: the layer gated",
    ),
    "heads": ("molecules", ["--heads", "2"], r"\[heads\] does not apply here: the layer gated"),
    "weighted": (
        *("molecules", ["--target", "logp", "--weighted"]),
        r"\[weighted\] does not apply here: this is regression of \[logp\]",
    ),
    "scale_targets": (
        *("tables", ["--target", "risk", "--no-scale-targets"]),
        r"\[scale_targets\] does not apply here: this is classification",
    ),
}


def check(kind, *flags):
    """``edgewise check``; an error is raised as the command line would print it."""
    done = CliRunner().invoke(app, ["check", *DATA[kind], *map(str, flags)])
    if done.exception is not None:
        raise done.exception
    return done.stdout


@pytest.mark.parametrize(("kind", "name"), FOREIGN)
def test_a_setting_that_is_foreign_to_the_data_is_refused(kind, name):
    with pytest.raises(EdgewiseError, match=rf"setting \[{name}\] does not apply here: .*leave"):
        check(kind, *flag(name, find_source(DATA[kind]).implied))


@pytest.mark.parametrize("name", OTHERS)
def test_a_setting_that_is_foreign_to_layer_or_task_is_refused(name):
    kind, flags, sentence = OTHERS[name]
    with pytest.raises(EdgewiseError, match=sentence):
        check(kind, *flags)


def test_a_setting_that_every_layer_of_the_package_takes_is_refused_for_one_that_does_not(tmp_path):
    (tmp_path / "bare.py").write_text(PLUGIN)
    flags = ("--plugin", tmp_path / "bare.py", "--layer", "bare_for_a_test")
    try:
        with pytest.raises(EdgewiseError, match=r"\[normalize\] does not apply .*bare_for_a_test"):
            check("tables", *flags, "--normalize", "row")
    finally:
        LAYERS._things.pop("bare_for_a_test", None)


def test_a_setting_that_every_task_of_the_package_takes_is_refused_for_one_that_does_not(
    monkeypatch,
):
    monkeypatch.setattr(TASKS["regression"], "settings", frozenset({"scale_targets"}))
    with pytest.raises(EdgewiseError, match=r"\[coverage\] does not apply here: this is regress"):
        check("molecules", "--target", "logp", "--coverage", "0.8")


def test_every_setting_with_an_owner_is_refused_somewhere():
    refused = {name for _, name in FOREIGN} | set(OTHERS) | {"normalize", "coverage"}
    assert refused == {name for name, one in SETTINGS.items() if one.metadata["of"]}


def test_several_foreign_settings_are_named_together():
    given = ("--pooling", "mean", "--smiles-column", "foo", "--target", "nonsense")
    with pytest.raises(EdgewiseError, match=r"\[target, smiles_column\] do not apply here: cora"):
        check("cora", *given)
    with pytest.raises(EdgewiseError, match=r"\[pooling\] does not apply here: .*nodes"):
        check("cora", "--pooling", "mean")


def test_settings_that_hold_are_not_refused():
    given = ("--target", "risk", "--text", "about", "--weighted", "--no-directed", "--heads", "2")
    found = check("tables", *given, "--layer", "attention", "--no-adapt")
    assert "classification of risk into 2 classes" in found
