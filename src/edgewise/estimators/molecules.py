"""Estimators for molecules: X is SMILES or RDKit molecules, y is measured or labelled."""

from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from edgewise.core.errors import EdgewiseError
from edgewise.core.missing import is_missing
from edgewise.core.presets import OF_MOLECULES
from edgewise.data.chemistry import MoleculeCodes, read_smiles, require_rdkit
from edgewise.estimators.base import Classifier, Estimator, Regressor, check_lengths, given_parts
from edgewise.estimators.parameters import setting_parameters
from edgewise.estimators.targets import Target, binary_target, class_target, value_target
from edgewise.tasks.base import Prediction
from edgewise.units.graph import molecule_problem

_OWN = {
    "validation_fraction": (
        0.1,
        "share of the rows given to fit that is used for early stopping alone",
    ),
    "invalid": ("error", "molecules that cannot be read when predicting: error, or nan"),
}

Some = TypeVar("Some", bound="MoleculeEstimator")


class MoleculeEstimator(Estimator):
    """Molecules, one for each row."""

    _unit, _kind = "graph", "Molecule"
    _source_settings = frozenset({"featurizer", "pair_threshold", "descriptors"})
    _implied: ClassVar[dict[str, Any]] = OF_MOLECULES
    invalid: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self: Some, X: Any, y: Any, validation: Any = None) -> Some:
        """Learn from molecules.

        Args:
            X: SMILES or RDKit molecules, in a list, an array, a pandas Series or one column.
            y: ``[rows]`` or ``[rows, targets]``, NaN where it is not known.
            validation: ``(X, y)`` of the rows for early stopping. Without it, the share
                ``validation_fraction`` of X is used.
        """
        settings, parts = self._settings(), given_parts(X, y, validation)
        self._check_invalid()
        smiles = [smiles_of(X, where) for (X, _), where in zip(parts, _WHERE, strict=False)]
        for texts, (_, truth), where in zip(smiles, parts, _WHERE, strict=False):
            check_lengths(len(texts), truth, where)
        codes = read_smiles([text for texts in smiles for text in texts])
        first = len(smiles[0])
        _refuse_unread(codes, first)
        target = self._target_of(parts)
        known = target.task.labelled_rows(target.truth)
        stop = known[known >= first] if len(parts) > 1 else None
        train = known[known < first]
        split = self._split(target, train, stop, target.truth, settings.training.seed)
        problem = molecule_problem(codes, target.task, target.truth, split, settings)
        return self._fit_problem(problem, target)

    def _check_invalid(self) -> None:
        if self.invalid not in ("error", "nan"):
            raise EdgewiseError(f"invalid = {self.invalid!r} is not known; choose error or nan")

    def _predicted(self, X: Any, *, gaps: bool = True) -> np.ndarray:
        """Probabilities or values; rows that cannot be read are NaN if ``invalid`` says so."""
        return self._prediction(X, gaps=gaps).mean

    def _prediction(self, X: Any, *, gaps: bool = True) -> Prediction:
        check_is_fitted(self, "fitted_")
        self._check_invalid()
        texts = smiles_of(X, _WHERE[0])
        codes = read_smiles(texts)
        if self.invalid == "error" or not gaps:
            _refuse_unread(codes, len(texts))
        return self.fitted_.predict(codes).placed(len(texts), codes.rows)


@setting_parameters(**_OWN)
class MoleculeRegressor(Regressor, MoleculeEstimator):
    """Values of molecules, one or several for each, learnt from those that are known.

    ``X`` is SMILES, RDKit molecules, or both; ``y`` is ``[rows]`` or ``[rows, targets]`` with NaN
    where a value is not known, and predictions have its shape.

    Attributes: ``history_``, the epochs of the first model; ``fitted_``.

    Example:
        >>> model = MoleculeRegressor(epochs=5, ensemble=2, validation_fraction=0)
        >>> model.fit(["CCO", "CCCO", "c1ccccc1"], [-0.3, 0.3, 2.1]).predict(["CCCCO"]).shape
        (1,)
    """

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        return value_target(y, names)

    def predict(self, X: Any) -> np.ndarray:
        """The value of each molecule, in the shape of y."""
        return self._values(self._predicted(X))

    def predict_interval(self, X: Any) -> np.ndarray:
        """Prediction intervals, which hold the value as often as ``coverage`` says.

        Returns:
            Lower and upper ends, ``[rows, 2]`` or ``[rows, targets, 2]``; infinite where there
            were too few validation rows to tell.
        """
        return self._intervals(self._prediction(X))


@setting_parameters(**_OWN)
class MoleculeClassifier(Classifier, MoleculeEstimator):
    """Classes of molecules, or several binary labels for each (multilabel).

    A ``y`` of shape ``[rows]`` holds one label of any sort for each molecule: ``predict`` gives
    such labels, ``predict_proba`` a column for each of ``classes_``. A ``y`` of shape ``[rows,
    labels]`` holds 0, 1, or NaN where it is not known: ``predict`` gives zeros and ones in that
    shape, ``predict_proba`` the probability of 1 in that shape, and ``score`` the mean ROC-AUC.

    Attributes: ``classes_``, sorted; ``history_``, the epochs of the first model; ``fitted_``.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        return class_target(y, names) if y.ndim == 1 else binary_target(y, names)

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class, or zeros and ones; a molecule that cannot be read is an error."""
        return self._labels(self._predicted(X, gaps=False))

    def predict_proba(self, X: Any) -> np.ndarray:
        """``[rows, classes]`` in the order of ``classes_``, or ``[rows, labels]``."""
        return self._predicted(X)

    def predict_set(self, X: Any) -> np.ndarray:
        """Prediction sets, which hold the truth as often as the parameter ``coverage`` says.

        Returns:
            Bools, ``[rows, classes]`` in the order of ``classes_``; of binary labels ``[rows,
            labels, 2]``, whether 0 and whether 1 is in the set.
        """
        return self._sets(self._prediction(X, gaps=False))


_WHERE = ("X", "the X of validation")


def smiles_of(X: Any, where: str) -> list[str]:
    """The SMILES of each row; empty where there is no molecule."""
    require_rdkit()
    from rdkit import Chem

    column = np.empty(0, dtype=object) if isinstance(X, str) else np.array(X, dtype=object)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if isinstance(X, str) or column.ndim != 1:
        found = "one string" if isinstance(X, str) else f"of shape {list(column.shape)}"
        raise EdgewiseError(f"{where} is {found}; give a list of SMILES or RDKit molecules")
    smiles = []
    for row, item in enumerate(column):
        if isinstance(item, Chem.Mol):
            smiles.append(Chem.MolToSmiles(item))
        elif isinstance(item, str):
            smiles.append(item)
        elif is_missing(item):
            smiles.append("")
        else:
            raise EdgewiseError(f"row {row} of {where} is {item!r}; give SMILES or RDKit molecules")
    return smiles


def _refuse_unread(codes: MoleculeCodes, first: int) -> None:
    if not codes.invalid:
        return
    row, text, reason = codes.invalid[0]
    where = f"{_WHERE[0]}, row {row}" if row < first else f"{_WHERE[1]}, row {row - first}"
    others = f", nor can {len(codes.invalid) - 1} more" if len(codes.invalid) > 1 else ""
    raise EdgewiseError(
        f"{where}: {text!r} cannot be read ({reason}){others}; correct or leave out what cannot be "
        "read; invalid='nan' makes predicted values and probabilities NaN there"
    )
