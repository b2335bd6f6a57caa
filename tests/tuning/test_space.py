"""What is searched: every draw is a network that can be built, and presets are inside."""

import itertools

import optuna
import pytest

from edgewise.core.declarations import ModelSettings
from edgewise.core.presets import PRESETS, make_settings
from edgewise.core.settings import SETTINGS
from edgewise.data.sources import EdgeTableSource, MoleculeFileSource, TablesSource
from edgewise.tasks.classification import Classification
from edgewise.tuning.space import SPACE, Range
from edgewise.units.edge import EDGE
from edgewise.units.graph import GRAPH
from edgewise.units.node import NODE

TASK = Classification(("y",), ("a", "b"))
KINDS = {
    "nodes": (NODE, TablesSource(("nodes.csv", "edges.csv"))),
    "edges": (EDGE, EdgeTableSource(("edges.csv",))),
    "molecules": (GRAPH, MoleculeFileSource(("molecules.csv",))),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_draw_is_settings_that_a_model_can_be_built_from(kind, preset):
    unit, source = KINDS[kind]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    base = make_settings(unit.name, preset, implied=source.implied)
    # What only one layer has is not searched, and neither is the layer.
    kept = {"layer", "normalize", "adapt"} if base.model.normalize == "none" else set()
    kept |= {"adapt"} if "layer" in unit.not_searched else set()
    space = [searched for searched in SPACE if searched.holds(source, unit, TASK)]
    seen = set()
    for _ in range(60):
        trial, settings = study.ask(), base
        for searched in space:
            if searched.holds_now(settings):
                settings = settings.changed(**{searched.name: searched.suggest(trial)})
        unit.network(4, 2, 1, settings)
        model = settings.model
        assert ("adapt" in trial.params) == (model.layer == "attention" and model.depth > 1)
        assert "hidden" in trial.params or (kind, model.depth) == ("nodes", 1)
        seen |= set(trial.params)
    assert seen == {searched.name for searched in space} - kept


def test_what_only_molecules_have_is_searched_for_them_alone():
    names = {
        kind: {searched.name for searched in SPACE if searched.holds(source, unit, TASK)}
        for kind, (unit, source) in KINDS.items()
    }
    assert names["molecules"] - names["nodes"] == {"pooling", "featurizer", "batch_size"}
    assert names["nodes"] <= names["molecules"]


@pytest.mark.parametrize("normalize", ["gcn", "none"])
def test_a_normalisation_that_few_layers_have_keeps_its_layer(normalize):
    layer = next(searched for searched in SPACE if searched.name == "layer")
    assert not layer.when(ModelSettings(normalize=normalize))


def test_the_settings_of_every_preset_are_among_those_searched():
    for searched, preset, (unit, source) in itertools.product(SPACE, PRESETS, KINDS.values()):
        assert searched.name in SETTINGS
        settings = make_settings(unit.name, preset)
        value, among = settings.flat()[searched.name], searched.among
        if searched.holds(source, unit, TASK) and searched.holds_now(settings):
            inside = (
                among.low <= value <= among.high if isinstance(among, Range) else value in among
            )
            assert inside, (searched.name, preset, unit.name)
