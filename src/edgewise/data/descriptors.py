"""Count fingerprints and descriptors of whole molecules, beside their graphs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from edgewise.data.chemistry import parsed

FINGERPRINT = 65536  # bits of each count; it sets a bit for each of 1, 2, 4, 8 it reaches
PAIR_DISTANCE = 4  # bonds between the atoms of a pair, at most
BITS = (2 * FINGERPRINT, FINGERPRINT)  # substructures and atom pairs; the same by role
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

    fingerprints: tuple[csr_matrix, ...]  # [molecules, one of BITS] each, float32, zeros and ones
    values: np.ndarray  # [molecules, WIDTH], float32

    def __len__(self) -> int:
        return len(self.values)

    def some(self, rows: np.ndarray) -> "Described":
        return Described(tuple(one[rows] for one in self.fingerprints), self.values[rows])


def describe(smiles: Sequence[str], fingerprints: int = len(BITS)) -> Described:
    """Fingerprints, and descriptors on a logarithmic scale; about 1 ms a molecule.

    The first fingerprint counts substructures (Morgan) and atom pairs by element, the second
    substructures by the role of their atoms (donor, acceptor, aromatic, halogen, basic, acidic).
    What RDKit cannot read has no bits, and zeros.

    Args:
        smiles: Molecules.
        fingerprints: How many of them, the first first.
    """
    from rdkit import rdBase

    values = np.zeros((len(smiles), WIDTH))
    counted = _generators()[:fingerprints]
    found: list[list[np.ndarray]] = [[] for _ in counted]  # a molecule an array
    with rdBase.BlockLogs():
        for row, text in enumerate(smiles):
            molecule = parsed(text)
            readable = molecule is not None and molecule.GetNumAtoms() > 0
            if readable:
                values[row] = _numbers(molecule)
            for kinds, rows in zip(counted, found, strict=True):
                rows.append(_bits(kinds, molecule) if readable else np.zeros(0, dtype=np.int32))
    matrices = (_matrix(rows, width) for rows, width in zip(found, BITS, strict=False))
    return Described(tuple(matrices), _tamed(values))


@cache
def _generators() -> tuple[tuple[Any, ...], ...]:
    """What counts each of the fingerprints, side by side."""
    from rdkit.Chem import rdFingerprintGenerator as generators

    options: dict[str, Any] = {"fpSize": FINGERPRINT, "countSimulation": True}
    by_role = {"atomInvariantsGenerator": generators.GetMorganFeatureAtomInvGen()}
    return (
        (
            generators.GetMorganGenerator(radius=2, **options),
            generators.GetAtomPairGenerator(maxDistance=PAIR_DISTANCE, **options),
        ),
        (generators.GetMorganGenerator(radius=2, **options, **by_role),),
    )


def _bits(kinds: tuple[Any, ...], molecule: Any) -> np.ndarray:
    parts = [np.array(kind.GetFingerprint(molecule).GetOnBits(), dtype=np.int32) for kind in kinds]
    return np.concatenate([part + k * FINGERPRINT for k, part in enumerate(parts)])


def _matrix(rows: list[np.ndarray], width: int) -> csr_matrix:
    """One row for each array of the places of its ones."""
    indices = np.concatenate([np.zeros(0, dtype=np.int32), *rows])
    offset = np.cumsum([0, *map(len, rows)])
    ones = np.ones(len(indices), dtype=np.float32)
    return csr_matrix((ones, indices, offset), shape=(len(rows), width))


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
