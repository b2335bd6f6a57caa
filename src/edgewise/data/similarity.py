"""How far a molecule is from those of training: 1 less the largest Tanimoto similarity to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.data.chemistry import parsed
from edgewise.kernels.overlaps import common_bits

RADIUS, BITS = 2, 1024
MOST = 10_000  # training molecules that are kept, evenly drawn, so that predicting stays cheap
_ROWS = 1024  # compared at a time


@dataclass(frozen=True, eq=False)
class TrainingFingerprints:
    """Morgan fingerprints (radius 2, 1,024 bits) of the training molecules, each once."""

    bits: np.ndarray  # [fingerprints, BITS / 8] of uint8

    def __post_init__(self) -> None:
        if self.bits.dtype != np.uint8 or self.bits.shape[1:] != (BITS // 8,) or not len(self.bits):
            raise EdgewiseError("these are no fingerprints of training molecules; train again")

    @cached_property
    def _known(self) -> tuple[np.ndarray, np.ndarray]:
        return _words(self.bits)

    def distances(self, smiles: Sequence[str]) -> np.ndarray:
        """From each molecule to the nearest one of training: 0 like one of them, 1 like none."""
        parts = [np.zeros(0)]
        known, known_ones = self._known
        for first in range(0, len(smiles), _ROWS):
            new, ones = _words(_fingerprints(smiles[first : first + _ROWS]))
            common = common_bits(new, known).astype(np.float32)
            either = ones[:, None] + known_ones - common
            parts.append(1 - (common / np.maximum(either, 1)).max(axis=1).astype(np.float64))
        return np.concatenate(parts)


def training_fingerprints(smiles: Sequence[str]) -> TrainingFingerprints:
    """What is kept of the molecules of training."""
    places = np.linspace(0, len(smiles) - 1, min(len(smiles), MOST)).round().astype(int)
    return TrainingFingerprints(
        np.unique(_fingerprints([smiles[place] for place in places]), axis=0)
    )


def _fingerprints(smiles: Sequence[str]) -> np.ndarray:
    """``[molecules, BITS / 8]`` of uint8."""
    from rdkit import DataStructs
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    texts = [
        DataStructs.BitVectToBinaryText(generator.GetFingerprint(parsed(text))) for text in smiles
    ]
    return np.frombuffer(b"".join(texts), np.uint8).reshape(-1, BITS // 8)


def _words(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bits as words of 64, and how many of each row are set."""
    ones = np.unpackbits(bits, axis=1).sum(axis=1, dtype=np.float32)
    return np.ascontiguousarray(bits).view(np.uint64), ones
