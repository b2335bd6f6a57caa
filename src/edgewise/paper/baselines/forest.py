"""Random forests on circular fingerprints, the first baseline of the paper's Table 3."""

from collections.abc import Sequence

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.data.chemistry import require_rdkit
from edgewise.units.base import Problem

TREES = 500
RADIUS, BITS = 2, 1024  # ECFP4: what lies within two bonds of an atom, folded to 1024 bits


def fit_forest(problem: Problem, seed: int, jobs: int = 1) -> np.ndarray:
    """Fit forests to the training rows and predict every row.

    As in `MoleculeNet <https://arxiv.org/abs/1703.00564>`_ there is one forest of 500 trees for
    each label or value, grown on the molecules of which it is known, and classes weigh as much as
    they are rare (``class_weight="balanced"``); all else is scikit-learn's default.

    Args:
        problem: Molecules with their truth and split.
        seed: Of the trees.
        jobs: Processors to use; -1 for all. The result does not depend on it.

    Returns:
        Probabilities or values, ``[rows, outputs]``.
    """
    prints = fingerprints(problem.data.ids)
    train, task = problem.split.train.numpy(), problem.task
    truth = problem.truth[problem.split.train].numpy()
    if task.single_label:
        known = truth >= 0
        return _probabilities(prints[train[known]], truth[known], prints, task.width, seed, jobs)
    columns = []
    for name, values in zip(task.names, truth.T, strict=True):
        known = ~np.isnan(values)
        if not known.any():
            raise EdgewiseError(
                f"no training row has a known {name!r}, so no forest can learn it; leave that "
                "target out, or give another split"
            )
        x, y = prints[train[known]], values[known]
        if task.role == "Classifier":
            columns.append(_probabilities(x, y.astype(np.int64), prints, 2, seed, jobs)[:, 1])
        else:
            columns.append(_values(x, y, prints, seed, jobs))
    return np.stack(columns, axis=1)


def fingerprints(smiles: Sequence[str]) -> np.ndarray:
    """Circular fingerprints, zeros and ones, ``[molecules, 1024]``."""
    require_rdkit()
    from rdkit import Chem, rdBase
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    bits = np.zeros((len(smiles), BITS), dtype=np.float32)
    with rdBase.BlockLogs():
        for row, text in enumerate(smiles):
            bits[row] = generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(text))
    return bits


def _probabilities(
    x: np.ndarray, y: np.ndarray, every: np.ndarray, classes: int, seed: int, jobs: int
) -> np.ndarray:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(
        TREES, class_weight="balanced", random_state=seed, n_jobs=jobs
    ).fit(x, y)
    # A class that no training row has is not in the forest, and has probability 0.
    probability = np.zeros((len(every), classes))
    probability[:, forest.classes_] = forest.predict_proba(every)
    return probability


def _values(x: np.ndarray, y: np.ndarray, every: np.ndarray, seed: int, jobs: int) -> np.ndarray:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(TREES, random_state=seed, n_jobs=jobs).fit(x, y)
    return np.asarray(forest.predict(every), dtype=np.float64)
