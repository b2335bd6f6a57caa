"""Estimators work inside scikit-learn: clones, cross-validation, grid search, pipelines."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from toys import CARBONS, FAMILY, LEARN, NODES, QUICK, RING, SMILES, bits

from edgewise import MoleculeClassifier, MoleculeRegressor, NodeClassifier


def test_a_clone_keeps_the_parameters_and_shares_the_graph(graph):
    model = NodeClassifier(graph=graph, hidden=5, epochs=2).fit(NODES, RING)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.graph is graph
    assert model.graph is graph
    assert not hasattr(copy, "fitted_")


@pytest.mark.slow
def test_cross_validation_knows_classifiers_and_regressors(graph):
    assert is_classifier(NodeClassifier())
    assert is_classifier(MoleculeClassifier())
    assert is_regressor(MoleculeRegressor())
    model = NodeClassifier(graph=graph, **LEARN).set_params(epochs=20)
    scores = cross_val_score(model, NODES, RING, cv=3)
    assert scores.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_grid_search_finds_a_setting(graph):
    grid = {"hidden": np.array([2, 8]), "epochs": [1, 20]}
    model = NodeClassifier(graph=graph, dropout=0.0, learning_rate=0.02)
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(NODES, RING)
    assert search.best_params_["epochs"] == 20
    assert search.best_estimator_.graph is graph
    assert search.predict(NODES).shape == (24,)


@pytest.mark.slow
def test_a_pipeline_ends_with_an_estimator(graph):
    strip = FunctionTransformer(lambda X: [text.strip() for text in X])
    pipeline = make_pipeline(strip, MoleculeRegressor(**QUICK))
    pipeline.fit([f" {text} " for text in SMILES], CARBONS)
    plain = MoleculeRegressor(**QUICK).fit(SMILES, CARBONS)
    assert bits(pipeline.predict(SMILES)) == bits(plain.predict(SMILES))
    pipeline.set_params(moleculeregressor__hidden=6).fit(SMILES, CARBONS)
    assert pipeline[-1].fitted_.settings.model.hidden == 6
    nodes = make_pipeline(FunctionTransformer(), NodeClassifier(graph=graph, **QUICK))
    assert 0 <= cross_val_score(nodes, NODES[:, None], RING, cv=2).mean() <= 1


def test_fit_leaves_parameters_and_arguments_alone(graph):
    model = NodeClassifier(graph=graph, **QUICK)
    X, y, before = NODES.copy(), RING.copy(), model.get_params()
    model.fit(X, y)
    assert model.get_params() == before
    assert np.array_equal(X, NODES)
    assert np.array_equal(y, RING)
