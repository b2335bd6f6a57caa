"""Arrow reads what the exact reader reads; no row is lost to a quote; no text ends in a stack."""

import gzip
import io
import tracemalloc

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from edgewise.core.errors import EdgewiseError
from edgewise.data import arrow_columns
from edgewise.data.arrow_columns import TextFile
from edgewise.data.streams import stream_table
from edgewise.data.tables import parse_text, read_table

PIECES = st.sampled_from(
    ["a", "b", ",", "\n", "\r\n", "\r", " ", "NA", "1.5", "\u00e9", "\0", '"', "\u2028", "\x1c"]
)


def text_file(data: bytes) -> TextFile:
    return TextFile("t.csv", lambda: io.BytesIO(data), "utf-8", ",")


def outcome(read):
    try:
        return {name: column.to_pylist() for name, column in read().items()}
    except EdgewiseError as error:
        return str(error)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["x\n", "x,y\n", "\n\nx,y\r\n", "\ufeffx,y\n"]), st.lists(PIECES, max_size=25)
)
def test_the_fast_reader_and_the_exact_one_agree_on_every_text(header, pieces):
    file = text_file((header + "".join(pieces)).encode())
    assert outcome(file.columns) == outcome(file.exact_columns)


def test_text_without_quotes_is_read_by_arrow(monkeypatch):
    monkeypatch.setattr(TextFile, "exact_columns", lambda _: pytest.fail("read row by row"))
    file = text_file(b"x,y\r\n1,\xc3\xa9\r\n \r\n\r\n2,\r\n")
    assert outcome(file.columns) == {"x": ["1", "2"], "y": ["\u00e9", ""]}


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(["1,2\n", '"a\nb",2\n', "\n", " \n", '"p\r\nq\nr",""\r\n']), max_size=9
    )
)
def test_every_row_knows_its_line(rows):
    table = parse_text(("x,y\n" + "".join(rows)).encode(), "t.csv")
    line, lines = 1, []
    for row in rows:
        line += row.count("\n")
        lines += [line] if row.strip() else []
    assert [table.where(i) for i in range(len(table))] == [f"t.csv:{n}" for n in lines]


def all_rows(path, **options):
    return sum(len(stretch.table) for stretch in stream_table(path, **options))


STRAY = [f"C{'C' * (i % 5)},{i}" for i in range(5000)]


@pytest.mark.parametrize("read", [all_rows, read_table])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('smiles\nC\n"CC\nCCC\nCCCC\n', "t.csv:3"),  # never closed
        ('smiles\nC\n"CC\nCCC"\nCCCC\n', "t.csv:3"),  # closed one row later
        ("smiles,y\n" + "\n".join([*STRAY[:10], '"' + STRAY[10], *STRAY[11:]]), "t.csv:12"),
        (
            "smiles,y\n" + "\n".join([*STRAY[:10], '"' + STRAY[10], *STRAY[11:], 'C,5"']),
            "t.csv:12",
        ),
        ('smiles,y\nC,1\n"CC,2\nCCC,3\n"a, b",4\n', "t.csv:3"),  # closed by the next quote
        ('smiles,y\nC,1\n"CC,2\nCCC,3"\nC,4\n', "t.csv:3"),  # one cell in place of two rows
    ],
)
def test_a_stray_quote_loses_no_row_silently(tmp_path, read, text, place):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(EdgewiseError, match=f"{place}: a double quote opens a cell that goes on"):
        read(tmp_path / "t.csv")


def test_cells_of_several_lines_are_cells(tmp_path):
    note = '"Dear Sir,\nthank you.\n\nYours,\nBob, and Ann"'
    molfile = '"\n' + "  0.0 1.0 C\n" * 200 + 'M  END"'
    (tmp_path / "t.csv").write_text(f"id,note\n1,{note}\n2,{molfile}\n3,x\n")
    assert len(read_table(tmp_path / "t.csv")) == all_rows(tmp_path / "t.csv") == 3


@pytest.mark.parametrize("read", [all_rows, read_table])
@pytest.mark.parametrize(
    ("data", "encoding", "sentence"),
    [
        ("a,b\n1,2\n".encode("utf-16")[:-1], "utf-8", "t.csv:2: the utf-16 text ends within a"),
        (b"a,b\n1,2\n", "utf-16", "no byte-order mark.*utf-16-le or utf-16-be"),
        (b"a,b\n1,2\n", "utf-32", "no byte-order mark.*utf-32-le or utf-32-be"),
        (b"a,b\n1,2\n", "base64", "there is no encoding 'base64'"),
        (b"a,b\n1,2\n", "a\0b", "there is no encoding"),
    ],
)
def test_an_encoding_that_does_not_fit_is_a_sentence(tmp_path, read, data, encoding, sentence):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(EdgewiseError, match=sentence):
        read(tmp_path / "t.csv", encoding=encoding)


def test_utf_32_with_its_mark_is_not_taken_for_utf_16(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n", encoding="utf-32")
    assert read_table(tmp_path / "t.csv").columns == {"a": ("1",), "b": ("2",)}
    assert all_rows(tmp_path / "t.csv") == 1


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "a\0b.csv"])
def test_a_name_that_no_file_can_have_is_a_sentence(name):
    for read in (all_rows, read_table):
        with pytest.raises(EdgewiseError, match="cannot be read"):
            read(name)


@pytest.mark.slow
@pytest.mark.parametrize("read", [all_rows, read_table])
def test_a_line_without_end_is_refused_in_little_memory(tmp_path, read):
    with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"smiles\n")
        for _ in range(512):
            file.write(b"C" * 2**20)
    tracemalloc.start()
    with pytest.raises(EdgewiseError, match=r"t\.csv\.gz:2: the line is longer than 16,777,216"):
        read(tmp_path / "t.csv.gz")
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


@pytest.mark.slow
def test_a_stretch_of_long_lines_holds_few_of_them(tmp_path):
    (tmp_path / "t.csv").write_text("a\n" + ("x" * 2**20 + "\n") * 64)
    lengths = [len(stretch.table) for stretch in stream_table(tmp_path / "t.csv")]
    assert sum(lengths) == 64
    assert max(lengths) < 32


def test_the_bound_of_fetched_archives_is_not_one_of_own_files(tmp_path, monkeypatch):
    monkeypatch.setattr("edgewise.data.archives.LARGEST", 1000)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5000))
    assert len(read_table(tmp_path / "t.csv.gz")) == all_rows(tmp_path / "t.csv.gz") == 5000


@pytest.mark.slow
@pytest.mark.parametrize("quoted", [False, True])
def test_text_beyond_memory_is_refused_on_the_way(tmp_path, monkeypatch, quoted):
    monkeypatch.setattr(arrow_columns, "memory_limit", lambda: 2**20)
    row = b'"1",2\n' if quoted else b"1,2\n"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + row * 200_000))
    with pytest.raises(EdgewiseError, match="would not fit into memory; split the file"):
        read_table(tmp_path / "t.csv.gz")


def test_a_parquet_file_beyond_memory_is_refused_by_its_metadata(tmp_path, monkeypatch):
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"a": pyarrow.array(["x"] * 100_000).dictionary_encode()})
    parquet.write_table(table, tmp_path / "t.parquet")
    monkeypatch.setattr(parquet.ParquetFile, "read", lambda _: pytest.fail("read"))
    monkeypatch.setattr(arrow_columns, "memory_limit", lambda: 2**20)
    with pytest.raises(EdgewiseError, match=r"holds 100,000 rows of 1 column.*more than memory"):
        read_table(tmp_path / "t.parquet")


def test_equal_words_of_a_parquet_file_are_one_word_in_memory(tmp_path):
    import pyarrow
    from pyarrow import parquet

    words = pyarrow.DictionaryArray.from_arrays([0] * 1000, ["x" * 10_000])
    parquet.write_table(pyarrow.table({"a": words}), tmp_path / "t.parquet")
    cells = read_table(tmp_path / "t.parquet").column("a")
    assert len({id(cell) for cell in cells}) == 1


def test_semicolons_between_cells_are_understood_where_the_header_has_no_comma(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text("smiles;logp\nCCO;3,417\nCCN;1,5\n")
    table = read_table(path, decimal=",")
    assert table.numbers("logp").tolist() == [3.417, 1.5]
    (stretch,) = stream_table(path, decimal=",")
    assert stretch.table.numbers("logp").tolist() == [3.417, 1.5]
    path.write_text("a;b,c\n1;2,3\n")
    assert list(read_table(path).columns) == ["a;b", "c"]


@pytest.mark.parametrize("end", [b"\xc3", b"\xc3\n", b"\xe2\x82"])
def test_a_character_that_is_cut_off_at_the_end_is_a_sentence(end, tmp_path, monkeypatch):
    """Nor does Arrow print a stack trace about the row."""
    seen = []
    monkeypatch.setattr("sys.unraisablehook", seen.append)
    path = tmp_path / "cut.csv"
    path.write_bytes("id,size\nä,1\n".encode() + b"b" + end)
    with pytest.raises(EdgewiseError, match=r"cut\.csv"):
        read_table(path)
    assert not seen
