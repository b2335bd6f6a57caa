"""What each atom contributes to properties of its molecule, and its role in it, by RDKit."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from edgewise.data.chemistry import REMEMBERED, parsed

ROLES = {"donor": 0, "acceptor": 1, "basic": 4, "acidic": 5}  # bits of RDKit's invariants
RING_SIZES = (3, 4, 5, 6, 7)
# So that the numbers of most atoms lie between -1 and 1.
_REFRACTIVITY, _POLAR_SURFACE = 0.2, 0.05
NAMES = (
    *("logP contribution", "refractivity contribution", "polar surface"),
    *ROLES,
    *(f"in ring of {size}" for size in RING_SIZES),
    "in several rings",
)


def atom_properties(smiles: Sequence[str]) -> np.ndarray:
    """``[atoms, len(NAMES)]``, float32, of molecules that RDKit can read, one after another.

    Contributions to logP and refractivity are those of Wildman and Crippen (1999), to the polar
    surface those of Ertl, Rohde and Selzer (2000), roles those of Gobbi and Poppinger (1998).
    """
    from rdkit.Chem import rdMolDescriptors

    # Lists of all atoms, for an array a molecule takes longer than what RDKit does.
    crippen: list[tuple[float, float]] = []
    polar: list[float] = []
    roles: list[int] = []
    ring_size: list[int] = []  # of each atom of each ring, and its place among all atoms
    ring_atom: list[int] = []
    for text in smiles:
        molecule, first = parsed(text), len(crippen)
        crippen += rdMolDescriptors._CalcCrippenContribs(molecule)
        polar += rdMolDescriptors._CalcTPSAContribs(molecule)
        roles += atom_roles(text)
        for ring in molecule.GetRingInfo().AtomRings():
            ring_size += [len(ring)] * len(ring)
            ring_atom += [first + atom for atom in ring]
    values = np.zeros((len(crippen), len(NAMES)))
    values[:, :2] = np.array(crippen).reshape(-1, 2) * [1, _REFRACTIVITY]
    values[:, 2] = np.array(polar) * _POLAR_SURFACE
    bits = np.array(roles, dtype=np.int64)[:, None] >> np.array(list(ROLES.values())) & 1
    values[:, 3 : 3 + len(ROLES)] = bits
    size, atom = np.array(ring_size, dtype=np.int64), np.array(ring_atom, dtype=np.int64)
    for place, wanted in enumerate(RING_SIZES, start=3 + len(ROLES)):
        values[atom[size == wanted], place] = 1
    values[:, -1] = np.bincount(atom, minlength=len(values)) > 1
    return np.nan_to_num(values).astype(np.float32)


@lru_cache(REMEMBERED)
def atom_roles(smiles: str) -> tuple[int, ...]:
    """A number for each atom of a molecule that RDKit can read, whose bits are its roles."""
    from rdkit.Chem import rdMolDescriptors

    return tuple(rdMolDescriptors.GetFeatureInvariants(parsed(smiles)))
