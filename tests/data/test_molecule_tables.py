"""A chemist's file is read row by row; bad rows are refused, left out, or kept empty."""

import gzip

import numpy as np
import pandas
import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.data.molecule_tables import (
    read_molecules,
    read_named,
    read_structures,
    write_invalid,
)
from edgewise.data.streams import stream_table

CSV = (
    'name,SMILES,logp,active\n"acid, acetic",CC(=O)O,-0.2,1\nnothing,C(,,0\nsalt,[Na+].[Cl-],1.5,\n'
)


@pytest.fixture
def csv_file(tmp_path):
    (tmp_path / "m.csv").write_text(CSV)
    return tmp_path / "m.csv"


def test_targets_are_numbers_with_gaps_and_the_smiles_column_is_found(csv_file):
    source = read_molecules(csv_file)
    assert source.smiles == ("CC(=O)O", "C(", "[Na+].[Cl-]")
    assert np.array_equal(source.table.numbers("logp"), [-0.2, np.nan, 1.5], equal_nan=True)
    assert np.array_equal(source.table.numbers("active"), [1, 0, np.nan], equal_nan=True)


def test_tsv_and_parquet_hold_the_same(csv_file, tmp_path):
    frame = pandas.read_csv(csv_file)
    frame.to_csv(tmp_path / "m.tsv", sep="\t", index=False)
    frame.to_parquet(tmp_path / "m.parquet")
    expected = read_molecules(csv_file)
    for name in ("m.tsv", "m.parquet"):
        source = read_molecules(tmp_path / name)
        assert source.smiles == expected.smiles
        logp = source.table.numbers("logp")
        assert np.array_equal(logp, expected.table.numbers("logp"), equal_nan=True)


def test_an_sdf_gives_structures_and_properties(tmp_path):
    from rdkit import Chem

    with Chem.SDWriter(str(tmp_path / "m.sdf")) as writer:
        for smiles, value in (("C[C@H](N)O", 1.5), ("c1ccccc1", 2.5)):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetDoubleProp("logp", value)
            writer.write(molecule)
    content = (tmp_path / "m.sdf").read_text()
    (tmp_path / "m.sdf").write_text(content + "broken\n\n\nnot a count line\nM  END\n$$$$\n")
    source = read_molecules(tmp_path / "m.sdf")
    assert source.smiles == ("C[C@H](N)O", "c1ccccc1", "")
    assert source.table.numbers("logp")[:2].tolist() == [1.5, 2.5]
    codes, invalid = read_structures(source, on_invalid="skip")
    assert (len(codes), invalid[0].row) == (2, 2)
    with pytest.raises(EdgewiseError, match=r"m\.sdf, row 2: '': no SMILES"):
        read_structures(source)
    (tmp_path / "m.sdf.gz").write_bytes(gzip.compress((tmp_path / "m.sdf").read_bytes()))
    assert read_molecules(tmp_path / "m.sdf.gz").smiles == source.smiles


def test_an_sdf_of_another_encoding_is_refused_with_its_line_and_read_when_told(tmp_path):
    from rdkit import Chem

    with Chem.SDWriter(str(tmp_path / "m.sdf")) as writer:
        for smiles in ("CCO", "CCN"):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("city", "Zurich")
            writer.write(molecule)
    data = (tmp_path / "m.sdf").read_bytes().replace(b"Zurich", b"Z\xfcrich")
    (tmp_path / "m.sdf").write_bytes(data)

    def streamed(path, **options):
        (stretch,) = stream_table(path, **options)
        return stretch.table

    for read in (streamed, lambda path, **options: read_molecules(path, **options).table):
        with pytest.raises(EdgewiseError, match=r"m\.sdf:12: byte 0xfc is not utf-8.*latin-1"):
            read(tmp_path / "m.sdf")
        table = read(tmp_path / "m.sdf", encoding="latin-1")
        assert table.column("city") == ("Z\xfcrich",) * 2
        assert table.column("smiles") == ("CCO", "CCN")


def test_more_molecules_than_fit_into_memory_are_refused_before_they_are_read(
    csv_file, monkeypatch
):
    monkeypatch.setattr("edgewise.data.molecule_tables.memory_limit", lambda: 2048)
    with pytest.raises(EdgewiseError, match=r"m\.csv holds 3 rows.*more than memory allows"):
        read_molecules(csv_file)


def test_smiles_are_never_missing_words(tmp_path):
    (tmp_path / "m.csv").write_text("smiles,y\nC,1\nN,?\n")
    source = read_molecules(tmp_path / "m.csv", missing_values=["C"])
    assert source.smiles == ("C", "N")
    assert np.isnan(source.table.numbers("y")[1])


def test_the_first_bad_row_ends_the_reading_with_its_line(csv_file):
    source = read_molecules(csv_file)
    with pytest.raises(EdgewiseError, match=r"m\.csv:3: 'C\(': not a SMILES .*--on-invalid skip"):
        read_structures(source)


def test_bad_rows_are_skipped_and_listed_in_a_file(csv_file, tmp_path):
    codes, invalid = read_structures(read_molecules(csv_file), on_invalid="skip")
    write_invalid(tmp_path / "invalid.csv", invalid)
    assert (tmp_path / "invalid.csv").read_text() == (
        "row,line,smiles,reason\n1,3,C(,not a SMILES that RDKit can parse\n"
    )
    assert codes.rows.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("a,b\n1,2\n", {}, r"no column looks like SMILES among \[a, b\]; name it"),
        ("smiles,mol\nC,C\n", {}, "several columns look like SMILES"),
        ("", {}, "is empty"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_sentence(tmp_path, text, options, sentence):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(EdgewiseError, match=sentence):
        read_molecules(tmp_path / "m.csv", **options)


def test_a_file_without_one_molecule_and_a_strange_policy_are_refused(tmp_path):
    (tmp_path / "m.csv").write_text("smiles\nC(\n")
    source = read_molecules(tmp_path / "m.csv")
    with pytest.raises(EdgewiseError, match="holds no molecule that can be read"):
        read_structures(source, on_invalid="skip")
    with pytest.raises(EdgewiseError, match="on_invalid='drop' is not known; choose one of error"):
        read_structures(source, on_invalid="drop")
    (tmp_path / "m.sdf").write_text("")
    with pytest.raises(EdgewiseError, match="is empty; expected an SDF"):
        read_molecules(tmp_path / "m.sdf")


def test_a_citation_network_is_not_a_set_of_molecules():
    with pytest.raises(EdgewiseError, match="cora is not a set of molecules"):
        read_named("cora")


@pytest.mark.dataset
def test_the_real_targets_have_the_published_statistics(need):
    for name, mean, deviation in (("freesolv", -3.803, 3.8448), ("lipo", 2.1863, 1.2029)):
        need(name)
        source = read_named(name)
        value = source.table.numbers(source.targets[0])
        assert round(float(value.mean()), len(str(mean).split(".")[1])) == mean
        assert round(float(value.std()), 4) == deviation
    need("tox21")
    source = read_named("tox21")
    targets = np.stack([source.table.numbers(name) for name in source.targets], axis=1)
    assert (targets == 1).sum(axis=0).tolist() == [
        *(309, 237, 768, 300, 793, 350, 186, 942, 264, 372, 918, 423)
    ]
    assert np.isnan(targets).sum(axis=0).tolist() == [
        *(566, 1073, 1282, 2010, 1638, 876, 1381, 1999, 759, 1364, 2021, 1057)
    ]
