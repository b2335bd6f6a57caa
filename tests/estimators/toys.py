"""Molecules and settings that are learnt in a moment."""

import numpy as np

from edgewise import (
    EdgeClassifier,
    EdgeRegressor,
    GraphClassifier,
    GraphRegressor,
    MoleculeClassifier,
    MoleculeRegressor,
    NodeClassifier,
    NodeRegressor,
)

OF_A_GRAPH = [NodeClassifier, NodeRegressor, EdgeClassifier, EdgeRegressor]
ESTIMATORS = [
    *OF_A_GRAPH,
    *(MoleculeClassifier, MoleculeRegressor, GraphClassifier, GraphRegressor),
]
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

NODES = np.arange(24)
RING = np.where(NODES < 12, "first", "second")


def bits(values):
    return np.asarray(values).tobytes()
