"""Count fingerprints and descriptors of whole molecules, beside their graphs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack, vstack

from edgewise.data.atom_properties import atom_roles
from edgewise.data.chemistry import parsed

FINGERPRINT = 65536  # bits of each kind of substructure
COUNT_THRESHOLDS = (1, 2, 4, 8)  # a count sets a bit for each of these that it reaches
COUNT_BITS = FINGERPRINT // len(COUNT_THRESHOLDS)  # of a count, before
_AT_ONCE = 512  # molecules, fewer than are remembered
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
    """Fingerprints, and descriptors on a logarithmic scale.

    The first fingerprint counts substructures (Morgan) and atom pairs by element, the second
    substructures by the role of their atoms (donor, acceptor, aromatic, halogen, basic, acidic).
    What RDKit cannot read has no bits, and zeros.

    Args:
        smiles: Molecules.
        fingerprints: How many of them, the first first.
    """
    from rdkit import rdBase

    starts = range(0, len(smiles) or 1, _AT_ONCE)
    with rdBase.BlockLogs():
        parts = [_described(smiles[first : first + _AT_ONCE], fingerprints) for first in starts]
    kinds = zip(*(part.fingerprints for part in parts), strict=True)
    stacked = (vstack(kind, format="csr") for kind in kinds)
    return Described(tuple(stacked), np.concatenate([part.values for part in parts]))


def _described(smiles: Sequence[str], fingerprints: int) -> Described:
    values, molecules = np.zeros((len(smiles), WIDTH)), [parsed(text) for text in smiles]
    readable = [row for row, m in enumerate(molecules) if m is not None and m.GetNumAtoms() > 0]
    for row in readable:
        values[row] = _numbers(molecules[row])
    some = [molecules[row] for row in readable]
    counts = [_by_element(some)]
    if fingerprints > 1:
        counts.append(_by_role(some, [atom_roles(smiles[row]) for row in readable]))
    matrices = (
        hstack([_bits(one, readable, len(smiles)) for one in kinds], format="csr")
        for kinds in counts
    )
    return Described(tuple(matrices), _tamed(values))


def _by_element(molecules: Sequence[Any]) -> list[Sequence[Any]]:
    """How often each molecule has each substructure, and each pair of atoms."""
    from rdkit.Chem import rdFingerprintGenerator as generators

    pairs = generators.GetAtomPairGenerator(maxDistance=PAIR_DISTANCE, fpSize=COUNT_BITS)
    return [_morgan().GetCountFingerprints(molecules), pairs.GetCountFingerprints(molecules)]


def _by_role(molecules: Sequence[Any], roles: Sequence[Sequence[int]]) -> list[Sequence[Any]]:
    """How often each molecule has each substructure of atoms in their roles."""
    count = _morgan().GetCountFingerprint
    return [[count(m, customAtomInvariants=own) for m, own in zip(molecules, roles, strict=True)]]


def _morgan() -> Any:
    from rdkit.Chem import rdFingerprintGenerator as generators

    return generators.GetMorganGenerator(radius=2, fpSize=COUNT_BITS)


def _bits(counts: Sequence[Any], rows: Sequence[int], height: int) -> csr_matrix:
    """``[height, FINGERPRINT]``: RDKit's fingerprint with ``countSimulation``, from its counts.

    Asking a fingerprint of so many bits which of them are set takes longer than counting.
    """
    found = [sorted(count.GetNonzeroElements().items()) for count in counts]
    pairs = np.array([pair for one in found for pair in one], dtype=np.int64).reshape(-1, 2)
    reached = pairs[:, 1:] >= np.array(COUNT_THRESHOLDS)
    bit = (pairs[:, :1] * len(COUNT_THRESHOLDS) + np.arange(len(COUNT_THRESHOLDS)))[reached]
    row = np.repeat(np.array(rows, dtype=np.int64), [len(one) for one in found])
    of_row = np.repeat(row, reached.sum(axis=1))
    offset = np.searchsorted(of_row, np.arange(height + 1))
    ones = np.ones(len(bit), dtype=np.float32)
    return csr_matrix((ones, bit.astype(np.int32), offset), shape=(height, FINGERPRINT))


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
