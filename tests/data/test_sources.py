"""A word for data is found, or refused with a sentence."""

import pytest

from edgewise.core.errors import EdgewiseError
from edgewise.data.sources import find_source


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "a\0b.csv"])
def test_a_name_that_no_file_can_have_is_a_sentence(name):
    with pytest.raises(EdgewiseError, match="is neither a data set nor a file"):
        find_source([name])
    with pytest.raises(EdgewiseError, match="is not a file"):
        find_source([name, name])
