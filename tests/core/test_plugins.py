"""Layers, tasks, featurisers and data sets of one's own, from one Python file."""

import sys

import pytest
import torch

import edgewise as ew
from edgewise.core import plugins
from edgewise.core.errors import EdgewiseError
from edgewise.core.plugins import load_plugins
from edgewise.core.registries import FEATURIZERS, LAYERS, TASKS, UNITS
from edgewise.core.registry import Registry
from edgewise.data.own_datasets import OWN_DATASETS
from edgewise.data.sources import find_source
from edgewise.training import fit_member, load_model, make_predictor
from edgewise.units.base import resolve

PLUGIN = """
import numpy as np
import torch
from torch import nn

import edgewise as ew
from edgewise.data.featurizers import PaperFeaturizer
from edgewise.tasks.regression import Regression


@ew.register_layer("sum_of_neighbours")
class SumOfNeighbours(ew.Layer):
    settings = frozenset({"heads"})

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.linear, self.out_width = nn.Linear(in_channels, out_channels), out_channels

    @classmethod
    def build(cls, shape, settings):
        return cls(shape.in_channels, shape.out_channels)

    def forward(self, x, edge_index, edge_attr):
        found = x.new_zeros(x.shape).index_add(0, edge_index[1], x[edge_index[0]])
        return self.linear(x + found)


@ew.register_task("logarithm")
class Logarithm(Regression):
    name = "logarithm"

    @classmethod
    def claims(cls, table, names):
        return False

    def read(self, table):
        return super().read(table).log()

    def decode(self, outputs):
        return super().decode(outputs).exp()


@ew.register_featurizer("elements_alone")
class ElementsAlone(PaperFeaturizer):
    kind = "elements_alone"

    def _atom_columns(self, atoms):
        return [("element", atoms[:, 0])]


def four_nodes():
    y = torch.tensor([0, 1, 0, 1])
    return ew.Graph(torch.eye(4), torch.tensor([[0, 1, 2], [1, 2, 3]]), y=y)


ew.register_dataset("four_nodes", four_nodes)
ew.register_dataset(
    "alcohols",
    lambda: {"smiles": ["CO", "CCO", "CCCO", "CCCCO"], "mass": [32.0, 46.5, 60.1, 74.2]},
    unit="graph",
)
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A plugin file; what it registers is forgotten afterwards."""
    for registry in (UNITS, TASKS, LAYERS, FEATURIZERS):
        monkeypatch.setattr(registry, "_things", dict(registry._things))
    monkeypatch.setattr(plugins, "_loaded", {})  # or workers of later tests would load it
    before, modules = dict(OWN_DATASETS), set(sys.modules)
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    yield path
    OWN_DATASETS.clear()
    OWN_DATASETS.update(before)
    for name in set(sys.modules) - modules:
        if name.startswith("edgewise_plugin_"):
            del sys.modules[name]


def trained(name, **settings):
    unit, resolved = resolve(find_source([name]), "default", settings)
    problem = unit.open(find_source([name]), resolved).problem
    model = fit_member(problem).trainer.model
    return make_predictor(problem, (model,)), problem


def test_a_plugin_registers_a_layer_and_a_data_set_that_train(plugin, tmp_path):
    load_plugins([str(plugin)])
    assert "sum_of_neighbours" in LAYERS
    shape = {"layer": "sum_of_neighbours", "epochs": 2, "hidden": 3, "split": "1,0,0"}
    model, problem = trained("four_nodes", **shape)
    layers = [type(block.layer).__name__ for block in model.members[0].blocks]
    assert layers == ["SumOfNeighbours", "SumOfNeighbours"]
    model.save(tmp_path)
    again = load_model(tmp_path).predict(problem.data)
    assert (again.mean == model.predict(problem.data).mean).all()


def test_a_layer_of_ones_own_says_which_settings_it_takes(plugin):
    load_plugins([str(plugin)])
    source = find_source(["four_nodes"])
    assert resolve(source, "default", {"layer": "sum_of_neighbours", "heads": 2})
    with pytest.raises(EdgewiseError, match=r"\[normalize\] does not apply.*sum_of_neighbours"):
        resolve(source, "default", {"layer": "sum_of_neighbours", "normalize": "row"})


def test_a_plugin_registers_a_task_and_a_featuriser_that_train(plugin):
    load_plugins([str(plugin)])
    own = {"task": "logarithm", "featurizer": "elements_alone", "epochs": 2, "split": "1,0,0"}
    model, problem = trained("alcohols", **own)
    assert (problem.task.name, problem.data.num_features) == ("logarithm", 1)
    assert torch.allclose(problem.truth[0], torch.tensor([32.0]).log())
    assert (model.predict(problem.data).mean > 0).all()


def test_a_plugin_that_is_named_twice_is_loaded_once(plugin):
    load_plugins([str(plugin), str(plugin)])
    load_plugins([str(plugin)])


def test_an_installed_module_is_a_plugin_by_its_name(plugin, monkeypatch):
    monkeypatch.syspath_prepend(plugin.parent)
    load_plugins(["mine"])
    assert "sum_of_neighbours" in LAYERS
    monkeypatch.delitem(sys.modules, "mine")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("ew.register_layer('conv')(object)", "there is a layer named 'conv' already"),
        ("ew.register_task('regression')(object)", "there is a task named 'regression' already"),
        ("ew.register_featurizer('rich')(object)", "there is a featuriser named 'rich' already"),
        ("ew.register_unit('node')(object)", "there is a unit named 'node' already"),
        ("ew.register_dataset('cora', object)", "there is a data set named 'cora' already"),
        (
            "ew.register_dataset('four_nodes', object)",
            "there is a data set named 'four_nodes' already",
        ),
        (
            "ew.register_dataset('mine', object, unit='atom')",
            "the data set 'mine' has the unit 'atom'; choose one of node, edge, graph",
        ),
        (
            "ew.register_layer('sum_of_neighbours')(object)",
            "there is a layer named 'sum_of_neighbours' already; choose another name",
        ),
    ],
)
def test_a_name_that_is_taken_is_refused(plugin, line, sentence):
    load_plugins([str(plugin)])
    other = plugin.with_name("other.py")
    other.write_text(f"import edgewise as ew\n{line}\n")
    with pytest.raises(EdgewiseError, match=rf"the plugin .*other\.py failed: {sentence}"):
        load_plugins([str(other)])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("def broken(:", r"cannot be imported \(SyntaxError: .*\); correct it"),
        ("import nowhere_at_all", r"\(ModuleNotFoundError: No module named 'nowhere_at_all'\)"),
        ("raise ValueError('two\\nlines')", r"\(ValueError: two\); correct it"),
        ("raise ValueError", r"\(ValueError.*\); correct it"),
    ],
)
def test_a_broken_plugin_is_one_sentence(plugin, content, sentence):
    plugin.write_text(content)
    for _ in range(2):  # a failure is not remembered as a success
        with pytest.raises(EdgewiseError, match=sentence) as caught:
            load_plugins([str(plugin)])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["nowhere.py", "nowhere_at_all"])
def test_a_plugin_that_is_not_there_is_one_sentence(place):
    with pytest.raises(EdgewiseError, match=r"the plugin nowhere.*check its name"):
        load_plugins([place])


@pytest.mark.parametrize("registry", [LAYERS, TASKS, FEATURIZERS, UNITS])
def test_an_unknown_name_says_which_there_are_and_how_to_add_one(registry):
    with pytest.raises(EdgewiseError, match=rf"no {registry.what} 'mine'.*with --plugin") as caught:
        registry["mine"]
    assert all(name in str(caught.value) for name in registry)


def test_a_model_with_an_unknown_layer_names_the_plugin_flag(plugin, tmp_path):
    load_plugins([str(plugin)])
    model, _ = trained("four_nodes", layer="sum_of_neighbours", epochs=1, split="1,0,0")
    model.save(tmp_path)
    del LAYERS._things["sum_of_neighbours"]
    with pytest.raises(EdgewiseError, match=r"'sum_of_neighbours' is unknown.*with --plugin"):
        load_model(tmp_path)


def test_what_is_built_in_is_imported_when_it_is_asked_for():
    registry = Registry("thing", {"ordered": "collections:OrderedDict", "gone": "nowhere:Nothing"})
    assert registry["ordered"] is __import__("collections").OrderedDict
    assert list(registry) == ["ordered", "gone"]
    assert "ordered" in registry
    assert "mine" not in registry
    assert ew.register_layer.__self__ is LAYERS
