"""Data that cannot be learnt from are one sentence."""

import re

import numpy as np
import pandas as pd
import pytest
from toys import CARBONS, FAMILY, QUICK, SMILES, bits

from edgewise import MoleculeClassifier, MoleculeRegressor, NodeClassifier
from edgewise.core.errors import EdgewiseError


def test_a_molecule_that_cannot_be_read_is_named_when_fitting():
    for invalid in ("error", "nan"):
        model = MoleculeRegressor(**QUICK, invalid=invalid)
        with pytest.raises(EdgewiseError, match=r"X, row 2: 'CC\(C' cannot be read \(not a SMILES"):
            model.fit(["CC", "CCC", "CC(C"], [1, 2, 3])
        with pytest.raises(EdgewiseError, match=r"the X of validation, row 1: '' .*no SMILES"):
            model.fit(["CC", "CCC"], [1, 2], validation=(["C", None], [1, 2]))


@pytest.mark.slow
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
