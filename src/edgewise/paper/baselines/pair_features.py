"""Molecules as Weave sees them: an edge for every pair of atoms, bonded or not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from edgewise.core.errors import EdgewiseError, preview
from edgewise.data.chemistry import BOND_CODES, MoleculeCodes, read_smiles
from edgewise.data.featurizers import RichFeaturizer
from edgewise.graphs.graph_set import GraphSet

FARTHEST = 7  # bonds; pairs farther apart, or in different fragments, have no distance
RING_SIZES = range(3, 9)
PAIR_FEATURES = (
    *("single", "double", "triple", "aromatic", "conjugated", "bond in ring", "same ring"),
    *(f"distance {bonds}" for bonds in range(1, FARTHEST + 1)),
)
_SAME_RING = PAIR_FEATURES.index("same ring")


def pack_pairs(smiles: Sequence[str]) -> GraphSet:
    """Featurise molecules for Weave.

    An atom has the features of the ``rich`` featuriser and the number of rings of each size from
    3 to 8 that it lies in; a pair has the 14 of :data:`PAIR_FEATURES`. That is what MoleculeNet
    uses, with chirality and ring sizes of `Kearnes et al. (2016)
    <https://arxiv.org/abs/1603.00856>`_ added and implicit valence, which the number of hydrogens
    tells, left out. Their partial charges and hydrogen bonding are left out, as in MoleculeNet.

    Returns:
        A set whose edges are the pairs. A pair is the same from both ends, so it is there once,
        with the end first that comes first in the molecule; each atom is paired with itself, too.
    """
    codes = read_smiles(smiles)
    if codes.invalid:
        rows = preview([row for row, _, _ in codes.invalid])
        raise EdgewiseError(f"row(s) {rows} cannot be read as SMILES; leave them out")
    ring_sizes, ends, features = [], [], []
    for number, molecule in enumerate(_molecules(codes)):
        pairs = _pair_matrix(codes, number, molecule)
        upper = np.triu_indices(len(pairs))
        ring_sizes.append(_ring_sizes(molecule))
        ends.append(np.stack(upper))
        features.append(pairs[upper])
    atoms = RichFeaturizer(()).atoms(codes)
    counts = [0, *(len(pairs) for pairs in features)]
    return GraphSet(
        x=torch.from_numpy(np.concatenate([atoms, np.concatenate(ring_sizes)], axis=1)),
        edge_index=torch.from_numpy(np.concatenate(ends, axis=1)),
        edge_attr=torch.from_numpy(np.concatenate(features).astype(np.float32)),
        node_offset=torch.from_numpy(codes.atom_offset),
        edge_offset=torch.tensor(counts).cumsum(0),
        ids=codes.smiles,
        rows=torch.from_numpy(codes.rows),
        channel_names=PAIR_FEATURES,
    )


def _molecules(codes: MoleculeCodes) -> list[Any]:
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        return [Chem.MolFromSmiles(text) for text in codes.smiles]


def _pair_matrix(codes: MoleculeCodes, number: int, molecule: Any) -> np.ndarray:
    """``[atoms, atoms, features]`` of one molecule, truth values."""
    from rdkit.Chem import GetDistanceMatrix

    atoms = molecule.GetNumAtoms()
    pairs = np.zeros((atoms, atoms, len(PAIR_FEATURES)), dtype=bool)
    mine = slice(codes.bond_offset[number], codes.bond_offset[number + 1])
    first, second = codes.ends[mine].T
    bonds = _bond_features(codes.bonds[mine])
    pairs[first, second, :_SAME_RING] = pairs[second, first, :_SAME_RING] = bonds
    for ring in molecule.GetRingInfo().AtomRings():
        pairs[np.ix_(ring, ring, [_SAME_RING])] = True
    pairs[range(atoms), range(atoms), _SAME_RING] = False  # of two atoms, not of one
    distance = GetDistanceMatrix(molecule)
    pairs[..., _SAME_RING + 1 :] = distance[..., None] == np.arange(1, FARTHEST + 1)
    return pairs


def _bond_features(bonds: np.ndarray) -> np.ndarray:
    code = dict(zip(BOND_CODES, bonds.T, strict=True))
    single, aromatic, double, triple = (code["order"] == order for order in range(4))
    columns = (single, double, triple, aromatic, code["conjugated"], code["in_ring"])
    return np.stack(columns, axis=1).astype(bool)


def _ring_sizes(molecule: Any) -> np.ndarray:
    """How many rings of each size every atom lies in, ``[atoms, sizes]``."""
    counts = np.zeros((molecule.GetNumAtoms(), len(RING_SIZES)), dtype=np.float32)
    for ring in molecule.GetRingInfo().AtomRings():
        if len(ring) in RING_SIZES:
            counts[list(ring), RING_SIZES.index(len(ring))] += 1
    return counts
