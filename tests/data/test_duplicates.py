"""The same molecule is found however it is written, and no other one is."""

import random

import numpy as np
from rdkit import Chem

from edgewise.data.chemistry import read_smiles
from edgewise.data.duplicates import duplicate_groups, duplicate_notices, fingerprints

SMILES = [
    "CCO", "CC(C)Oc1ccccc1", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/F", "F/C=C\\F",
    "[Na+].[Cl-]",
    "c1ccc2ccccc2c1", "c1ccc2cccc2cc1", "C1CCCCC1", "CCCCCC", "[13CH4]", "C", "CC(=O)[O-]", "C#N",
    "C1CC1C1CC1", "C1CCC1CC", "Oc1ccccc1N",
]  # fmt: skip
NOBODY = {"train": np.array([], int), "test": np.array([], int)}


def rewritten(smiles, draw):
    molecule = Chem.MolFromSmiles(smiles)
    order = list(range(molecule.GetNumAtoms()))
    draw.shuffle(order)
    return Chem.MolToSmiles(Chem.RenumberAtoms(molecule, order), canonical=False)


def test_groups_are_those_of_canonical_smiles():
    draw = random.Random(0)
    written = [rewritten(draw.choice(SMILES), draw) for _ in range(150)]
    slow = {}
    for position, smiles in enumerate(written):
        slow.setdefault(Chem.MolToSmiles(Chem.MolFromSmiles(smiles)), []).append(position)
    expected = sorted(group for group in slow.values() if len(group) > 1)
    assert sorted(duplicate_groups(read_smiles(written))) == expected


def test_a_fingerprint_does_not_depend_on_the_writing_and_tells_most_molecules_apart():
    draw = random.Random(1)
    first = fingerprints(read_smiles(SMILES))
    again = fingerprints(read_smiles([rewritten(smiles, draw) for smiles in SMILES]))
    assert (first == again).all()
    # Mirror images, cis and trans, and isotopes agree; RDKit tells those apart.
    assert len(set(first.tolist())) == len(SMILES) - 3


def notices(values, parts):
    smiles = ["CCO", "OCC", "CCN", "NCC", "C"]
    return duplicate_notices(duplicate_groups(read_smiles(smiles)), smiles, parts, values)


def test_molecules_in_two_parts_of_the_split_are_told():
    values = np.array([1.0, 1.0, 2.0, 2.0, 3.0])
    parts = {"train": np.array([0, 2, 4]), "validation": np.array([3]), "test": np.array([])}
    parts = {name: rows.astype(int) for name, rows in parts.items()}
    (told,) = notices(values, parts)
    assert told.startswith("1 molecule [CCN] stands in more than one part of the split")
    together = {"train": np.array([0, 1]), "test": np.array([2, 3, 4])}
    assert notices(values, together) == []


def test_molecules_with_different_values_are_told():
    (told,) = notices(np.array([1.0, 1.5, 2.0, np.nan, 3.0]), NOBODY)
    assert told.startswith("1 molecule [CCO] stands more than once with different values")
    assert notices(np.array([0, 0, 1, -1, 1]), NOBODY) == []
    assert len(notices(np.array([0, 1, 1, -1, 1]), NOBODY)) == 1
    several = np.array([[1.0, 2.0], [1.0, np.nan], [0.0, 1.0], [0.0, 2.0], [1.0, 1.0]])
    (told,) = notices(several, NOBODY)
    assert "[CCN]" in told
