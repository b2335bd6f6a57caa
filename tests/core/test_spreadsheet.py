"""Cells of CSV files: no spreadsheet runs them, and all can be had back."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.core.spreadsheet import as_given, csv_text, inert

SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝")  # noqa: RUF001
texts = st.text(st.sampled_from("'=+-@\t\r\n ab1.5e[]"), max_size=6)


@pytest.mark.parametrize("sign", SIGNS)
def test_text_that_a_spreadsheet_runs_gets_a_quote(sign):
    assert inert(f"{sign}cmd|' /C calc'!A0") == f"'{sign}cmd|' /C calc'!A0"


@pytest.mark.parametrize(
    "cell", ["-1.5", "+2", "-1e-05", "-1,5", "-3%", "[Na+]", "C=O", "a-b", "", " =1", "'quoted'"]
)
def test_numbers_smiles_and_other_text_stay(cell):
    assert inert(cell) == cell


@pytest.mark.slow
@given(texts)
def test_what_was_made_harmless_can_be_had_back(cell):
    assert as_given(inert(cell)) == cell
    first = inert(cell)[:1]
    assert first not in ("=", "@", "\t", "\r", "\n")
    assert first not in ("+", "-") or set(cell) <= set("+-0123456789.,e")


def test_names_of_columns_are_cells_as_well():
    text = csv_text({"=id": ["@a", "b"], "value": ["-1.5", "+x"]})
    assert list(csv.reader(io.StringIO(text))) == [
        ["'=id", "value"],
        ["'@a", "-1.5"],
        ["b", "'+x"],
    ]
