"""Whatever a spreadsheet writes is read exactly, or refused with file, line and cure."""

import gc
import gzip
import math
import weakref

import numpy as np
import pandas
import pyarrow as pa
import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.data import arrow_columns
from edgewise.data.streams import stream_table
from edgewise.data.tables import (
    as_number,
    parse_text,
    read_table,
    table_from_columns,
    table_from_frame,
)


@pytest.fixture
def written(tmp_path):
    def write(data: bytes | str, name: str = "t.csv"):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write


@pytest.mark.parametrize(
    "data",
    [
        b'id,about\n1,"a, b"\n2,c\n',  # a quoted comma
        b'id,about\r\n1,"a, b"\r\n2,c\r\n',  # Windows line ends
        b'\xef\xbb\xbfid,about\n1,"a, b"\n2,c\n',  # a byte-order mark
        'id,about\n1,"a, b"\n2,c\n'.encode("utf-16"),  # what Excel calls Unicode text
        b'id,about\n1,"a, b"\n\n2,c\n\n',  # blank lines
        b'id,about\n1,"a, b"\n2,c',  # no last line end
        b' id ,about\n1,"a, b"\n2,c\n',  # spaces around a name
    ],
)
def test_the_same_table_in_many_dresses(written, data):
    table = read_table(written(data))
    assert table.columns == {"id": ("1", "2"), "about": ("a, b", "c")}


def test_tabs_gzip_and_other_delimiters(written):
    assert read_table(written("a\tb\n1\t2\n", "t.tsv")).column("b") == ("2",)
    assert read_table(written(gzip.compress(b"a,b\n1,2\n"), "t.csv.gz")).column("b") == ("2",)
    assert read_table(written("a;b\n1;2\n"), delimiter=";").column("b") == ("2",)


def test_parquet_and_frames_keep_ids_and_gaps(tmp_path):
    frame = pandas.DataFrame({"id": ["007", "NA"], "n": [0.1, None], "k": [3, 4]})
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (read_table(tmp_path / "t.parquet"), table_from_frame(frame)):
        assert table.column("id") == ("007", "NA")
        assert table.column("k") == ("3", "4")
        first, second = table.numbers("n")
        assert first == 0.1
        assert math.isnan(second)
    gaps = pandas.DataFrame({"word": ["a", pandas.NA], "n": [3, pandas.NA]}).convert_dtypes()
    assert table_from_frame(gaps).columns == {"word": ("a", ""), "n": ("3", "")}


def test_lines_are_those_of_the_file_even_after_cells_with_line_ends(written):
    table = read_table(written('id,n\n1,"two\nlines"\n\n2,x\n'))
    assert table.where(1).endswith("t.csv:5")


def test_latin_1_is_refused_with_the_line_and_read_when_told(written):
    path = written("id,city\n1,Rome\n2,Z\xfcrich\n".encode("latin-1"))
    with pytest.raises(EdgewiseError, match=r"t\.csv:3: byte 0xfc is not utf-8.*latin-1"):
        read_table(path)
    assert read_table(path, encoding="latin-1").column("city") == ("Rome", "Z\xfcrich")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", r"t\.csv is empty; expected a header"),
        (b" \n\n", r"t\.csv is empty"),
        (b"id,id\n1,2\n", r"column name\(s\) \[id\] stand twice"),
        (b"a,b\n1,2\n1,2,3\n", r"t\.csv:3: 3 cells under 2 column names; put cells"),
        (b"a,b\n1\n", r"t\.csv:2: 1 cells under 2"),
        (b'a,b\n1,"2\n', r"t\.csv:2: .*double quote"),
    ],
)
def test_a_bad_table_is_refused_with_line_and_cure(written, data, sentence):
    with pytest.raises(EdgewiseError, match=sentence):
        read_table(written(data))


def test_a_truncated_gzip_and_a_cut_parquet_are_sentences(written):
    with pytest.raises(EdgewiseError, match="not a complete gzip file"):
        read_table(written(gzip.compress(b"a,b\n1,2\n")[:-5], "t.csv.gz"))
    with pytest.raises(EdgewiseError, match="not a whole Parquet file"):
        read_table(written(b"PAR1 and no more", "t.parquet"))


def test_a_missing_file_and_a_strange_ending_are_sentences(tmp_path, written):
    with pytest.raises(EdgewiseError, match=r"none\.csv cannot be read \(No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(EdgewiseError, match=r"ends in '\.xlsx'; give a \.csv, \.tsv or"):
        read_table(written("x", "t.xlsx"))
    with pytest.raises(EdgewiseError, match="no encoding 'utf-9'"):
        read_table(written("a\n1\n"), encoding="utf-9")


def test_a_missing_column_shows_the_header_so_a_wrong_delimiter_is_seen():
    with pytest.raises(EdgewiseError, match=r"no column 'a'; its columns are \[a;b\]"):
        parse_text(b"a;b\n1;2\n", "t.csv").column("a")


def test_a_cell_that_is_no_number_is_named():
    numbers = parse_text(b"n\n1\nNA\n1e3\n\n", "t.csv").numbers("n")
    assert numbers == pytest.approx([1.0, math.nan, 1000.0], nan_ok=True)
    with pytest.raises(EdgewiseError, match=r"t\.csv:3: column 'n' holds '3,5', expected a number"):
        parse_text(b'n\n1\n"3,5"\n', "t.csv").numbers("n")
    with pytest.raises(EdgewiseError, match=r"t\.csv:2: column 'n' holds 'inf'"):
        parse_text(b"n\ninf\n", "t.csv").numbers("n")


@pytest.mark.parametrize("data", [b'smiles\nCCO\n""\nCCN\n', b"smiles\nCCO\n  \nCCN\n"])
def test_an_empty_cell_of_the_only_column_is_a_row(data, tmp_path):
    (tmp_path / "list.csv").write_bytes(data)
    (stretch,) = stream_table(tmp_path / "list.csv")
    for table in (parse_text(data, "list.csv"), stretch.table):
        assert [cell.strip() for cell in table.column("smiles")] == ["CCO", "", "CCN"]


def test_codes_with_underscores_are_no_numbers():
    assert as_number("2021_05") is None
    assert as_number("202105") == 202105


def test_cells_that_hold_many_values_are_not_taken_for_gaps():
    frame = pandas.DataFrame({"vector": [np.ones(2), np.zeros(2)]})
    assert all(table_from_frame(frame).column("vector"))


def test_a_slip_in_a_column_of_numbers_is_named():
    from edgewise.data.column_kinds import guess_kind

    table = table_from_columns({"a": [*range(30), "inf"]}, "t")
    with pytest.raises(EdgewiseError, match=r"t, row 30: column 'a' holds 'inf', and numbers else"):
        guess_kind(table, "a")
    assert guess_kind(table_from_columns({"b": [1, "x", *"yz"]}, "t"), "b") == "categories"


def test_arrow_is_not_the_last_to_let_go_of_what_it_reads(written, tmp_path, monkeypatch):
    # Its threads would need the interpreter for it, which may be ending: the process aborted.
    streams = []

    class Watched(pa.PythonFile):
        def __init__(self, stream, mode):
            streams.append(weakref.ref(stream))

    monkeypatch.setattr(arrow_columns.pa, "PythonFile", Watched)
    pandas.DataFrame({"a": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    for path in (written("a,b\n1,2\n"), str(tmp_path / "t.parquet")):
        read_table(path)
        for _ in stream_table(path):
            pass
    gc.collect()
    assert len(streams) == 3
    assert all(stream() is not None for stream in streams)
