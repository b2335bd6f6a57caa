"""Estimators do as scikit-learn's do, and learn what the command line learns, bit for bit."""

import csv
import inspect
import json
import math
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from edgewise import (
    Graph,
    MoleculeClassifier,
    MoleculeRegressor,
    NodeClassifier,
    NodeRegressor,
    Recipe,
    make_recipe,
    set_num_threads,
)
from edgewise.data.sources import find_source
from edgewise.errors import EdgewiseError
from edgewise.problems import open_problem
from edgewise.runs import start_run, train_run

ROOT = Path(__file__).parents[1]
ESTIMATORS = [NodeClassifier, NodeRegressor, MoleculeClassifier, MoleculeRegressor]
QUICK = {"epochs": 3, "hidden": 4}
LEARN = {"epochs": 60, "hidden": 16, "dropout": 0.0, "learning_rate": 0.01, "weight_decay": 0.0}

SMILES = [
    *("CO", "CCO", "CCCO", "CCCCO", "CC(C)O", "OCCO", "CN", "CCN", "CCCN", "CC(C)N", "NCCN"),
    *("CCCCN", "c1ccccc1", "Cc1ccccc1", "Oc1ccccc1", "Nc1ccccc1", "C1CCCCC1", "OC1CCCCC1"),
    *("CC(=O)O", "CC=O", "C=C", "CC#N", "CCl", "CCCl"),
]
CARBONS = np.array([float(sum(c in "Cc" for c in text.replace("Cl", ""))) for text in SMILES])
FAMILY = np.array(["amine" if "N" in text else "other" for text in SMILES])
ROWS = np.arange(len(SMILES))


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Threads would spend more on waiting for each other than such small work takes."""
    before = torch.get_num_threads()
    set_num_threads(1)
    yield
    set_num_threads(before)


@pytest.fixture(scope="module")
def graph():
    """Two rings of papers that cite only among themselves; the first feature tells them apart."""
    generator = torch.Generator().manual_seed(0)
    ring = torch.arange(12)
    ahead = [torch.stack([ring, (ring + step) % 12]) for step in (1, 2)]
    edges = torch.cat([edge + first for first in (0, 12) for edge in ahead], dim=1)
    x = torch.rand(24, 6, generator=generator)
    x[:12, 0] += 1
    return Graph(
        x,
        edges,
        torch.rand(edges.size(1), 2, generator=generator) + 0.5,
        node_ids=tuple(f"paper {i}" for i in range(24)),
    )


NODES = np.arange(24)
RING = np.where(NODES < 12, "first", "second")


def bits(values):
    return np.asarray(values).tobytes()


# The constructor


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


# Learning


def test_nodes_are_classified(graph):
    model = NodeClassifier(graph=graph, **LEARN).fit(NODES, RING)
    assert model.score(NODES, RING) == model.score(NODES[:, None], RING[:, None]) == 1.0
    assert model.classes_.tolist() == ["first", "second"]
    assert model.predict_proba(NODES).shape == (24, 2)
    assert np.allclose(model.predict_proba(NODES).sum(axis=1), 1)
    assert [epoch.number for epoch in model.history_[:3]] == [1, 2, 3]


def test_nodes_get_values(graph):
    value = np.where(NODES < 12, -5.0, 20.0)
    model = NodeRegressor(graph=graph, **LEARN).fit(NODES, value)
    assert model.predict(NODES).shape == (24,)
    assert model.score(NODES, value) > 0.95
    columns = NodeRegressor(graph=graph, **QUICK).fit(NODES, value[:, None])
    assert columns.predict(NODES).shape == (24, 1)


def test_molecules_get_values():
    model = MoleculeRegressor(**LEARN, validation_fraction=0).fit(SMILES, CARBONS)
    assert model.score(SMILES, CARBONS) > 0.95
    assert model.predict(SMILES).shape == CARBONS.shape


def test_molecules_are_classified():
    model = MoleculeClassifier(**LEARN, validation_fraction=0).fit(SMILES, FAMILY)
    assert model.score(SMILES, FAMILY) == 1.0
    assert model.classes_.tolist() == ["amine", "other"]


def test_several_yes_or_no_labels_with_gaps_are_learnt():
    y = np.stack([FAMILY == "amine", CARBONS > 3], axis=1).astype(float)
    y[:4, 1] = y[4:8, 0] = np.nan
    model = MoleculeClassifier(**LEARN, validation_fraction=0).fit(SMILES, y)
    assert model.score(SMILES, y) == 1.0
    probability, label = model.predict_proba(SMILES), model.predict(SMILES)
    assert probability.shape == label.shape == y.shape
    assert np.array_equal(label, probability > 0.5)
    assert [classes.tolist() for classes in model.classes_] == [[0, 1], [0, 1]]


def test_several_values_with_gaps_are_learnt():
    y = np.stack([CARBONS, (FAMILY == "amine") * 100.0], axis=1)
    y[::5, 0] = np.nan
    model = MoleculeRegressor(**LEARN, validation_fraction=0).fit(SMILES, y)
    assert model.predict(SMILES).shape == y.shape
    assert model.score(SMILES, y) > 0.9


@pytest.mark.parametrize(
    "labels", [NODES // 12, NODES // 12 * 2 - 1, NODES < 12, (NODES // 12).astype(float)]
)
def test_labels_come_back_as_they_were_given(graph, labels, tmp_path):
    model = NodeClassifier(graph=graph, **QUICK).fit(NODES, labels)
    assert np.array_equal(model.classes_, np.unique(labels))
    assert model.predict(NODES).dtype == labels.dtype
    model.save(tmp_path)
    again = NodeClassifier.load(tmp_path, graph=graph)
    assert np.array_equal(again.predict(), model.predict())
    assert again.predict().dtype == labels.dtype


# What is seen


def test_labels_of_nodes_outside_x_are_never_seen(graph):
    chosen = NODES[::2]
    results = []
    for y in (torch.zeros(24).long(), torch.arange(24) // 12, torch.arange(24) % 5):
        model = NodeClassifier(graph=replace(graph, y=y), **QUICK).fit(chosen, RING[chosen])
        results.append(bits(model.predict_proba(NODES)))
    assert results[0] == results[1] == results[2]


def test_the_order_of_nodes_changes_nothing(graph):
    order = np.random.default_rng(0).permutation(24)
    one = NodeClassifier(graph=graph, **QUICK).fit(NODES, RING)
    other = NodeClassifier(graph=graph, **QUICK).fit(order, RING[order])
    assert bits(one.predict_proba(NODES)) == bits(other.predict_proba(NODES))


def test_the_same_seed_repeats_itself_and_another_does_not():
    one, two, other = (
        MoleculeRegressor(**QUICK, seed=seed).fit(SMILES, CARBONS) for seed in (3, 3, 4)
    )
    assert bits(one.predict(SMILES)) == bits(two.predict(SMILES))
    assert bits(one.predict(SMILES)) != bits(other.predict(SMILES))


def test_without_x_and_y_the_labels_of_the_graph_are_learnt(graph):
    y = torch.arange(24) // 12
    y[3:6] = -1
    labelled = replace(graph, y=y, class_names=("first", "second"))
    known = (y >= 0).nonzero()[:, 0].numpy()
    one = NodeClassifier(graph=labelled, **QUICK).fit()
    other = NodeClassifier(graph=graph, **QUICK).fit(known, RING[known])
    assert bits(one.predict_proba()) == bits(other.predict_proba())


def test_nodes_are_named_by_number_or_id(graph):
    model = NodeClassifier(graph=graph, **QUICK).fit([f"paper {i}" for i in NODES], RING)
    number = model.predict_proba([3, 20])
    assert bits(number) == bits(model.predict_proba(["paper 3", "paper 20"]))
    assert bits(number) == bits(model.predict_proba(np.array([[3], [20]])))
    assert bits(number) == bits(model.predict_proba(pd.Series([3, 20], dtype=object)))


def test_another_graph_with_the_same_columns_is_predicted(graph):
    model = NodeClassifier(graph=graph, **QUICK).fit(NODES, RING)
    part = Graph(graph.x[:12], graph.edge_index[:, :24], graph.channels[:24])
    assert np.allclose(model.predict_proba(graph=part), model.predict_proba(NODES[:12]), atol=1e-6)
    assert model.predict([0, 1], graph=part).shape == (2,)
    with pytest.raises(EdgewiseError, match="give the same columns"):
        model.predict(graph=Graph(graph.x[:, :3], graph.edge_index, graph.channels))


def test_a_validation_part_is_held_out_with_the_shares_of_the_classes(graph):
    y = np.where(NODES < 4, "rare", "frequent")
    seen = []

    class Watched(NodeClassifier):
        def _fit_problem(self, problem, recipe, target):
            seen.append(problem.split)
            return super()._fit_problem(problem, recipe, target)

    Watched(graph=graph, **QUICK, validation_fraction=0.25).fit(NODES, y)
    Watched(graph=graph, **QUICK, validation_fraction=0).fit(NODES, y)
    Watched(graph=graph, **QUICK, validation_fraction=0.01).fit(NODES, y)
    assert (y[seen[0].validation] == "rare").sum() == 1
    assert [len(split.validation) for split in seen] == [6, 0, 1]
    assert [len(split.train) for split in seen] == [18, 24, 23]


def test_without_validation_all_epochs_are_trained():
    model = MoleculeRegressor(epochs=7, patience=1, hidden=4, validation_fraction=0)
    assert len(model.fit(SMILES, CARBONS).history_) == 7


def test_rows_without_a_target_are_left_out(graph):
    y = RING.astype(object)
    y[2], y[3], y[4] = None, np.nan, pd.NA
    known = np.delete(NODES, [2, 3, 4])
    one = NodeClassifier(graph=graph, **QUICK).fit(NODES, y)
    other = NodeClassifier(graph=graph, **QUICK).fit(known, RING[known])
    assert bits(one.predict_proba()) == bits(other.predict_proba())
    assert one.score(NODES, y) == other.score(known, RING[known])


def test_labels_with_gaps_can_be_scored_whatever_they_are(graph):
    y = RING.astype(object)
    numbers = np.array([None if i == 2 else int(label == y[0]) for i, label in enumerate(y)])
    model = NodeClassifier(graph=graph, **QUICK).fit(NODES, numbers)
    known = np.delete(NODES, 2)
    expected = np.mean(model.predict(known) == numbers[known].astype(int))
    assert expected > 0
    for labels in (numbers, pd.Series(numbers, dtype="Int64")):
        assert model.score(NODES, labels) == expected


def test_a_target_without_values_does_not_spoil_the_score():
    y = np.stack([CARBONS, CARBONS], axis=1).astype(float)
    model = MoleculeRegressor(**QUICK).fit(SMILES, y)
    one = y.copy()
    one[:, 1] = np.nan
    assert model.score(SMILES, one) == r2_score(y[:, 0], model.predict(SMILES)[:, 0])
    assert math.isnan(model.score(SMILES[:1], y[:1]))


def test_molecules_come_as_smiles_or_rdkit_molecules_in_any_container():
    model = MoleculeRegressor(**QUICK).fit(pd.Series(SMILES), pd.Series(CARBONS, name="carbons"))
    assert model.fitted_.task.names == ("carbons",)
    expected = model.predict(["CCO", "CN"])
    molecules = [Chem.MolFromSmiles("CCO"), "CN"]
    for X in (molecules, np.array(molecules, dtype=object), np.array([["CCO"], ["CN"]])):
        assert np.array_equal(model.predict(X), expected)
    assert np.array_equal(model.predict(pd.DataFrame({"smiles": ["CCO", "CN"]})), expected)


# Mistakes


def test_a_molecule_that_cannot_be_read_is_named_when_fitting():
    for invalid in ("error", "nan"):
        model = MoleculeRegressor(**QUICK, invalid=invalid)
        with pytest.raises(EdgewiseError, match=r"X, row 2: 'CC\(C' cannot be read \(not a SMILES"):
            model.fit(["CC", "CCC", "CC(C"], [1, 2, 3])
        with pytest.raises(EdgewiseError, match=r"the X of validation, row 1: '' .*no SMILES"):
            model.fit(["CC", "CCC"], [1, 2], validation=(["C", None], [1, 2]))


def test_a_molecule_that_cannot_be_read_is_an_error_or_nan_when_predicting():
    X = ["CC(C", "CC", pd.NA]
    assert np.isnan(MoleculeRegressor(**QUICK, invalid="nan").fit(SMILES, CARBONS).predict(X[:1]))
    model = MoleculeRegressor(**QUICK).fit(SMILES, CARBONS)
    with pytest.raises(EdgewiseError, match=r"X, row 0.*nor can 1 more.*invalid='nan'"):
        model.predict(X)
    predicted = model.set_params(invalid="nan").predict(X)
    assert np.isnan(predicted).tolist() == [True, False, True]
    assert bits(predicted[1:2]) == bits(model.predict(["CC"]))
    assert np.isfinite(model.score([*X, "CCC"], [1, 2, 3, 3]))
    classifier = MoleculeClassifier(**QUICK, invalid="nan").fit(SMILES, FAMILY)
    assert np.isnan(classifier.predict_proba(X)).all(axis=1).tolist() == [True, False, True]
    with pytest.raises(EdgewiseError, match="row 0"):
        classifier.predict(X)


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        ("CCO", [1.0], "X is one string; give a list"),
        ([["CC", "CO"]], [1.0], r"X is of shape [1, 2]"),
        (["CC", 7], [1.0, 2.0], "row 1 of X is 7"),
        (["CC", "CO"], [1.0], "X has 2 row(s), but its y has the shape [1]"),
        (["CC", "CO"], None, "there is no y for the 2 row(s) of X"),
        (["CC", "CO"], ["low", "high"], "y does not consist of numbers"),
        (["CC", "CO"], [1.0, np.inf], "y is infinite in row(s) [1]"),
        (["CC", "CO"], [[1.0, np.nan], [2.0, np.nan]], "nothing is known of the target(s) [y1]"),
        ([], [], "y has the shape [0]"),
    ],
)
def test_molecules_that_cannot_be_learnt_from_are_a_sentence(X, y, sentence):
    with pytest.raises(EdgewiseError, match=re.escape(sentence)):
        MoleculeRegressor(**QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([0.5, 1.5], "which are values, not classes; use a regressor"),
        (["a", "a"], "y holds the class(es) [a], and there is nothing to tell apart"),
        (["a", 1], "the labels in y are words and others, such as 1"),
        ([[0, 1], [2, 1]], "y[1, 0] is 2, expected 0, 1 or NaN"),
        ([1j, 2j], "the labels in y are complex128"),
    ],
)
def test_labels_that_are_none_are_a_sentence(y, sentence):
    y = np.array(y, dtype=object)
    with pytest.raises(EdgewiseError, match=re.escape(sentence)):
        MoleculeClassifier(**QUICK).fit(["CC", "CO"], y)


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        ([0, 24], ["a", "b"], "X names node(s) [24], but the graph has the nodes 0 to 23"),
        (["paper 0", "book"], ["a", "b"], "the graph has no node called [book]"),
        ([0.0, 1.0], ["a", "b"], "X holds float64; give node numbers"),
        ([0, "paper 1"], ["a", "b"], "the nodes in X are words and others, such as 0"),
        ([[0, 1]], ["a"], "X has the shape [1, 2]"),
        ([3, 3], ["a", "b"], "node(s) [3] are given more than once"),
        ([0, 1], [["a", "b"], ["a", "b"]], "y has 2 columns, but nodes have one target"),
        (None, None, "the graph has no y, and fit was given none"),
    ],
)
def test_nodes_that_cannot_be_learnt_from_are_a_sentence(graph, X, y, sentence):
    X = np.array(X, dtype=object) if X is not None else None
    with pytest.raises(EdgewiseError, match=re.escape(sentence)):
        NodeClassifier(graph=graph, **QUICK).fit(X, y)


def test_a_validation_that_is_none_is_a_sentence(graph):
    model = NodeClassifier(graph=graph, **QUICK)
    with pytest.raises(EdgewiseError, match="validation is not a pair"):
        model.fit([0, 20], ["a", "b"], validation=[1])
    with pytest.raises(EdgewiseError, match="nothing is known of the rows in validation"):
        model.fit([0, 20], ["a", "b"], validation=([1], [None]))
    with pytest.raises(EdgewiseError, match="in training and validation; give both"):
        model.fit([0, 20], ["a", "b"], validation=([1], [["a"]]))


def test_a_graph_that_is_none_is_a_sentence():
    with pytest.raises(EdgewiseError, match=r"graph is missing; give an edgewise\.Graph"):
        NodeClassifier().fit([0], ["a"])
    with pytest.raises(EdgewiseError, match="graph is a dict"):
        NodeClassifier(graph={}).fit([0], ["a"])


# Inside scikit-learn


def test_a_clone_keeps_the_parameters_and_shares_the_graph(graph):
    model = NodeClassifier(graph=graph, hidden=5, epochs=2).fit(NODES, RING)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.graph is graph
    assert model.graph is graph
    assert not hasattr(copy, "fitted_")


def test_cross_validation_knows_classifiers_and_regressors(graph):
    assert is_classifier(NodeClassifier())
    assert is_classifier(MoleculeClassifier())
    assert is_regressor(MoleculeRegressor())
    model = NodeClassifier(graph=graph, **LEARN).set_params(epochs=20)
    scores = cross_val_score(model, NODES, RING, cv=3)
    assert scores.tolist() == [1.0, 1.0, 1.0]


def test_cross_validation_of_molecules_takes_the_usual_scorers():
    binary = (FAMILY == "amine").astype(int)
    for model, y, scoring in (
        (MoleculeClassifier(**QUICK), binary, "roc_auc"),
        (MoleculeClassifier(**QUICK), FAMILY, "neg_log_loss"),
        (MoleculeRegressor(**QUICK), CARBONS, "neg_root_mean_squared_error"),
    ):
        scores = cross_val_score(model, SMILES, y, cv=2, scoring=scoring, error_score="raise")
        assert np.isfinite(scores).all()


def test_cross_validation_of_labels_with_gaps_needs_folds_without_classes():
    y = np.stack([FAMILY == "amine", CARBONS > 3], axis=1).astype(float)
    y[0, 0] = np.nan
    folds = KFold(2, shuffle=True, random_state=0)
    scores = cross_val_score(MoleculeClassifier(**QUICK), SMILES, y, cv=folds, error_score="raise")
    assert ((scores >= 0) & (scores <= 1)).all()


def test_a_grid_search_finds_a_setting(graph):
    grid = {"hidden": np.array([2, 8]), "epochs": [1, 20]}
    model = NodeClassifier(graph=graph, dropout=0.0, learning_rate=0.02)
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(NODES, RING)
    assert search.best_params_["epochs"] == 20
    assert search.best_estimator_.graph is graph
    assert search.predict(NODES).shape == (24,)


def test_a_pipeline_ends_with_an_estimator(graph):
    strip = FunctionTransformer(lambda X: [text.strip() for text in X])
    pipeline = make_pipeline(strip, MoleculeRegressor(**QUICK))
    pipeline.fit([f" {text} " for text in SMILES], CARBONS)
    plain = MoleculeRegressor(**QUICK).fit(SMILES, CARBONS)
    assert bits(pipeline.predict(SMILES)) == bits(plain.predict(SMILES))
    pipeline.set_params(moleculeregressor__hidden=6).fit(SMILES, CARBONS)
    assert pipeline[-1].fitted_.recipe.hidden == 6
    nodes = make_pipeline(FunctionTransformer(), NodeClassifier(graph=graph, **QUICK))
    assert 0 <= cross_val_score(nodes, NODES[:, None], RING, cv=2).mean() <= 1


def test_fit_leaves_parameters_and_arguments_alone(graph):
    model = NodeClassifier(graph=graph, **QUICK)
    X, y, before = NODES.copy(), RING.copy(), model.get_params()
    model.fit(X, y)
    assert model.get_params() == before
    assert np.array_equal(X, NODES)
    assert np.array_equal(y, RING)


# Folders


def test_a_saved_estimator_predicts_the_same_bits_in_a_new_process(graph, tmp_path):
    model = MoleculeRegressor(**QUICK, ensemble=2, validation_fraction=0.3).fit(SMILES, CARBONS)
    model.save(tmp_path)
    program = (
        "import edgewise\n"
        "edgewise.set_num_threads(1)\n"
        f"model = edgewise.MoleculeRegressor.load({str(tmp_path)!r})\n"
        f"print(model.predict({SMILES!r}).tobytes().hex())\n"
        "print({k: v for k, v in model.get_params().items() if v is not None})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    predicted, parameters = done.stdout.splitlines()
    assert predicted == bits(model.predict(SMILES)).hex()
    assert parameters == str({k: v for k, v in model.get_params().items() if v is not None})


def test_a_model_of_another_sort_is_refused(graph, tmp_path):
    MoleculeRegressor(**QUICK).fit(SMILES, CARBONS).save(tmp_path / "values")
    NodeClassifier(graph=graph, **QUICK).fit(NODES, RING).save(tmp_path / "nodes")
    with pytest.raises(EdgewiseError, match=r"no NodeClassifier; load it with MoleculeRegressor"):
        NodeClassifier.load(tmp_path / "values")
    with pytest.raises(EdgewiseError, match=r"no MoleculeClassifier; load it with MoleculeRegr"):
        MoleculeClassifier.load(tmp_path / "values")
    with pytest.raises(EdgewiseError, match=r"model for nodes \(classification of y into 2 cl"):
        MoleculeClassifier.load(tmp_path / "nodes")
    with pytest.raises(EdgewiseError, match="graph is missing"):
        NodeClassifier.load(tmp_path / "nodes").predict()
    with pytest.raises(EdgewiseError, match="holds no model"):
        NodeClassifier.load(tmp_path)


def test_a_damaged_folder_is_refused(graph, tmp_path):
    NodeClassifier(graph=graph, **QUICK).fit(NODES, RING).save(tmp_path)
    path = tmp_path / "estimator.json"
    content = json.loads(path.read_text())
    for damage, sentence in (
        ("{", "estimator.json cannot be used"),
        (json.dumps({**content, "format": "other"}), "it says 'other'"),
        (json.dumps({**content, "classes": ["first", "third"]}), "classes are not those of"),
        (json.dumps({**content, "parameters": {"hiden": 3}}), "does not fit NodeClassifier"),
    ):
        path.write_text(damage)
        with pytest.raises(EdgewiseError, match=re.escape(sentence)):
            NodeClassifier.load(tmp_path, graph=graph)


# The command line


def molecule_run(tmp_path, columns, **settings):
    """A run on a file whose rows train, validate and test by turns, and its predictions."""
    parts = ["train", "train", "test", "validation"] * 6
    path = tmp_path / "molecules.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["smiles", "part", *columns])
        for row, text in enumerate(SMILES):
            cells = (column[row] for column in columns.values())
            writer.writerow([text, parts[row], *("" if c != c else c for c in cells)])
    recipe = make_recipe("molecules", target=tuple(columns), split_column="part", **settings)
    run = start_run(tmp_path / "run", find_source([str(path)]), recipe, "default", "edgewise train")
    opened = open_problem(run.source, recipe)
    predicted = train_run(run, opened).predict_problem(opened.problem).mean
    return np.array(parts), predicted


def one_gap_in_five(values):
    values = np.array(values, dtype=float)
    values[::5] = np.nan
    return values


@pytest.mark.parametrize(
    ("estimator", "columns", "settings"),
    [
        (MoleculeRegressor, {"carbons": CARBONS + 0.1}, {"ensemble": 2}),
        (
            MoleculeRegressor,
            {"carbons": one_gap_in_five(CARBONS + 0.1), "length": np.arange(24) ** 1.5},
            {"layer": "attention"},
        ),
        (MoleculeClassifier, {"family": FAMILY}, {"weighted": True, "task": "classification"}),
        (
            MoleculeClassifier,
            {"amine": one_gap_in_five(FAMILY == "amine"), "long": (CARBONS > 3).astype(float)},
            {"seed": 5},
        ),
    ],
)
def test_molecules_give_the_bits_of_the_command_line(estimator, columns, settings, tmp_path):
    shared = {"epochs": 6, "hidden": 5, "patience": 2, "batch_size": 5, "dropout": 0.1, **settings}
    part, expected = molecule_run(tmp_path, columns, **shared)
    y = np.stack(list(columns.values()), axis=1)
    y = y[:, 0] if len(columns) == 1 else y
    shared.pop("task", None)
    model = estimator(**shared)
    train, stop = (part == "train"), (part == "validation")
    X = np.array(SMILES)
    model.fit(X[train], y[train], validation=(X[stop], y[stop]))
    predict = model.predict if estimator is MoleculeRegressor else model.predict_proba
    assert bits(predict(SMILES).reshape(24, -1)) == bits(expected)
    loaded = estimator.load(tmp_path / "run")
    again = loaded.predict if estimator is MoleculeRegressor else loaded.predict_proba
    assert bits(again(SMILES)) == bits(predict(SMILES))
    assert loaded.get_params()["hidden"] == 5


@pytest.mark.parametrize("layer", ["conv", "attention"])
def test_nodes_give_the_bits_of_the_command_line(layer, tmp_path):
    parts = np.array(["train", "train", "test", "validation"] * 6)
    rows = [f"{i},{i % 7},{RING[i]},{parts[i]}" for i in NODES]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,age,label,part", *rows, ""]))
    lines = [f"{i},{(i + step) % 24},{i % 3 + 1}" for i in NODES for step in (1, 5)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target,weight", *lines, ""]))
    shared = {"epochs": 6, "hidden": 5, "patience": 2, "layer": layer, "seed": 1}
    recipe = make_recipe("nodes", split_column="part", **shared)
    source = find_source([str(tmp_path / "nodes.csv"), str(tmp_path / "edges.csv")])
    run = start_run(tmp_path / "run", source, recipe, "default", "edgewise train")
    opened = open_problem(source, recipe)
    expected = train_run(run, opened).predict_problem(opened.problem).mean

    train, stop = (np.flatnonzero(parts == name) for name in ("train", "validation"))
    model = NodeClassifier(graph=opened.problem.graph, **shared)
    model.fit(train, RING[train], validation=(stop, RING[stop]))
    assert bits(model.predict_proba()) == bits(expected)
    loaded = NodeClassifier.load(tmp_path / "run", graph=opened.problem.graph)
    assert bits(loaded.predict_proba()) == bits(expected)
    assert loaded.classes_.tolist() == ["first", "second"]


# What is written about them


def promises(text):
    """What the comments behind the calls of print say."""
    return re.findall(r"^\s*print\(.*\)  # (.*)$", text, re.MULTILINE)


def test_the_example_prints_what_its_comments_say(capsys):
    text = (ROOT / "examples" / "04_estimators.py").read_text()
    exec(compile(text, "04_estimators.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == promises(text)
    assert len(text.splitlines()) <= 40


def test_the_snippets_of_the_documentation_print_what_their_comments_say(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "estimators.md").read_text()
    snippets = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    namespace = {"__name__": "__main__"}
    for snippet in snippets:
        exec(compile(snippet, "estimators.md", "exec"), namespace)
    assert capsys.readouterr().out.splitlines() == promises("".join(snippets))
    assert text.count("```") == 2 * len(snippets)
