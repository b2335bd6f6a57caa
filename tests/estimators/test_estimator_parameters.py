"""Estimators are made as scikit-learn's are: settings are parameters, and fit looks at them."""

import inspect
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks
from toys import CARBONS, ESTIMATORS, OF_A_GRAPH, SMILES

from edgewise import MoleculeRegressor, NodeClassifier, make_settings
from edgewise.core.errors import EdgewiseError
from edgewise.core.settings import PART_OF


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_setting_of_model_and_training_is_a_parameter(estimator):
    parameters = inspect.signature(estimator).parameters
    settings = [name for name, part in PART_OF.items() if part in ("model", "training")]
    own = {"preset", "validation_fraction"}
    own |= {"Molecule": {"invalid"}, "Graph": {"missing"}}.get(estimator._kind, {"graph"})
    assert set(parameters) == {*settings, *own}
    assert all(parameters[name].default is None for name in settings)
    assert all(f"\n        {name}: " in estimator.__doc__ for name in parameters)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    "check",
    [
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_the_checks_of_scikit_learn_that_need_no_float_matrix_pass(estimator, check):
    getattr(estimator_checks, check)(estimator.__name__, estimator())


def test_a_parameter_that_does_not_exist_is_refused_at_once():
    with pytest.raises(TypeError, match="unexpected keyword argument 'hiden'"):
        MoleculeRegressor(hiden=3)


def test_what_is_not_given_is_as_the_preset_says():
    model = MoleculeRegressor(preset="paper", epochs=1, depth=np.int64(1)).fit(SMILES, CARBONS)
    wanted = make_settings("graph", "paper", implied={"directed": False}, epochs=1, depth=1)
    assert model.fitted_.settings == wanted


def test_the_repr_shows_what_was_changed(graph):
    assert repr(NodeClassifier(hidden=8, seed=1)) == "NodeClassifier(hidden=8, seed=1)"
    assert "graph=Graph(nodes=24, edges=48" in repr(NodeClassifier(graph=graph))
    assert "NodeClassifier" in NodeClassifier(graph=graph)._repr_html_()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hidden": 0}, "hidden = 0 is out of range"),
        ({"hidden": "many"}, "hidden = 'many' is not a whole number"),
        ({"layer": "magic"}, "layer = 'magic' is unknown; choose one of conv, attention"),
        ({"heads": 2}, "[heads] does not apply here: the layer is gated"),
        ({"device": "tpu"}, "the device 'tpu' is unavailable here; choose one of"),
        ({"preset": "best"}, "there is no preset 'best'; choose one of default, fast, paper"),
        ({"directed": True}, "[directed] does not apply here: this is a MoleculeRegressor"),
        ({"weighted": True}, "[weighted] does not apply here: this is regression of [y]"),
        ({"validation_fraction": 1.5}, "validation_fraction = 1.5 is not a share"),
        ({"invalid": "skip"}, "invalid = 'skip' is not known; choose error or nan"),
    ],
)
def test_a_wrong_value_waits_until_fit_and_is_a_sentence(settings, sentence):
    model = MoleculeRegressor(**settings)
    with pytest.raises(EdgewiseError, match=re.escape(sentence)):
        model.fit(SMILES, CARBONS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_predicting_before_fitting_is_refused(estimator, graph):
    model = estimator(graph=graph) if estimator in OF_A_GRAPH else estimator()
    with pytest.raises(NotFittedError):
        model.predict([0])
    with pytest.raises(NotFittedError):
        model.save("nowhere")
