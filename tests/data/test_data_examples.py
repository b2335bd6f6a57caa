"""The examples run as printed: what their comments promise is what they print."""

import re
from pathlib import Path

import pytest
from commands import python

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "name",
    [
        *("02_your_own_graph.py", "03_molecules.py", "05_payments.py", "06_networkx_graphs.py"),
        "07_recommendation.py",
    ],
)
def test_an_example_prints_what_its_comments_say(name):
    path = EXAMPLES / name
    done = python(path.read_text())
    assert done.returncode == 0, done.stderr
    source = path.read_text()
    promised = re.findall(r"print\(.*\)(?:  |\n    )# (.*)", source)
    assert done.stdout.splitlines() == promised
    assert len(source.splitlines()) <= 40
