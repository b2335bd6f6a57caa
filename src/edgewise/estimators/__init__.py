"""Models with the API of scikit-learn: fit, predict, score, cross-validation, grid search."""

from edgewise.estimators.edges import EdgeClassifier, EdgeRegressor
from edgewise.estimators.graphs import GraphClassifier, GraphRegressor
from edgewise.estimators.links import LinkPredictor
from edgewise.estimators.molecules import MoleculeClassifier, MoleculeRegressor
from edgewise.estimators.nodes import NodeClassifier, NodeRegressor

__all__ = [
    "EdgeClassifier",
    "EdgeRegressor",
    "GraphClassifier",
    "GraphRegressor",
    "LinkPredictor",
    "MoleculeClassifier",
    "MoleculeRegressor",
    "NodeClassifier",
    "NodeRegressor",
]
