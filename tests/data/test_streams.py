"""A table read in stretches is the table; damage is said where it is, and passed by."""

import errno
import gzip

import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.data import streams
from edgewise.data.delimited import Row
from edgewise.data.streams import stream_table
from edgewise.data.tables import read_table


def joined(path, **options):
    cells, broken, rows = {}, {}, 0
    for stretch in stream_table(path, **options):
        for name, column in stretch.table.columns.items():
            cells.setdefault(name, []).extend(column)
        broken |= {rows + row: reason for row, reason in stretch.broken.items()}
        rows += len(stretch.table)
    return cells, broken


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_stretches_of_any_length_make_up_the_table(tmp_path, name, rows):
    text = 'a,b\n1,"x\ny"\n\n2,"p,q"\n3,\n'
    data = text.replace(",", "\t").encode() if name == "t.tsv" else text.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    cells, broken = joined(path, rows=rows)
    whole = read_table(path)
    assert cells == {name: list(column) for name, column in whole.columns.items()}
    assert broken == {}


def test_damage_is_said_and_the_next_row_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,b\n1,2,3\n4,5\n"6"7,8\n9,\xff\n10,11\n')
    cells, broken = joined(path, rows=2)
    assert sorted(broken) == [0, 2, 3]
    assert (cells["a"][1], cells["a"][4]) == ("4", "10")
    assert broken[0] == "3 cells under 2 column names"
    assert "double quote" in broken[2]
    assert "not utf-8" in broken[3]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    for encoding in ("utf-8-sig", "utf-16"):
        path = tmp_path / "t.csv"
        path.write_text("a,b\n1,2\n", encoding=encoding)
        assert joined(path)[0] == {"a": ["1"], "b": ["2"]}


def test_parquet_comes_in_stretches_too(tmp_path):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"a": [1, None, 3], "b": ["x", "y", "z"]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    cells, _ = joined(tmp_path / "t.parquet", rows=2)
    assert cells == {"a": ["1", "", "3"], "b": ["x", "y", "z"]}


def test_structures_come_in_stretches_too(tmp_path):
    from rdkit import Chem

    with Chem.SDWriter(str(tmp_path / "t.sdf")) as writer:
        for smiles in ("CCO", "CCN", "CC"):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("name", smiles)
            if smiles == "CC":
                molecule.SetProp("late", "1.50")
            writer.write(molecule)
    cells, _ = joined(tmp_path / "t.sdf", rows=2)
    assert cells == {
        "smiles": ["CCO", "CCN", "CC"],
        "name": ["CCO", "CCN", "CC"],
        "late": ["", "", "1.50"],
    }


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,a\n1,2\n", "stand twice"),
        ("t.xlsx", b"PK", r"is not a \.csv"),
        ("t.csv.gz", b"a,b\n", "not a complete gzip file"),
        ("t.csv.gz", gzip.compress(b"a,b\n" * 999, mtime=0)[:-9], "not a complete gzip file"),
        ("t.parquet", b"PAR1", "not a whole Parquet file"),
    ],
)
def test_a_file_that_is_none_is_a_sentence(tmp_path, name, data, sentence):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(EdgewiseError, match=sentence):
        joined(tmp_path / name)


def test_a_disk_that_fails_while_a_file_is_read_is_a_sentence(tmp_path, monkeypatch):
    def failing(*_, **__):
        yield Row(["a"], 1)
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "t.csv").write_text("a\n1\n")
    monkeypatch.setattr(streams, "rows_of_text", failing)
    with pytest.raises(EdgewiseError, match=r"t\.csv cannot be read to its end \(Input/output"):
        joined(tmp_path / "t.csv")


def test_an_unknown_encoding_is_a_sentence(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(EdgewiseError, match="no encoding 'klingon'"):
        joined(tmp_path / "t.csv", encoding="klingon")
