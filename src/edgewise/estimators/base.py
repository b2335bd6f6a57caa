"""What all estimators share: settings, a validation set, ensembles, scores, folders."""

import json
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import inside, write_atomically
from edgewise.core.foreign import refuse_foreign, without_foreign
from edgewise.core.presets import make_settings
from edgewise.core.registries import LAYERS, UNITS
from edgewise.core.schema import Maybe, read_json
from edgewise.core.settings import Settings
from edgewise.data.splits import Split, random_split
from edgewise.estimators.parameters import PARAMETERS, plain
from edgewise.estimators.targets import (
    Target,
    joined,
    known_labels,
    names_of,
    number_columns,
    settled,
)
from edgewise.tasks.base import Prediction, Task
from edgewise.training import Epoch, Predictor, fit_member, load_model, make_predictor
from edgewise.training.portfolio import decided
from edgewise.units.base import Problem

FORMAT = "edgewise estimator 1"
_SHAPE = {
    **{"format": str, "parameters": {str: object}, "y_ndim": int},
    "classes": Maybe([(str, float, bool)]),
}
Some = TypeVar("Some", bound="Estimator")


class Estimator(BaseEstimator):
    """Settings in, a fitted model out."""

    _unit: ClassVar[str]
    _kind: ClassVar[str]  # how its name begins, see Unit.estimator_of
    _source_settings: ClassVar[frozenset[str]]  # those that hold for what it is given
    _implied: ClassVar[dict[str, Any]] = {}  # settings that follow from it
    _role: ClassVar[str]  # the Task's word for what it is here
    preset: Any
    validation_fraction: Any
    fitted_: Predictor
    history_: list[Epoch]
    classes_: Any
    y_ndim_: int

    def __init__(self, **settings: Any) -> None:
        raise NotImplementedError("setting_parameters gives every estimator its constructor")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        raise NotImplementedError

    def _settings(self, implied: Mapping[str, Any] | None = None) -> Settings:
        given = {name: plain(getattr(self, name)) for name in PARAMETERS}
        given = {name: value for name, value in given.items() if value is not None}
        implied = self._implied if implied is None else implied
        settings = make_settings(self._unit, str(self.preset), implied=implied, **given)
        kept = {*given, *implied}
        settings = without_foreign(settings, "source", self._source_settings, kept)
        unit, layer = UNITS[self._unit], settings.model.layer
        name = type(self).__name__
        refuse_foreign(given, "source", self._source_settings, f"this is a {name}")
        takes = unit.takes(settings)
        refuse_foreign(given, "unit", takes, f"a {name} predicts {unit.plural}")
        refuse_foreign(given, "layer", LAYERS[layer].settings, f"the layer is {layer}")
        return settings

    def _target_of(self, parts: list[tuple[Any, Any]]) -> Target:
        """The target of training and validation together."""
        return self._target(joined([y for _, y in parts]), names_of(parts[0][1]))

    def _split(
        self, target: Target, train: Tensor, validation: Tensor | None, truth: Tensor, seed: int
    ) -> Split:
        """Rows for training and rows for early stopping; without the latter, some are drawn."""
        nothing = torch.zeros(0, dtype=torch.int64)
        if validation is not None:
            if not len(validation):
                raise EdgewiseError(
                    "nothing is known of the rows in validation; leave it out to draw rows of X"
                )
            return Split(train, validation, nothing)
        fraction, count = plain(self.validation_fraction), len(train)
        if not isinstance(fraction, int | float) or not 0 <= fraction < 1:
            raise EdgewiseError(
                f"validation_fraction = {fraction!r} is not a share; give a number from 0, for "
                "none, to below 1"
            )
        if fraction == 0 or count < 2:
            return Split(train, nothing, nothing)
        drawn_rows = min(max(round(count * fraction), 1), count - 1)
        drawn = random_split(
            train,
            (1 - drawn_rows / count, 0.0, drawn_rows / count),
            seed=seed,
            stratify=truth if target.classes is not None else None,
        )
        return Split(drawn.train, drawn.test, nothing)

    def _decided(self, problem: Problem) -> Problem:
        """The problem in the regime that it is trained in."""
        return decided(problem, warn=_warned)

    def _fit_problem(self: Some, problem: Problem, target: Target) -> Some:
        problem = self._decided(problem)
        members = []
        for member in range(problem.settings.training.ensemble):
            fitting = fit_member(problem, member)
            members.append(fitting.trainer.model)
            if member == 0:
                self.history_ = fitting.history
        model, _ = make_predictor(problem, tuple(members)).calibrated(problem)
        self._take(model, target.y_ndim, target.classes)
        return self

    def _take(self, model: Predictor, y_ndim: int, classes: np.ndarray | None) -> None:
        self.fitted_, self.y_ndim_ = model, y_ndim
        known = model.task.label_arrays(classes)
        if known is not None:
            self.classes_ = known

    def save(self, folder: str | Path) -> None:
        """Write the model and the settings into a folder: safetensors and JSON, no pickle."""
        check_is_fitted(self, "fitted_")
        given = {name: plain(value) for name, value in self.get_params(deep=False).items()}
        content: dict[str, Any] = {
            "format": FORMAT,
            "parameters": {k: v for k, v in given.items() if v is not None and k != "graph"},
            "y_ndim": self.y_ndim_,
        }
        if self.fitted_.task.single_label:
            content["classes"] = self.classes_.tolist()
        # Before the model, for model.json is the last file of a whole folder.
        write_atomically(Path(folder) / "estimator.json", json.dumps(content, indent=1))
        self.fitted_.save(folder)

    @classmethod
    def load(cls: type[Some], folder: str | Path, **parameters: Any) -> Some:
        """Read what :meth:`save` or a run of the command line wrote.

        Args:
            folder: Where it was written.
            parameters: Of the constructor, to be changed; the ``graph`` of nodes is not saved, so
                give it here. Nor is ``history_``.
        """
        model = load_model(folder)
        kind = model.unit.estimator_of(model.encoder)
        if kind != cls._kind or model.task.role != cls._role:
            raise EdgewiseError(
                f"{folder} holds a model for {model.unit.plural} ({model.task}), which is no "
                f"{cls.__name__}; load it with {kind}{model.task.role}.load"
            )
        saved, y_ndim, classes = _recorded(inside(Path(folder), "estimator.json"), model)
        try:
            estimator = cls(**{**saved, **parameters})
        except TypeError as error:
            raise EdgewiseError(
                f"{folder} does not fit {cls.__name__}: {error}; the parameters are "
                f"{', '.join(cls._get_param_names())}"
            ) from error
        estimator._take(model, y_ndim, classes)
        return estimator


class Classifier(ClassifierMixin):
    """Labels from probabilities, and their score."""

    _role = "Classifier"
    fitted_: Predictor
    classes_: Any
    predict: Callable[..., np.ndarray]
    predict_proba: Callable[..., np.ndarray]

    def _labels(self, probability: np.ndarray) -> np.ndarray:
        labels: np.ndarray = self.fitted_.task.choose(probability, self.classes_)
        return labels

    def _sets(self, prediction: Prediction) -> np.ndarray:
        return _calibrated(self.fitted_).prediction_sets(prediction)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy over the rows with a label; of binary labels, their mean ROC-AUC."""
        check_is_fitted(self, "fitted_")
        if not self.fitted_.task.single_label:
            if sample_weight is not None:
                raise EdgewiseError("the ROC-AUC takes no sample_weight here; leave it out")
            probability = self.predict_proba(X)
            read = ~np.isnan(probability).any(axis=1)
            return self.fitted_.task.score(probability[read], number_columns(y)[read])
        truth = np.asarray(y).reshape(-1)
        known = known_labels(truth)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        found = self.predict(X)[known]
        labels = settled(truth[known], "the labels in y")
        return float(accuracy_score(labels, found, sample_weight=weight))


class Regressor(RegressorMixin):
    """Values in the shape of y, and their score."""

    _role = "Regressor"
    y_ndim_: int
    fitted_: Predictor
    predict: Callable[..., np.ndarray]

    def _values(self, value: np.ndarray) -> np.ndarray:
        return value[:, 0] if self.y_ndim_ == 1 else value

    def _intervals(self, prediction: Prediction) -> np.ndarray:
        return self._values(_calibrated(self.fitted_).intervals(prediction))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 over the rows with a value and a prediction; of several targets, the mean."""
        truth, found = number_columns(y), number_columns(self.predict(X))
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight)
        known = ~np.isnan(truth) & ~np.isnan(found)
        parts = [
            r2_score(true[rows], value[rows], sample_weight=weight[rows])
            for true, value, rows in zip(truth.T, found.T, known.T, strict=True)
            if rows.sum() > 1  # of fewer it is not defined
        ]
        return float(np.mean(parts)) if parts else math.nan


def _calibrated(model: Predictor) -> Task:
    """The task of a model that has intervals or sets."""
    if model.conformal is None:
        raise EdgewiseError(
            "the model has no intervals and no sets, because it had no validation rows or "
            "coverage = 0; fit it with validation rows and a coverage such as 0.9"
        )
    return model.task


def given_parts(X: Any, y: Any, validation: Any) -> list[tuple[Any, Any]]:
    """The rows of training, and those of validation if there are some."""
    if validation is None:
        return [(X, y)]
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise EdgewiseError("validation is not a pair; give (X, y) of the rows for early stopping")
    return [(X, y), (validation[0], validation[1])]


def check_lengths(rows: int, y: Any, where: str) -> None:
    """One target for each row."""
    if y is None:
        raise EdgewiseError(f"there is no y for the {rows} row(s) of {where}; give one for each")
    if np.ndim(y) not in (1, 2) or len(y) != rows:
        raise EdgewiseError(
            f"{where} has {rows} row(s), but its y has the shape {list(np.shape(y))}; give one "
            "target for each row"
        )


def _recorded(path: Path, model: Predictor) -> tuple[dict[str, Any], int, np.ndarray | None]:
    """Parameters, dimensions of y and classes; a run of the command line says less."""
    if not path.exists():
        differing = model.settings.differences()
        given = {name: value for name, value in differing.items() if name in PARAMETERS}
        return given, model.task.y_ndim, np.array(model.task.outputs)
    try:
        content = read_json(path, _SHAPE)
        if content["format"] != FORMAT:
            raise EdgewiseError(f"it says {content['format']!r}, expected {FORMAT!r}")
        classes = np.array(content.get("classes", []))
        if tuple(str(label) for label in classes) != (
            model.task.outputs if model.task.single_label else ()
        ):
            raise EdgewiseError("its classes are not those of the model")
        return dict(content["parameters"]), int(content["y_ndim"]), classes
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(f"{path} cannot be used ({error}); save the estimator again") from error


def _warned(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)
