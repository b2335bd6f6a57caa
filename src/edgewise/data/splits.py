"""Which rows train, which validate, which test: drawn by seed, balanced, or given."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.files import write_atomically
from edgewise.core.schema import read_json

Fractions = tuple[float, float, float]  # training, validation, test

SPARSE: Fractions = (0.05, 0.15, 0.80)  # the paper's two splittings of citation networks
DENSE: Fractions = (0.60, 0.20, 0.20)
MOLECULES: Fractions = (0.80, 0.10, 0.10)
QUANTILES = 10  # that values are cut into to be balanced
_SHAPE = dict.fromkeys(("train", "validation", "test"), ([int], [bool]))
_NAMED = {"sparse": SPARSE, "dense": DENSE, "molecules": MOLECULES}


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of three disjoint subsets; rows may be left out of all three."""

    train: Tensor
    validation: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        for name, rows in self.parts().items():
            if rows.dtype != torch.int64 or rows.dim() != 1:
                raise EdgewiseError(
                    f"the {name} rows are {rows.dtype}{list(rows.shape)}, expected row numbers; "
                    "turn a mask into numbers with mask.nonzero()[:, 0]"
                )
        together = torch.cat(list(self.parts().values()))
        rows, count = torch.unique(together, return_counts=True)
        if (rows < 0).any():
            raise EdgewiseError(
                f"row number(s) {preview(rows[rows < 0].tolist())} are negative; count from 0"
            )
        if (count > 1).any():
            raise EdgewiseError(
                f"row(s) {preview(rows[count > 1].tolist())} stand in a split more than once; "
                "give each row to one subset"
            )

    def parts(self) -> dict[str, Tensor]:
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={len(rows)}" for name, rows in self.parts().items())
        return f"Split({sizes})"

    def save(self, path: str | Path) -> None:
        """Write the row numbers as JSON."""
        rows = {name: part.tolist() for name, part in self.parts().items()}
        write_atomically(path, json.dumps(rows))


def load_split(path: str | Path) -> Split:
    """Read a split written by :meth:`Split.save`, or by hand: three lists of row numbers."""
    try:
        content = read_json(Path(path), _SHAPE)
    except (OSError, ValueError) as error:
        raise EdgewiseError(
            f"{path} is not a split ({error}); expected JSON with the lists "
            "'train', 'validation' and 'test' of row numbers"
        ) from error
    try:
        return given_split(content["train"], content["validation"], content["test"])
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise EdgewiseError(f"{path}: {error}") from error


def fractions_of(kind: str | Sequence[float]) -> Fractions:
    """``"sparse"``, ``"dense"``, ``"molecules"``, or three numbers that sum to one."""
    if isinstance(kind, str):
        if kind not in _NAMED:
            raise EdgewiseError(f"there is no split {kind!r}; the names are {', '.join(_NAMED)}")
        return _NAMED[kind]
    parts = tuple(float(part) for part in kind)
    if len(parts) != 3 or min(parts) < 0 or not math.isclose(sum(parts), 1, abs_tol=1e-6):
        raise EdgewiseError(
            f"the fractions {list(parts)} are not three shares that sum to 1; "
            "give training, validation, test, such as 0.8 0.1 0.1"
        )
    return parts[0], parts[1], parts[2]


def random_split(
    rows: int | Tensor, kind: str | Sequence[float], *, seed: int, stratify: Tensor | None = None
) -> Split:
    """Draw a split by seed.

    Args:
        rows: How many rows there are, or the numbers of those that may be drawn (rows with a
            label, for example).
        kind: A name or three fractions, see :func:`fractions_of`.
        seed: The same seed gives the same split on every machine.
        stratify: One value per row of the data. Class numbers, and up to ten different values,
            keep their shares in every subset; other numbers are first cut into ten quantiles.

    Example:
        >>> random_split(2708, "sparse", seed=0)
        Split(train=135, validation=406, test=2167)
    """
    fractions = fractions_of(kind)
    numbers = np.arange(rows) if isinstance(rows, int) else rows.cpu().numpy()
    if not len(numbers):
        raise EdgewiseError("there are no rows to split; nothing was read, or no row has a label")
    generator = np.random.default_rng(seed)
    shuffled = generator.permutation(numbers)
    if stratify is not None:
        shuffled = _interleaved(shuffled, _strata(stratify)[shuffled])
    first, second = _cuts(len(shuffled), fractions)
    parts = (shuffled[:first], shuffled[first:second], shuffled[second:])
    return Split(*(torch.from_numpy(np.sort(part).astype(np.int64)) for part in parts))


def given_split(
    train: Sequence[int] | Tensor, validation: Sequence[int] | Tensor, test: Sequence[int] | Tensor
) -> Split:
    """Take row numbers, or masks with one truth value per row."""
    return Split(*(_row_numbers(part) for part in (train, validation, test)))


def _row_numbers(part: Sequence[int] | Tensor) -> Tensor:
    tensor = torch.as_tensor(part)
    if tensor.dtype == torch.bool:
        return tensor.nonzero()[:, 0]
    return tensor.long() if tensor.numel() == 0 else tensor


def _cuts(count: int, fractions: Fractions) -> tuple[int, int]:
    first = round(count * fractions[0])
    return first, first + round(count * fractions[1])


def _strata(value: Tensor) -> np.ndarray:
    column = value.detach().cpu().numpy()
    if column.ndim != 1:
        raise EdgewiseError(
            f"cannot balance over values of shape {list(value.shape)}; give one value per row"
        )
    if not np.issubdtype(column.dtype, np.floating):
        return column
    values = np.unique(column[~np.isnan(column)])
    edges = values
    if len(values) > QUANTILES:
        edges = np.quantile(column[~np.isnan(column)], np.linspace(0, 1, QUANTILES + 1)[1:-1])
    return np.where(np.isnan(column), -1, np.searchsorted(edges, column, side="right"))


def _interleaved(rows: np.ndarray, stratum: np.ndarray) -> np.ndarray:
    """Order rows so that every stretch holds each stratum in its share.

    Row ``k`` of ``n`` of a stratum gets the place ``(k + 1/2) / n``; sorting by place spreads
    every stratum evenly, so cutting anywhere is fair to all.
    """
    place = np.empty(len(rows))
    for value in np.unique(stratum):
        (members,) = np.nonzero(stratum == value)
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return rows[np.argsort(place, kind="stable")]
