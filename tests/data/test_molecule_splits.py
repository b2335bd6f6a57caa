"""Scaffolds stay together; columns and files are taken at their word."""

import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.data.chemistry import read_smiles
from edgewise.data.molecule_splits import (
    scaffold_split,
    scaffolds,
    split_by_column,
    split_by_file,
)
from edgewise.data.splits import given_split
from edgewise.data.tables import parse_text

RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCNCC1", "c1ccoc1", "c1ccsc1", "C1CC1", "C1CCC1"]
SMILES = [f"{'C' * n}{ring}" for ring in RINGS for n in range(1, 6)]


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_molecules_with_one_scaffold_stay_together(seed):
    split = scaffold_split(SMILES, (0.2, 0.4, 0.4), seed=seed)
    found = scaffolds(SMILES)
    sides = [{found[i] for i in part.tolist()} for part in split.parts().values()]
    assert not sides[0] & sides[1] | sides[0] & sides[2] | sides[1] & sides[2]
    assert sum(len(part) for part in split.parts().values()) == len(SMILES)


def test_a_seed_deals_scaffolds_anew():
    one, other = (scaffold_split(SMILES, (0.2, 0.4, 0.4), seed=s).test.tolist() for s in (0, 1))
    assert one != other


def test_a_molecule_without_a_ring_has_the_empty_scaffold():
    assert scaffolds(["CCO", "Cc1ccccc1"]) == ["", "c1ccccc1"]


def test_an_unreadable_molecule_has_no_scaffold():
    with pytest.raises(EdgewiseError, match=r"molecule 1, 'C\(', cannot be read"):
        scaffolds(["C", "C("])


def test_a_column_says_where_each_row_goes():
    table = parse_text(b"smiles,set\nC,Train\nC(,train\nCC,VAL\nO,\nN,test\n", "m.csv")
    codes = read_smiles(table.column("smiles"))
    by_row = split_by_column(table, "set")
    assert [part.tolist() for part in by_row.parts().values()] == [[0, 1], [2], [4]]
    by_molecule = split_by_column(table, "set", codes.rows)
    assert [part.tolist() for part in by_molecule.parts().values()] == [[0], [1], [3]]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (b"set\nlearn\n", r"m\.csv:2: column 'set' holds 'learn'"),
        (b"set\ntest\n", "no row to training"),
    ],
)
def test_a_column_that_says_something_else_is_refused(column, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        split_by_column(parse_text(column, "m.csv"), "set")


def test_a_file_of_rows_is_turned_into_molecules(tmp_path):
    codes = read_smiles(["C", "C(", "CC", "O"])
    given_split([0, 1], [2], [3]).save(tmp_path / "split.json")
    split = split_by_file(tmp_path / "split.json", codes.rows, 4)
    assert [part.tolist() for part in split.parts().values()] == [[0], [1], [2]]
    given_split([0], [2], [9]).save(tmp_path / "split.json")
    with pytest.raises(EdgewiseError, match=r"test names row\(s\) \[9\], but the table has 4 rows"):
        split_by_file(tmp_path / "split.json", codes.rows, 4)
