r"""Kernel regression on fingerprints and descriptors of molecules, blended with the networks.

.. math::
    \hat y = (1 - w) \, \hat y_{network} + w \, \hat y_{kernel}, \qquad
    \hat y_{kernel}(m) = \mu + \sum_n \alpha_n \, k(m, m_n)

The kernel is a mixture of the mean Tanimoto similarity of count fingerprints and a Gaussian of
descriptors. Mixture and noise are those of the lowest leave-one-out error on training molecules;
:math:`w` is the one of the lowest squared error on the validation rows, from 0 to 1, so that what
does not help is not used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_matrix
from torch import Tensor

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import inside, write_atomically
from edgewise.data.descriptors import BITS, WIDTH, Described, describe
from edgewise.kernels.overlaps import overlaps
from edgewise.tasks.base import Task
from edgewise.training.weights import read_tensors
from edgewise.units.base import Problem

FILE = "stack.safetensors"
MOST = 8000  # training molecules that are compared with; others are left out, by lot
CHOOSING = 1200  # of them, on which mixture and noise are chosen
MIXTURES = (0.0, 0.25, 0.5, 0.75, 1.0)  # share of the Tanimoto similarity
NOISES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
NEGLIGIBLE = 0.02  # weight below which predicting twice is not worth it
# Names of the arrays of each fingerprint; models without the second have the first alone.
_STORED = (("offset", "bits"), ("role_offset", "role_bits"))
_ROWS = 512  # of a kernel at a time
_FARTHEST = 5.0  # standard deviations, within which descriptors are held


@dataclass(frozen=True, eq=False)
class Stack:
    """A fitted kernel regression, and its weight in the blend."""

    known: Described  # the molecules it compares with; values are standardised
    center: np.ndarray  # [WIDTH], of the descriptors
    scale: np.ndarray  # [WIDTH]
    mixture: float
    alpha: np.ndarray  # [molecules, outputs]
    mean: np.ndarray  # [outputs]
    bounds: np.ndarray  # [2, outputs], lowest and highest truth
    single_label: bool
    weight: float = 0.0

    def predict(self, smiles: Sequence[str]) -> np.ndarray:
        """Probabilities or values of molecules, ``[molecules, outputs]``."""
        parts = [np.zeros((0, len(self.mean)))]
        for first in range(0, len(smiles), _ROWS):
            some = smiles[first : first + _ROWS]
            parts.append(self._predicted(describe(some, len(self.known.fingerprints))))
        return np.concatenate(parts)

    def _predicted(self, new: Described) -> np.ndarray:
        values = _standardised(new.values, self.center, self.scale)
        standard = Described(new.fingerprints, values)
        found = self.mean + kernel(standard, self.known, self.mixture) @ self.alpha
        found = found.clip(*self.bounds)
        return found / found.sum(axis=1, keepdims=True) if self.single_label else found

    def blend(self, predicted: np.ndarray, smiles: Sequence[str]) -> np.ndarray:
        """Predictions of the networks for molecules, with their share of these."""
        return (1 - self.weight) * predicted + self.weight * self.predict(smiles)

    def save(self, folder: Path) -> None:
        """Write everything into a folder; no pickle."""
        arrays = {
            **{
                name: getattr(one, part).astype(np.int64)
                for one, names in zip(self.known.fingerprints, _STORED, strict=False)
                for name, part in zip(names, ("indptr", "indices"), strict=True)
            },
            "values": self.known.values,
            "center": self.center,
            "scale": self.scale,
            "alpha": self.alpha,
            "mean": self.mean,
            "bounds": self.bounds,
            "shares": np.array([self.mixture, self.weight]),
        }
        tensors = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}
        write_atomically(folder / FILE, save(tensors))


def load_stack(folder: Path, task: Task) -> Stack:
    """Read what :meth:`Stack.save` wrote; anything else is refused."""
    path = inside(folder, FILE)
    arrays = {name: tensor.numpy() for name, tensor in read_tensors(path).items()}
    try:
        values = arrays["values"]
        rows, out = len(values), task.width
        stored = [names for names in _STORED if names == _STORED[0] or names[0] in arrays]
        fingerprints = [(arrays[offset], arrays[bits]) for offset, bits in stored]
        shapes = {
            **{"values": (rows, WIDTH)},
            **{"center": (WIDTH,), "scale": (WIDTH,), "alpha": (rows, out)},
            **{"mean": (out,), "bounds": (2, out), "shares": (2,)},
        }
        whole = (
            all(arrays[name].shape == shape for name, shape in shapes.items())
            and all(np.isfinite(array).all() for array in arrays.values())
            and all(
                _is_pattern(offset, bits, rows, width)
                for (offset, bits), width in zip(fingerprints, BITS, strict=False)
            )
            and bool((arrays["scale"] > 0).all())
        )
    except (KeyError, TypeError, IndexError):
        whole = False
    if not whole:
        raise EdgewiseError(
            f"{path} does not fit model.json; copy the folder again, or train again"
        )
    matrices = (
        csr_matrix((np.ones(len(bits), dtype=np.float32), bits, offset), shape=(rows, width))
        for (offset, bits), width in zip(fingerprints, BITS, strict=False)
    )
    known = Described(tuple(matrices), values)
    mixture, weight = arrays["shares"].tolist()
    return Stack(
        *(known, arrays["center"], arrays["scale"], mixture, arrays["alpha"], arrays["mean"]),
        *(arrays["bounds"], task.single_label, weight),
    )


def _is_pattern(offset: np.ndarray, bits: np.ndarray, rows: int, width: int) -> bool:
    """Whether these are the rows of a sparse matrix."""
    return bool(
        offset.dtype == bits.dtype == np.int64
        and (offset.shape, bits.ndim) == ((rows + 1,), 1)
        and (np.diff(offset) >= 0).all()
        and (offset[0], offset[-1]) == (0, len(bits))
        and ((bits >= 0) & (bits < width)).all()
    )


def fit_stack(problem: Problem, predicted: np.ndarray) -> Stack | None:
    """Kernel regression on the training rows with the weight that the validation rows choose.

    Args:
        problem: Molecules.
        predicted: What the networks predict for the validation rows.

    Returns:
        None where it would not help, or cannot be known to help.
    """
    train, validation = problem.split.train, problem.split.validation
    if len(train) < 2 or not len(validation):
        return None
    smiles, task = problem.data.ids, problem.task
    if len(train) > MOST:
        lot = torch.Generator().manual_seed(problem.settings.training.seed)
        train = train[torch.randperm(len(train), generator=lot)[:MOST].sort().values]
    truth = task.decoded_truth(problem.truth)
    if truth is None:
        return None
    stack = fit([smiles[row] for row in train.tolist()], _of(truth, train), task.single_label)
    found = stack.predict([smiles[row] for row in validation.tolist()])
    weight = blending_weight(_of(truth, validation), predicted, found)
    if weight < NEGLIGIBLE:
        return None
    return Stack(**{**vars(stack), "weight": weight})


def blending_weight(truth: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """The weight of the second prediction for which the blend has the lowest squared error.

    Each output counts by its own variance. NaN: unknown.
    """
    scale = _scale(truth - np.array([_mean(column) for column in truth.T]))
    towards, error = (second - first) / scale, (truth - first) / scale
    known = ~np.isnan(error)
    length = float(np.square(towards[known]).sum())
    along = float((towards[known] * error[known]).sum())
    return min(max(along / length, 0.0), 1.0) if length > 0 else 0.0


def kernel(left: Described, right: Described, mixture: float) -> np.ndarray:
    """``[left, right]``: mean Tanimoto similarity and Gaussian of descriptors in their shares."""
    total = np.empty((len(left), len(right)), dtype=np.float32)
    pairs = list(zip(left.fingerprints, right.fingerprints, strict=True))
    counts = [[np.asarray(one.sum(axis=1)).ravel() for one in pair] for pair in pairs]
    squares = [np.square(one.values).sum(axis=1) for one in (left, right)]
    for first in range(0, len(left), _ROWS):
        rows = slice(first, first + _ROWS)
        part = np.zeros_like(total[rows])
        if mixture > 0:
            for (mine, other), (ones, others) in zip(pairs, counts, strict=True):
                common = overlaps(mine[rows], other)
                either = ones[rows, None] + others - common
                part += mixture / len(pairs) * common / np.maximum(either, 1)
        if mixture < 1:
            apart = squares[0][rows, None] + squares[1]
            apart -= 2 * left.values[rows] @ right.values.T
            part += (1 - mixture) * np.exp(-0.5 / WIDTH * np.maximum(apart, 0))
        total[rows] = part
    return total


def fit(smiles: Sequence[str], truth: np.ndarray, single_label: bool = False) -> Stack:
    """Kernel regression of ``[molecules, outputs]``, NaN for unknown; its weight is open."""
    described = describe(smiles)
    center = described.values.mean(axis=0)
    scale = described.values.std(axis=0)
    scale = np.where(scale > 1e-6, scale, 1).astype(np.float32)
    known = Described(described.fingerprints, _standardised(described.values, center, scale))
    mean = np.array([_mean(column) for column in truth.T])
    filled = np.where(np.isnan(truth), mean, truth)
    bounds = np.stack([filled.min(axis=0), filled.max(axis=0)])
    mixture, noise = choose(known, truth - mean)
    alpha = _solved(kernel(known, known, mixture), truth - mean, noise)
    return Stack(known, center, scale, mixture, alpha, mean, bounds, single_label)


def choose(known: Described, residual: np.ndarray) -> tuple[float, float]:
    """Mixture and noise of the lowest leave-one-out error, on some of the molecules."""
    rows = np.linspace(0, len(known) - 1, min(len(known), CHOOSING)).astype(np.int64)
    some, wanted = known.some(rows), residual[rows]
    wanted = wanted / _scale(wanted)
    filled = np.nan_to_num(wanted)  # unknown: the mean, and not counted
    found = {}
    for mixture in MIXTURES:
        values, vectors = eigh(kernel(some, some, mixture).astype(np.float64))
        turned = vectors.T @ filled
        for noise in NOISES:
            shrunk = 1 / (np.maximum(values, 0) + noise)
            alpha = vectors @ (shrunk[:, None] * turned)
            left_out = alpha / (np.square(vectors) @ shrunk)[:, None]
            found[mixture, noise] = float(np.square(left_out[~np.isnan(wanted)]).sum())
    return min(found, key=lambda pair: found[pair])


def _solved(similarity: np.ndarray, residual: np.ndarray, noise: float) -> np.ndarray:
    """The coefficients of each output, 0 for molecules of which it is not known."""
    alpha = np.zeros_like(residual)
    unknown = np.isnan(residual)
    # Outputs that are known of the same molecules share a factorisation.
    patterns, place = np.unique(unknown, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        rows, outputs = np.flatnonzero(~pattern), np.flatnonzero(place.ravel() == number)
        if len(rows):
            factor = _factor(similarity[np.ix_(rows, rows)], noise)
            alpha[np.ix_(rows, outputs)] = cho_solve(factor, residual[np.ix_(rows, outputs)])
    return alpha


def _factor(similarity: np.ndarray, noise: float) -> tuple[np.ndarray, bool]:
    regular = similarity + noise * np.eye(len(similarity), dtype=similarity.dtype)
    try:
        factor: tuple[np.ndarray, bool] = cho_factor(regular, lower=True, overwrite_a=True)
    except np.linalg.LinAlgError:  # by rounding, where many molecules are alike
        return _factor(similarity, 10 * noise)
    return factor


def _standardised(values: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return ((values - center) / scale).clip(-_FARTHEST, _FARTHEST).astype(np.float32)


def _scale(residual: np.ndarray) -> np.ndarray:
    """The standard deviation of each column over what is known; 1 where it is 0."""
    known = (~np.isnan(residual)).sum(axis=0)
    scale = np.sqrt(np.square(np.nan_to_num(residual)).sum(axis=0) / np.maximum(known, 1))
    return np.where(scale > 0, scale, 1.0)


def _mean(column: np.ndarray) -> float:
    known = column[~np.isnan(column)]
    return float(known.mean()) if len(known) else 0.0


def _of(truth: np.ndarray, rows: Tensor) -> np.ndarray:
    return truth[rows.numpy()].astype(np.float64)
