"""Count fingerprints are those of RDKit's own count simulation, asked for one by one."""

import numpy as np
import pytest

from edgewise.data.atom_properties import atom_roles
from edgewise.data.chemistry import parsed
from edgewise.data.descriptors import FINGERPRINT, PAIR_DISTANCE, describe

pytest.importorskip("rdkit", reason="needs the extra molecules")

SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O",
    "C" * 30,  # substructures that occur many times
    "C1CCC2(CC1)OCC(CO2)[N+](C)(C)C.[Cl-]",
    "",
    "no molecule",
    "N[C@@H](Cc1c[nH]c2ccccc12)C(=O)O",
    "[Na+]",
]


def by_rdkit(smiles):
    """``[row][fingerprint]``: the bits that are set."""
    from rdkit.Chem import rdFingerprintGenerator as generators

    options = {"fpSize": FINGERPRINT, "countSimulation": True}
    roles = generators.GetMorganFeatureAtomInvGen()
    kinds = (
        generators.GetMorganGenerator(radius=2, **options),
        generators.GetAtomPairGenerator(maxDistance=PAIR_DISTANCE, **options),
        generators.GetMorganGenerator(radius=2, atomInvariantsGenerator=roles, **options),
    )
    for text in smiles:
        molecule = parsed(text)
        if molecule is None:
            yield [], []
            continue
        morgan, pairs, role = (list(kind.GetFingerprint(molecule).GetOnBits()) for kind in kinds)
        yield morgan + [bit + FINGERPRINT for bit in pairs], role


def test_bits_are_those_of_rdkits_count_simulation():
    found = describe(SMILES)
    for row, wanted in enumerate(by_rdkit(SMILES)):
        for matrix, bits in zip(found.fingerprints, wanted, strict=True):
            assert matrix[[row]].indices.tolist() == bits


def test_the_first_fingerprint_alone_is_the_same():
    (alone,), both = describe(SMILES, 1).fingerprints, describe(SMILES).fingerprints
    assert (alone != both[0]).nnz == 0


def test_nothing_readable_has_no_bits():
    for smiles in ([], ["", "no molecule"]):
        found = describe(smiles)
        assert [matrix.nnz for matrix in found.fingerprints] == [0, 0]
        assert np.all(found.values == 0)
        assert len(found) == len(smiles)


def test_roles_are_the_invariants_that_rdkit_hashes():
    from rdkit.Chem import rdFingerprintGenerator as generators

    invariants = generators.GetMorganFeatureAtomInvGen()
    generator = generators.GetMorganGenerator(radius=0, atomInvariantsGenerator=invariants)
    for text in filter(parsed, SMILES):
        kept = generators.AdditionalOutput()
        kept.AllocateAtomToBits()
        generator.GetSparseCountFingerprint(parsed(text), additionalOutput=kept)
        assert [found[0] for found in kept.GetAtomToBits()] == list(atom_roles(text))
