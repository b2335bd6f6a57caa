"""Cells are times with a zone or without one, and parts of time are never empty by chance."""

import numpy as np
import pytest
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.data.tables import table_from_columns
from edgewise.data.times import read_times, split_by_time


def times_of(*cells):
    return read_times(table_from_columns({"when": list(cells)}, "t.csv"), "when")


def test_times_with_a_zone_are_moments():
    noon = "2023-05-28T12:00:00Z"
    found = times_of(noon, "2023-05-28T14:00:00+02:00", "2023-05-28 07:00:00-05", noon)
    assert np.array_equal(found, np.full(4, found[0]))
    assert found[0] == times_of("2023-05-28 12:00")[0]


@pytest.mark.parametrize("odd", ["yesterday", "2023-05-28T12:00:00Z"])
def test_a_cell_that_is_no_time_like_the_others_is_named(odd):
    cells = ["2023-05-28", "2023-05-29 12:00", "2023-05-30", odd, "2023-06-01"]
    with pytest.raises(EdgewiseError, match=r"t.csv.*'when' holds no times that can be read"):
        times_of(*cells)
    if odd == "yesterday":
        with pytest.raises(EdgewiseError, match="'yesterday' is none like the others"):
            times_of(*cells)


def test_a_split_by_time_that_leaves_a_part_empty_is_refused():
    times = np.repeat([2020.0, 2021.0], 10)
    with pytest.raises(EdgewiseError, match=r"20 rows have 2 different times.*none is left for"):
        split_by_time(times, torch.arange(20), "0.8,0.1,0.1")
    split = split_by_time(times, torch.arange(20), "0.5,0,0.5")
    assert [len(part) for part in split.parts().values()] == [10, 0, 10]
