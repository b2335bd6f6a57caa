"""Features say what the chemist drew, and the vocabulary knows only the training molecules."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

from edgewise.core.declarations import ModelSettings
from edgewise.core.errors import EdgewiseError
from edgewise.core.registries import FEATURIZERS
from edgewise.data.atom_properties import NAMES, atom_properties
from edgewise.data.chemistry import read_smiles
from edgewise.data.featurizers import (
    Featurizer,
    PaperFeaturizer,
    PropertiesFeaturizer,
    RichFeaturizer,
    load_featurizer,
)

ETHANOL, BENZOATE, ACETYLENE = "CCO", "[O-]C(=O)c1ccccc1", "C#C"


def learnt(codes, train, kind="paper", threshold=10):
    settings = ModelSettings(featurizer=kind, pair_threshold=threshold)
    return FEATURIZERS[kind].learn(codes, np.array(train, dtype=np.int64), settings)


def atoms_of(smiles: str, kind: str = "paper") -> list[set[str]]:
    """For each atom, the names of its features that are not zero."""
    codes, featurizer = read_smiles([smiles]), FEATURIZERS[kind](())
    names = featurizer.atom_names
    return [{names[i] for i in np.nonzero(row)[0]} for row in featurizer.atoms(codes)]


def bonds_of(smiles: str, featurizer: Featurizer) -> list[set[str]]:
    codes, names = read_smiles([smiles]), featurizer.channel_names
    return [{names[i] for i in np.nonzero(row)[0]} for row in featurizer.bonds(codes)]


def test_the_paper_featuriser_gives_25_numbers_an_atom():
    assert len(PaperFeaturizer(()).atom_names) == 25


def test_an_atom_is_described_by_what_it_is():
    methyl, methylene, hydroxyl = atoms_of(ETHANOL)
    assert methyl == {"element C", "degree 1", "hydrogens 3"}
    assert methylene == {"element C", "degree 2", "hydrogens 2"}
    assert hydroxyl == {"element O", "degree 1", "hydrogens 1"}
    assert atoms_of(BENZOATE)[0] == {"element O", "degree 1", "hydrogens 0", "charge"}
    assert {"aromatic", "in ring"} <= atoms_of(BENZOATE)[4]


def test_a_charge_keeps_its_sign():
    featurizer = PaperFeaturizer(())
    codes = read_smiles(["[O-]C=[NH2+]"])
    charge = featurizer.atoms(codes)[:, featurizer.atom_names.index("charge")]
    assert charge.tolist() == [-1, 0, 1]


def test_counts_beyond_the_last_share_its_place():
    sulfur = atoms_of("FS(F)(F)(F)(F)F")[1]
    assert "degree 5" in sulfur


def test_elements_outside_the_list_are_other():
    assert "element other" in atoms_of("[Na+]")[0]
    assert "element Na" in atoms_of("[Na+]", "rich")[0]
    assert "element other" in atoms_of("[U]", "rich")[0]


def test_the_rich_featuriser_sees_chirality_hybridisation_and_radicals():
    left, right = (atoms_of(s, "rich")[1] for s in ("N[C@H](C)O", "N[C@@H](C)O"))
    assert {"chirality clockwise", "chirality counterclockwise"} & left
    assert left ^ right == {"chirality clockwise", "chirality counterclockwise"}
    assert "hybridisation sp" in atoms_of(ACETYLENE, "rich")[0]
    assert "radical electrons 1" in atoms_of("[CH3]", "rich")[0]


def test_the_contributions_of_atoms_sum_up_to_the_properties_of_their_molecule():
    for smiles in (ETHANOL, BENZOATE, ACETYLENE, "CC(=O)Nc1ccc(Cl)cc1", "C[N+](C)(C)C", "O"):
        found = dict(zip(NAMES, atom_properties([smiles]).T.astype(float), strict=True))
        molecule = Chem.MolFromSmiles(smiles)
        log_p, refractivity = rdMolDescriptors.CalcCrippenDescriptors(molecule, includeHs=False)
        assert found["logP contribution"].sum() == pytest.approx(log_p, abs=1e-4)
        total = found["refractivity contribution"].sum() / 0.2
        assert total == pytest.approx(refractivity, abs=1e-3)
        assert found["polar surface"].sum() / 0.05 == pytest.approx(
            rdMolDescriptors.CalcTPSA(molecule)
        )


def test_atoms_have_the_roles_that_chemists_give_them():
    names = [atoms_of(s, "properties") for s in ("NCCCl", "CC(=O)O", "c1ccc2ccccc2c1")]
    amine, acid, naphthalene = names
    assert {"donor", "acceptor", "basic"} <= amine[0]
    assert {"acidic"} <= acid[1] | acid[2] | acid[3]
    assert all("in ring of 6" in atom for atom in naphthalene)
    assert sum("in several rings" in atom for atom in naphthalene) == 2


def test_properties_follow_those_of_the_rich_featuriser():
    codes = read_smiles([ETHANOL, BENZOATE])
    rich, both = RichFeaturizer(()), PropertiesFeaturizer(())
    atoms = both.atoms(codes)
    assert atoms.shape == (len(codes.atoms), len(both.atom_names))
    assert (atoms[:, : len(rich.atom_names)] == rich.atoms(codes)).all()
    assert (atoms[:, len(rich.atom_names) :] == atom_properties([ETHANOL, BENZOATE])).all()


def test_the_rich_featuriser_sees_the_two_sides_of_a_double_bond():
    rich = RichFeaturizer(())
    assert "stereo E" in bonds_of("F/C=C/F", rich)[1]
    assert "stereo Z" in bonds_of("F/C=C\\F", rich)[1]


def test_a_bond_is_its_pair_of_elements_its_order_and_its_place():
    featurizer = PaperFeaturizer(((6, 6), (6, 8)))
    assert bonds_of("C=O", featurizer) == [{"C-O", "double"}]
    assert bonds_of("C#N", featurizer) == [{"other pair", "triple"}]
    ring = bonds_of("c1ccccc1", featurizer)[0]
    assert ring == {"C-C", "aromatic", "aromatic ring", "conjugated", "in ring"}


def test_a_bond_reads_the_same_from_both_ends():
    featurizer = PaperFeaturizer(((6, 8),))
    assert bonds_of("CO", featurizer) == bonds_of("OC", featurizer)


def test_the_vocabulary_comes_from_the_training_molecules_alone():
    codes = read_smiles(["CCO", "CCO", "CS", "CS"])
    assert learnt(codes, [0, 1], threshold=0).pairs == ((6, 6), (6, 8))
    assert learnt(codes, [0, 1, 2], threshold=1).pairs == ((6, 6), (6, 8))
    assert learnt(codes, [2], threshold=0).pairs == ((6, 16),)
    assert learnt(codes, [], threshold=0).pairs == ()


def test_what_was_learnt_comes_back_from_its_file(tmp_path):
    featurizer = learnt(read_smiles([ETHANOL, BENZOATE]), [0, 1], kind="rich", threshold=0)
    featurizer.save(tmp_path / "featurizer.json")
    assert load_featurizer(tmp_path / "featurizer.json") == featurizer


@pytest.mark.parametrize("content", ["", "{}", '{"kind": "new", "pairs": []}', '{"kind": "rich"}'])
def test_a_file_that_is_no_featuriser_is_a_sentence(tmp_path, content):
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(EdgewiseError, match=r"not a saved featuriser|no featuriser 'new'"):
        load_featurizer(tmp_path / "f.json")


@pytest.mark.parametrize(
    ("smiles", "atoms", "bonds"),
    [
        ("C" * 300, 300, 299),  # a 300-atom molecule
        ("[Na+].[Cl-]", 2, 0),  # a salt
        ("CC(=O)[O-].[Na+]", 5, 3),
        ("[K+]", 1, 0),  # a lone ion
        ("C", 1, 0),
        ("[H][H]", 2, 1),
        ("*CC", 3, 2),  # an attachment point
        ("N->[Pt]", 2, 1),  # a bond of an order without a channel
    ],
)
def test_unusual_molecules_are_molecules(smiles, atoms, bonds):
    codes = read_smiles([smiles])
    assert (len(codes.atoms), len(codes.bonds), codes.invalid) == (atoms, bonds, ())
    for kind in ("paper", "rich", "properties"):
        featurizer = learnt(codes, [0], kind=kind)
        assert np.isfinite(featurizer.atoms(codes)).all()
        assert featurizer.bonds(codes).min(initial=0) >= 0


def test_unreadable_rows_are_listed_with_row_and_reason():
    codes = read_smiles(["CC", "", "C(", "c1cccc1", "CN(C)(C)(C)C", "O"])
    assert codes.rows.tolist() == [0, 5]
    assert [(row, reason) for row, _, reason in codes.invalid] == [
        (1, "no SMILES"),
        (2, "not a SMILES that RDKit can parse"),
        (3, "Can't kekulize mol.  Unkekulized atoms: 0 1 2 3 4"),
        (4, "Explicit valence for atom # 1 N, 5, is greater than permitted"),
    ]


@pytest.mark.slow
def test_two_processes_read_what_one_reads():
    smiles = ["CCO", "C(", "c1ccccc1O"] * 400
    seen = []
    alone = read_smiles(smiles)
    together = read_smiles(smiles, workers=2, progress=lambda *step: seen.append(step[1:]))
    for name, value in vars(alone).items():
        assert np.array_equal(getattr(together, name), value), name
    assert seen == [(512, 1200), (1024, 1200), (1200, 1200)]


@pytest.mark.slow
@pytest.mark.dataset
@pytest.mark.parametrize(
    ("name", "molecules", "invalid", "lone", "largest", "atoms"),
    [
        ("freesolv", 642, 0, 3, 24, 8.72),
        ("lipo", 4200, 0, 0, 115, 27.04),
        ("tox21", 7831, 8, 19, 132, 18.57),
    ],
)
def test_the_real_sets_have_the_published_counts(
    name, molecules, invalid, lone, largest, atoms, need
):
    from edgewise.data.molecule_tables import read_named

    need(name)
    codes = read_smiles(read_named(name).smiles)
    sizes = np.diff(codes.atom_offset)
    assert len(codes) + len(codes.invalid) == molecules
    assert len(codes.invalid) == invalid
    assert int((np.diff(codes.bond_offset) == 0).sum()) == lone
    assert sizes.max() == largest
    assert round(float(sizes.mean()), 2) == atoms
