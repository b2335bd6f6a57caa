"""A setting that does not apply is refused, wherever it comes from; a default is not."""

from pathlib import Path

import pytest

from edgewise.cli.flags import chosen
from edgewise.core.config import write_config
from edgewise.core.errors import EdgewiseError
from edgewise.core.presets import make_settings
from edgewise.core.registries import LAYERS, UNITS
from edgewise.core.settings import SETTINGS
from edgewise.data.sources import find_source
from edgewise.training.legacy import recipe_0_1
from edgewise.units.base import resolve

WRONG = [
    ("cora", {"text": ["a"]}, r"\[text\] does not apply here: cora is a citation network"),
    ("cora", {"featurizer": "rich"}, r"\[featurizer\] does not apply here: cora"),
    ("cora", {"pooling": "mean"}, r"\[pooling\] does not apply here: what is predicted are nodes"),
    ("cora", {"batch_size": 8}, r"\[batch_size\] does not apply here"),
    ("cora", {"heads": 2}, r"\[heads\] does not apply here: the layer conv does not take it"),
    ("cora", {"adapt": False}, r"\[adapt\] does not apply here: the layer conv"),
    ("freesolv", {"directed": True}, r"\[directed\] does not apply here: freesolv is a set"),
    ("freesolv", {"reciprocal": "sum"}, r"\[reciprocal\] does not apply here"),
    ("freesolv", {"smiles_column": "x"}, r"\[smiles_column\] does not apply here"),
    ("freesolv", {"fit_on": "all"}, r"\[fit_on\] does not apply here"),
    (
        "freesolv",
        {"split_column": "part", "split": "0.5,0.2,0.3", "split_seed": 4},
        r"split_column says which rows are which, so \[split, split_seed\] would be ignored",
    ),
    ("cora", {"split": "s.json", "stratify": True}, r"a file .*, so \[stratify\] would be ignored"),
    (
        "freesolv",
        {"schedule": "constant", "warmup": 0.2},
        r"schedule is not cosine, without warm-up, so \[warmup\] would be ignored",
    ),
]


@pytest.mark.parametrize(("name", "settings", "sentence"), WRONG)
def test_a_setting_that_does_not_apply_is_refused_from_python_and_from_flags(
    name, settings, sentence
):
    source = find_source([name])
    with pytest.raises(EdgewiseError, match=sentence):
        resolve(source, "default", settings)
    found = chosen(None, None, settings)
    with pytest.raises(EdgewiseError, match=sentence):
        resolve(source, found.preset, found.given, also=found.defaults)


@pytest.mark.parametrize(("name", "settings", "sentence"), WRONG)
def test_a_setting_that_does_not_apply_is_refused_from_a_file(name, settings, sentence, tmp_path):
    write_config(tmp_path / "mine.toml", make_settings("node", "paper", **settings))
    found = chosen(None, str(tmp_path / "mine.toml"), {})
    if settings == {"directed": True}:  # its default, which says nothing
        assert not resolve(find_source([name]), "default", found.given)[1].model.directed
        return
    with pytest.raises(EdgewiseError, match=sentence):
        resolve(find_source([name]), found.preset, found.given, also=found.defaults)


@pytest.mark.parametrize("layer", LAYERS.names)
@pytest.mark.parametrize("name", ["cora", "freesolv"])
def test_a_file_that_writes_out_every_setting_as_version_0_1_did_is_accepted(name, layer, tmp_path):
    source = find_source([name])
    unit = UNITS[source.unit]
    settings = make_settings(source.unit, implied=source.implied, layer=layer)
    lines = []
    for key, value in recipe_0_1(settings).items():
        if value is not None:
            said = str(value).lower() if isinstance(value, bool) else repr(value)
            lines.append(f"{key} = {said}")
    (tmp_path / "old.toml").write_text("\n".join(lines))
    found = chosen(None, str(tmp_path / "old.toml"), {})
    owners = {"source": source.settings, "unit": unit.settings, "layer": LAYERS[layer].settings}
    foreign = [
        key
        for key in found.defaults
        if (of := SETTINGS[key].metadata["of"]) in owners and key not in owners[of]
    ]
    assert foreign  # or nothing is tested
    _, resolved = resolve(source, found.preset, found.given, also=found.defaults)
    assert resolved == settings


def test_the_config_file_of_version_0_1_is_accepted():
    folder = Path(__file__).parents[1] / "fixtures" / "0.1.0"
    found = chosen(None, str(folder / "config.toml"), {})
    source = find_source([str(folder / "nodes.csv"), str(folder / "edges.csv")])
    unit, settings = resolve(source, found.preset, found.given, also=found.defaults)
    problem = unit.open(source, settings).problem
    assert (problem.settings.model.heads, problem.settings.model.hidden) == (2, 8)
    assert problem.task.names == ("risk",)


def tables(folder, targets):
    rows = "\n".join(f"n{i},{i},{target}" for i, target in enumerate(targets))
    (folder / "nodes.csv").write_text(f"id,age,y\n{rows}\n")
    edges = "\n".join(f"n{i},n{i + 1}" for i in range(len(targets) - 1))
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n")
    return find_source([str(folder)])


@pytest.mark.parametrize(
    ("targets", "settings", "sentence"),
    [
        ("abababab", {"scale_targets": False}, r"\[scale_targets\] does not apply.*classification"),
        ("01010101", {"scale_targets": False}, r"\[scale_targets\] does not apply.*binary label"),
        (
            [i + 0.5 for i in range(8)],
            {"weighted": True},
            r"\[weighted\] does not apply.*regression",
        ),
    ],
)
def test_a_setting_of_another_task_is_refused_once_the_data_are_read(
    tmp_path, targets, settings, sentence
):
    source = tables(tmp_path, targets)
    unit, resolved = resolve(source, "default", {"target": ["y"], **settings})
    with pytest.raises(EdgewiseError, match=sentence):
        unit.open(source, resolved)
