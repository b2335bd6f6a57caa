"""What gives the target away is told; what ordinary data show by chance is not."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from edgewise.data.notices import FEWEST, edge_notices, image_of, index_notices, leak_notices

draw = np.random.default_rng(0)
NUMBERS = draw.normal(size=200)
CLASSES = draw.integers(0, 4, size=200)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (NUMBERS, "a copy"),
        (3 * NUMBERS - 1, "a monotone image"),
        (-np.exp(NUMBERS), "a monotone image"),
        (np.round(NUMBERS, 1), "a monotone image"),
        ((NUMBERS > 0).astype(float), "a monotone image"),
        (NUMBERS + draw.normal(size=200) / 1000, ""),
        (NUMBERS**2, ""),
        (np.zeros(200), ""),
        (draw.permutation(NUMBERS), ""),
    ],
)
def test_a_monotone_image_of_numbers_is_found(column, kind):
    assert image_of(column, NUMBERS) == kind


def test_an_image_without_ties_is_what_has_a_rank_correlation_of_one():
    for _ in range(200):
        truth = draw.permutation(12).astype(float)
        swaps = draw.permutation(12)[:2] if draw.random() < 0.5 else [0, 0]
        column = np.exp(truth) * draw.choice([-1, 1])
        column[list(swaps)] = column[list(swaps)[::-1]]
        perfect = abs(spearmanr(column, truth).statistic) > 1 - 1e-12
        assert bool(image_of(column, truth)) == perfect


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (CLASSES, True),
        (3 - CLASSES, True),
        (np.array([7.0, -1.0, 3.5, 0.0])[CLASSES], True),
        (CLASSES // 2, False),
        (np.arange(200), False),
        (np.where(np.arange(200) == 190, 0, CLASSES), False),
    ],
)
def test_a_column_that_names_the_classes_one_to_one_is_found(column, found):
    assert bool(image_of(column, CLASSES)) == found


def test_rows_of_which_something_is_missing_do_not_count():
    gaps = np.arange(200) % 3 == 0
    assert image_of(np.where(gaps, np.nan, NUMBERS), NUMBERS) == "a copy"
    assert image_of(CLASSES, np.where(gaps, -1, CLASSES)) == "a one-to-one image"
    few = np.arange(200) < FEWEST - 1
    assert image_of(np.where(few, NUMBERS, np.nan), NUMBERS) == ""


@pytest.mark.parametrize("rows", [4, 10, 12, 20])
def test_shuffled_columns_are_told_in_less_than_one_table_of_a_hundred(rows):
    """Twenty columns with the very values of the target, in an order of their own."""
    told = 0
    for _ in range(150):
        truth = (np.arange(rows) % 2).astype(float)
        columns = {str(i): draw.permutation(truth) for i in range(20)}
        told += bool(leak_notices(columns, {"y": truth}))
    assert told <= 1.5


def test_words_that_are_all_different_are_no_image_of_numbers_that_are():
    assert image_of(np.arange(50), draw.permutation(50).astype(float)) == ""


def test_a_channel_counts_nodes_not_edges():
    """Three nodes with many edges each: their targets agree with anything that is theirs."""
    nodes = np.repeat(np.arange(3), 50)
    assert image_of(nodes, nodes, units=nodes) == ""
    nodes = np.repeat(np.arange(40), 5)
    label = nodes % 3
    assert image_of(label, label, units=nodes) == "a one-to-one image"
    changed = label.copy()
    changed[-1] = 0 if changed[-1] else 1
    assert image_of(changed, label, units=nodes) == ""


def test_one_sentence_names_all_columns_of_a_kind():
    (told,) = leak_notices({"a": NUMBERS, "b": NUMBERS, "c": NUMBERS**2}, {"y": NUMBERS})
    assert told.startswith("columns ['a', 'b'] are a copy of the target 'y'")


@pytest.mark.parametrize(
    ("name", "column", "found"),
    [
        ("", NUMBERS, True),
        ("Unnamed: 0", np.arange(200.0), True),
        ("Unnamed: 0.1", CLASSES, True),
        ("index", np.arange(200.0), True),
        ("ID", np.arange(1.0, 201.0), True),
        ("id", NUMBERS, False),
        ("age", np.arange(200.0), False),
        ("Unnamed", NUMBERS, False),
    ],
)
def test_row_numbers_are_found_by_their_names_and_values(name, column, found):
    assert bool(index_notices({name: column, "size": NUMBERS}, "nodes")) == found


def test_no_edges_are_told():
    assert edge_notices(0, "edges.csv")[0].startswith("edges.csv has no edges")
    assert edge_notices(1, "edges.csv") == []
