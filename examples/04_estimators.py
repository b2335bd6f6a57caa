"""Estimators: molecules and nodes with the API of scikit-learn."""

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV, cross_val_score

import edgewise as ew

# Molecules: X is SMILES or RDKit molecules, in any list or column.
groups = {"O": "alcohol", "N": "amine", "Cl": "chloride", "C=O": "aldehyde"}
chains = ["C", "CC", "CCC", "CCCC", "CC(C)C", "CCCCC", "CC(C)CC", "CCC(C)C", "CC1CC1", "CC1CCCC1"]
smiles = np.array([chain + group for chain in chains for group in groups])
family = np.array([name for _ in chains for name in groups.values()])
carbons = np.array([text.count("C") - text.count("Cl") for text in smiles])

train = np.arange(len(smiles)) % 3 > 0
regressor = ew.MoleculeRegressor(epochs=60, learning_rate=0.01, validation_fraction=0)
regressor.fit(smiles[train], carbons[train])
print(regressor.score(smiles[~train], carbons[~train]) > 0.8)  # True

classifier = ew.MoleculeClassifier(epochs=30, learning_rate=0.01)
search = GridSearchCV(classifier, {"hidden": [4, 16]}, cv=2).fit(smiles, family)
print(search.predict(["CCCCCCN", "CCCCCCO"]))  # ['amine' 'alcohol']

# Nodes: X is node numbers; the graph is a parameter, and shared by all folds.
generator = np.random.default_rng(0)
side = np.repeat(["left", "right"], 30)
edges = generator.integers(0, 30, size=(2, 200)) + 30 * generator.integers(0, 2, size=200)
graph = ew.Graph(torch.eye(60), torch.from_numpy(np.unique(edges, axis=1)))
nodes = ew.NodeClassifier(graph=graph, epochs=20, hidden=16)
print(cross_val_score(nodes, np.arange(60), side, cv=3).mean() > 0.9)  # True

# Seven nodes are labelled; of the others, fit sees features and edges alone.
nodes.fit([0, 1, 2, 3, 57, 58, 59], ["left"] * 4 + ["right"] * 3)
print(nodes.predict([20, 40]), nodes.predict_proba([20, 40]).shape)  # ['left' 'right'] (2, 2)
