"""How far a molecule is from those of training: 1 less the largest Tanimoto similarity to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.core.errors import EdgewiseError
from edgewise.data.chemistry import require_rdkit

RADIUS, BITS = 2, 1024
MOST = 10_000  # training molecules that are kept, evenly drawn, so that predicting stays cheap


@dataclass(frozen=True, eq=False)
class TrainingFingerprints:
    """Morgan fingerprints (radius 2, 1,024 bits) of the training molecules, each once."""

    bits: np.ndarray  # [fingerprints, BITS / 8] of uint8

    def __post_init__(self) -> None:
        if self.bits.dtype != np.uint8 or self.bits.shape[1:] != (BITS // 8,) or not len(self.bits):
            raise EdgewiseError("these are no fingerprints of training molecules; train again")

    def distances(self, smiles: Sequence[str]) -> np.ndarray:
        """From each molecule to the nearest one of training: 0 like one of them, 1 like none."""
        from rdkit import DataStructs

        known = [DataStructs.CreateFromBinaryText(row.tobytes()) for row in self.bits]
        nearest = [
            max(DataStructs.BulkTanimotoSimilarity(one, known)) for one in _fingerprints(smiles)
        ]
        return 1 - np.array(nearest, dtype=np.float64)


def training_fingerprints(smiles: Sequence[str]) -> TrainingFingerprints:
    """What is kept of the molecules of training."""
    from rdkit import DataStructs

    places = np.linspace(0, len(smiles) - 1, min(len(smiles), MOST)).round().astype(int)
    prints = _fingerprints([smiles[place] for place in places])
    packed = [np.frombuffer(DataStructs.BitVectToBinaryText(one), np.uint8) for one in prints]
    return TrainingFingerprints(np.unique(np.stack(packed), axis=0))


def _fingerprints(smiles: Sequence[str]) -> list[Any]:
    require_rdkit()
    from rdkit import Chem, rdBase
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    with rdBase.BlockLogs():
        return [generator.GetFingerprint(Chem.MolFromSmiles(text)) for text in smiles]
