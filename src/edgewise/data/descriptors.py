"""Count fingerprints and descriptors of whole molecules, beside their graphs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from edgewise.data.chemistry import parsed

FINGERPRINT = 65536  # bits of each of the two; a count sets a bit for each of 1, 2, 4, 8 it reaches
BITS = 2 * FINGERPRINT
PAIR_DISTANCE = 4  # bonds between the atoms of a pair, at most
_NUMBERS = (
    *("CalcTPSA", "CalcExactMolWt", "CalcNumHBD", "CalcNumHBA", "CalcNumRotatableBonds"),
    *("CalcNumRings", "CalcNumAromaticRings", "CalcFractionCSP3", "CalcLabuteASA"),
    *("CalcNumHeteroatoms", "CalcNumAmideBonds", "CalcHallKierAlpha", "CalcKappa1", "CalcKappa2"),
    "CalcChi1v",
)  # functions of RDKit that give one number
# Surface by contribution to logP (12 bins), to refractivity (10) and by partial charge (14).
_SURFACES = {"SlogP_VSA_": 12, "SMR_VSA_": 10, "PEOE_VSA_": 14}
WIDTH = 4 + len(_NUMBERS) + sum(_SURFACES.values())


@dataclass(frozen=True, eq=False)
class Described:
    """Molecules by their fingerprints and descriptors."""

    bits: csr_matrix  # [molecules, BITS], float32, zeros and ones
    values: np.ndarray  # [molecules, WIDTH], float32

    def __len__(self) -> int:
        return len(self.values)

    def some(self, rows: np.ndarray) -> "Described":
        return Described(self.bits[rows], self.values[rows])


def describe(smiles: Sequence[str]) -> Described:
    """Morgan and atom-pair counts, and descriptors on a logarithmic scale; about 1 ms a molecule.

    What RDKit cannot read has no bits, and zeros.
    """
    from rdkit import rdBase
    from rdkit.Chem import rdFingerprintGenerator as generators

    options: dict[str, Any] = {"fpSize": FINGERPRINT, "countSimulation": True}
    kinds = (
        generators.GetMorganGenerator(radius=2, **options),
        generators.GetAtomPairGenerator(maxDistance=PAIR_DISTANCE, **options),
    )
    values = np.zeros((len(smiles), WIDTH))
    bits, offset = [np.zeros(0, dtype=np.int32)], [0]
    with rdBase.BlockLogs():
        for row, text in enumerate(smiles):
            molecule = parsed(text)
            count = 0
            if molecule is not None and molecule.GetNumAtoms():
                values[row] = _numbers(molecule)
                for place, kind in enumerate(kinds):
                    found = np.array(kind.GetFingerprint(molecule).GetOnBits(), dtype=np.int32)
                    bits.append(found + place * FINGERPRINT)
                    count += len(found)
            offset.append(offset[-1] + count)
    indices = np.concatenate(bits)
    ones = np.ones(len(indices), dtype=np.float32)
    shape = (len(smiles), BITS)
    return Described(csr_matrix((ones, indices, np.array(offset)), shape=shape), _tamed(values))


def _numbers(molecule: Any) -> list[Any]:
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    surfaces = [value for name in _SURFACES for value in getattr(rdMolDescriptors, name)(molecule)]
    return [
        *(getattr(rdMolDescriptors, name)(molecule) for name in _NUMBERS),
        *rdMolDescriptors.CalcCrippenDescriptors(
            molecule, includeHs=False
        ),  # logP and refractivity
        *(molecule.GetNumHeavyAtoms(), Chem.GetFormalCharge(molecule)),
        *surfaces,
    ]


def _tamed(values: np.ndarray) -> np.ndarray:
    """Finite, and on a scale on which a large molecule is not far from everything."""
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    return (np.sign(finite) * np.log1p(np.abs(finite))).astype(np.float32)
