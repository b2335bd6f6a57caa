"""Numbers are numbers, words are words, and what looks like a number is never made a word."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from pandas._libs.parsers import STR_NA_VALUES

from edgewise.core.errors import EdgewiseError
from edgewise.data.cells import MISSING, as_number, looks_like_a_number
from edgewise.data.column_kinds import guess_kind
from edgewise.data.graph_tables import learn_graph_reader
from edgewise.data.labels import learn_labels
from edgewise.data.tables import parse_text, table_from_columns

CELLS = st.sampled_from(
    [
        *("1", "-2.5", " 3 ", "+4", "1e3", "1E-400", "1e400", ".5", "5.", "0x10", "1_0", "inf"),
        *("NaN", "nan", "NAN", "-nan", "", "NA", "?", "-", "none", "x", "\u0661", "1,5", "2e17"),
        *("1e18", "-1e18", "007", "1.7976931348623157e308", "\u00a01", "infinity", "NULL"),
    ]
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(CELLS, max_size=6), st.sampled_from([".", ","]))
def test_columns_of_numbers_are_what_their_cells_are(cells, decimal):
    table = table_from_columns({"n": cells}, "t", decimal=decimal)
    expected = [as_number(cell, decimal) for cell in cells]
    if None in expected:
        with pytest.raises(EdgewiseError, match=f"t, row {expected.index(None)}: column 'n'"):
            table.numbers("n")
    else:
        np.testing.assert_array_equal(table.numbers("n"), np.array(expected, dtype=float))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["a", " a", "b ", "", "NA", "c d", "\u00e9"]), max_size=9))
def test_categories_number_the_words_that_are_not_missing(cells):
    codes, words = table_from_columns({"k": cells}, "t").categories("k")
    stripped = [cell.strip() for cell in cells]
    assert [words[c] if c >= 0 else None for c in codes] == [
        None if cell in MISSING else cell for cell in stripped
    ]
    assert sorted(words) == sorted(set(stripped) - MISSING)


@pytest.mark.parametrize("word", [*sorted(STR_NA_VALUES), "?", "-", "na", "none"])
def test_what_pandas_takes_for_missing_is_missing_everywhere_but_in_ids(word):
    nodes = f'id,n,k,label\n"{word or "x"}",1,a,p\nb,"{word}",b,q\nc,3,"{word}","{word}"\n'
    tables = (parse_text(nodes.encode(), "nodes.csv"), parse_text(b"source,target\n", "edges.csv"))
    reader = learn_graph_reader(*tables, label="label", missing="mean")
    graph, notes = reader.read(*tables)
    assert graph.node_ids == (word or "x", "b", "c")
    assert reader.feature_names == ("n", "k=a", "k=b")
    assert graph.y.tolist() == [0, 1, -1]
    assert notes.unseen == {"n": 1, "k": 1}


def test_words_for_missing_can_be_added():
    table = parse_text(b"n\n1\nn.d.\n", "t.csv", missing_values=["n.d."])
    assert math.isnan(table.numbers("n")[1])
    assert guess_kind(table, "n") == "numbers"


@pytest.mark.parametrize(
    "cell", ["3,417", ">5", "< 0.5", "$5", "5%", "1,234", "1,234.5", "1e5", "-3"]
)
def test_what_a_person_reads_as_a_number_looks_like_one(cell):
    assert looks_like_a_number(cell)


@pytest.mark.parametrize(
    "cell", ["x", "3a", "18-65", "2021-05-03", "1.2.3", "10 mg", "", "CC", "1,2,3"]
)
def test_codes_dates_and_words_do_not_look_like_numbers(cell):
    assert not looks_like_a_number(cell)


COLUMNS = {
    "decimal comma": (["3,417", "2,5", "1"] * 10, r"holds '3,417'.*--decimal ,.*--categories a"),
    "all with commas": (["3,4", "2,5"] * 10, r"'3,4', which looks like a number; say --decimal ,"),
    "bounds": ([">5", "5"] * 10, r"row 0: .*holds '>5', and numbers elsewhere; correct or empty"),
    "dollars": (["6", "$5"] * 10, r"row 1: .*holds '\$5'"),
    "per cent": (["5%", "6"] * 10, "holds '5%'"),
    "thousands": (["1,234", "999"] * 10, "holds '1,234'"),
    "a third words": (["1.5", "2.5", "low"] * 10, "holds 'low', and numbers elsewhere"),
}


@pytest.mark.parametrize(("cells", "sentence"), COLUMNS.values(), ids=COLUMNS)
def test_numbers_never_become_categories_or_classes(cells, sentence):
    table = table_from_columns({"a": cells, "id": range(len(cells))}, "t")
    with pytest.raises(EdgewiseError, match=sentence):
        guess_kind(table, "a")
    with pytest.raises(EdgewiseError, match=sentence):
        learn_labels(table, "a")
    edges = table_from_columns({"source": [], "target": []}, "e")
    assert learn_graph_reader(table, edges, categories=["a"]).feature_names == tuple(
        f"a={word}" for word in sorted(set(cells))
    )
    assert learn_graph_reader(table, edges, label="a", categories=["a"]).labels is not None


def test_a_decimal_comma_is_read_when_told():
    table = table_from_columns({"a": ["3,417", "-2,5e1", "1"]}, "t", decimal=",")
    assert table.numbers("a").tolist() == [3.417, -25, 1]
    with pytest.raises(EdgewiseError, match=r"holds '1\.5', expected a number"):
        table_from_columns({"a": ["3,4", "1.5"]}, "t", decimal=",").numbers("a")
    with pytest.raises(EdgewiseError, match="decimal='x' is no decimal point"):
        parse_text(b"a\n1\n", "t.csv", decimal="x")


def test_a_label_column_with_a_class_for_nearly_every_row_is_refused():
    table = table_from_columns({"y": [f"name {i // 2}" for i in range(99)] + ["z"]}, "t")
    with pytest.raises(EdgewiseError, match=r"51 different classes in 100 .* with --target"):
        learn_labels(table, "y")
    few = table_from_columns({"y": [f"name {i % 50}" for i in range(100)]}, "t")
    assert len(learn_labels(few, "y").classes) == 50
