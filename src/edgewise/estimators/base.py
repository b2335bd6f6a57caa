"""What all estimators share: settings, a held-out part, ensembles, scores, folders."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.core.recipe import Recipe, make_recipe
from edgewise.data.splits import Split, random_split
from edgewise.estimators.parameters import KNOBS, plain
from edgewise.estimators.targets import (
    Target,
    joined,
    known_labels,
    names_of,
    number_columns,
    settled,
)
from edgewise.fitted import Fitted, fitted, load_model
from edgewise.metrics import headline
from edgewise.problems import Problem
from edgewise.training import Epoch, fit_member

FORMAT = "edgewise estimator 1"
_YES_OR_NO = np.array([0, 1])
Some = TypeVar("Some", bound="Estimator")


class Estimator(BaseEstimator):
    """Settings in, a fitted model out."""

    _kind: ClassVar[str]  # "nodes" or "molecules"
    _tasks: ClassVar[tuple[str, ...]]  # kinds of Task
    preset: Any
    validation_fraction: Any
    fitted_: Fitted
    history_: list[Epoch]
    classes_: Any
    y_ndim_: int

    def __init__(self, **settings: Any) -> None:
        raise NotImplementedError("recipe_parameters gives every estimator its constructor")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def _target(self, y: np.ndarray, names: tuple[str, ...]) -> Target:
        raise NotImplementedError

    def _recipe(self) -> Recipe:
        given = {name: plain(getattr(self, name)) for name in KNOBS}
        given = {name: value for name, value in given.items() if value is not None}
        return make_recipe(self._kind, str(self.preset), **given)

    def _target_of(self, parts: list[tuple[Any, Any]]) -> Target:
        """The target of training and validation together."""
        return self._target(joined([y for _, y in parts]), names_of(parts[0][1]))

    def _split(
        self, target: Target, train: Tensor, validation: Tensor | None, truth: Tensor, seed: int
    ) -> Split:
        """Rows to learn from and rows to stop by; without the latter, some are held out."""
        nothing = torch.zeros(0, dtype=torch.int64)
        if validation is not None:
            if not len(validation):
                raise EdgewiseError(
                    "nothing is known of the rows in validation; leave it out to hold rows out of X"
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
        held = min(max(round(count * fraction), 1), count - 1)
        drawn = random_split(
            train,
            (1 - held / count, 0.0, held / count),
            seed=seed,
            stratify=truth if target.classes is not None else None,
        )
        return Split(drawn.train, drawn.test, nothing)

    def _fit_problem(self: Some, problem: Problem, recipe: Recipe, target: Target) -> Some:
        members = []
        for member in range(recipe.ensemble):
            fitting = fit_member(problem, recipe, member)
            members.append(fitting.trainer.model)
            if member == 0:
                self.history_ = fitting.history
        self._take(fitted(problem, recipe, tuple(members)), target.y_ndim, target.classes)
        return self

    def _take(self, model: Fitted, y_ndim: int, classes: np.ndarray | None) -> None:
        self.fitted_, self.y_ndim_ = model, y_ndim
        if model.task.kind == "multilabel":
            self.classes_ = [_YES_OR_NO.copy() for _ in model.task.names]
        elif model.task.kind == "classification":
            self.classes_ = classes

    def save(self, folder: str | Path) -> None:
        """Write the model and the settings into a folder: safetensors and JSON, no pickle."""
        check_is_fitted(self, "fitted_")
        given = {name: plain(value) for name, value in self.get_params(deep=False).items()}
        content: dict[str, Any] = {
            "format": FORMAT,
            "parameters": {k: v for k, v in given.items() if v is not None and k != "graph"},
            "y_ndim": self.y_ndim_,
        }
        if self.fitted_.task.kind == "classification":
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
        if model.kind != cls._kind or model.task.kind not in cls._tasks:
            what = "Regressor" if model.task.kind == "regression" else "Classifier"
            home = ("Node" if model.kind == "nodes" else "Molecule") + what
            raise EdgewiseError(
                f"{folder} holds a model for {model.kind} ({model.task}), which is no "
                f"{cls.__name__}; load it with {home}.load"
            )
        saved, y_ndim, classes = _recorded(Path(folder) / "estimator.json", model)
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

    fitted_: Fitted
    classes_: Any
    predict: Callable[..., np.ndarray]
    predict_proba: Callable[..., np.ndarray]

    def _labels(self, probability: np.ndarray) -> np.ndarray:
        if self.fitted_.task.kind == "multilabel":
            return (probability > 0.5).astype(np.int64)
        return self.classes_[probability.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy over the rows with a label; of yes-or-no labels, their mean ROC-AUC."""
        check_is_fitted(self, "fitted_")
        if self.fitted_.task.kind == "multilabel":
            if sample_weight is not None:
                raise EdgewiseError("the ROC-AUC takes no sample_weight here; leave it out")
            probability = self.predict_proba(X)
            read = ~np.isnan(probability).any(axis=1)
            return headline(self.fitted_.task, probability[read], number_columns(y)[read])
        truth = np.asarray(y).reshape(-1)
        known = known_labels(truth)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        found = self.predict(X)[known]
        labels = settled(truth[known], "the labels in y")
        return float(accuracy_score(labels, found, sample_weight=weight))


class Regressor(RegressorMixin):
    """Values in the shape of y, and their score."""

    y_ndim_: int
    predict: Callable[..., np.ndarray]

    def _values(self, value: np.ndarray) -> np.ndarray:
        return value[:, 0] if self.y_ndim_ == 1 else value

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


def given_parts(X: Any, y: Any, validation: Any) -> list[tuple[Any, Any]]:
    """The rows of training, and those of validation if there are some."""
    if validation is None:
        return [(X, y)]
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise EdgewiseError("validation is not a pair; give (X, y) of the rows to stop by")
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


def _recorded(path: Path, model: Fitted) -> tuple[dict[str, Any], int, np.ndarray | None]:
    """Parameters, dimensions of y and classes; a run of the command line says less."""
    settings = model.recipe.to_json()
    if not path.exists():
        ndim = 2 if model.task.kind == "multilabel" or len(model.task.names) > 1 else 1
        return {name: settings[name] for name in KNOBS}, ndim, np.array(model.task.classes)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise EdgewiseError(f"it says {content['format']!r}, expected {FORMAT!r}")
        classes = np.array(content.get("classes", []))
        if tuple(str(label) for label in classes) != model.task.classes:
            raise EdgewiseError("its classes are not those of the model")
        return dict(content["parameters"]), int(content["y_ndim"]), classes
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EdgewiseError(f"{path} cannot be used ({error}); save the estimator again") from error
