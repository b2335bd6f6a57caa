"""Estimators are made as scikit-learn's are: every knob is a parameter, and fit looks at them."""

import inspect
import re
from dataclasses import fields

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks
from toys import CARBONS, ESTIMATORS, SMILES

from edgewise import MoleculeRegressor, NodeClassifier, Recipe, make_recipe
from edgewise.core.errors import EdgewiseError


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_knob_of_model_and_training_is_a_parameter(estimator):
    parameters = inspect.signature(estimator).parameters
    knobs = [k.name for k in fields(Recipe) if k.metadata["group"] in ("model", "training")]
    own = {"preset", "validation_fraction"}
    own |= {"graph"} if estimator._kind == "nodes" else {"invalid"}
    assert set(parameters) == {*knobs, *own}
    assert all(parameters[name].default is None for name in knobs)
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
    assert model.fitted_.recipe == make_recipe("molecules", "paper", epochs=1, depth=1)


def test_the_repr_shows_what_was_changed(graph):
    assert repr(NodeClassifier(hidden=8, seed=1)) == "NodeClassifier(hidden=8, seed=1)"
    assert "graph=Graph(nodes=24, edges=48" in repr(NodeClassifier(graph=graph))
    assert "NodeClassifier" in NodeClassifier(graph=graph)._repr_html_()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hidden": 0}, "hidden = 0 is out of range"),
        ({"hidden": "many"}, "hidden = 'many' is not a whole number"),
        ({"layer": "magic"}, "layer = 'magic' is not known; choose one of conv, attention"),
        ({"preset": "best"}, "there is no preset 'best'; choose one of default, paper"),
        ({"directed": True}, "bonds have no direction"),
        ({"weighted": True}, "a regression has no classes to weigh"),
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
    model = estimator(graph=graph) if estimator._kind == "nodes" else estimator()
    with pytest.raises(NotFittedError):
        model.predict([0])
    with pytest.raises(NotFittedError):
        model.save("nowhere")
