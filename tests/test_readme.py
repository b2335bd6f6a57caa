"""The README says what the project does today."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from edgewise.errors import EdgewiseError

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


def test_the_tables_are_those_of_the_results():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import tables, pathlib; text = pathlib.Path('../README.md').read_text();"
            "assert tables.with_tables(text) == text, 'run: python benchmarks/tables.py'",
        ],
        cwd=ROOT / "benchmarks",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.dataset
@pytest.mark.slow
def test_the_first_example_prints_what_is_printed_below_it():
    from edgewise.data.citation import load_citation

    try:
        load_citation("cora")
    except EdgewiseError as error:
        pytest.skip(f"Cora cannot be had: {error}")
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[0]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed, promised = done.stdout.splitlines(), blocks("")[0].splitlines()
    assert printed[0] == promised[0]
    for mine, theirs in zip(printed[1:], promised[1:], strict=True):
        # Other processors round differently, and a run may end some epochs sooner or later.
        assert mine.split()[0] == theirs.split()[0]
        assert float(mine.split()[1]) == pytest.approx(float(theirs.split()[1]), abs=0.02)


def test_every_linked_file_is_there():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_the_layer_example_beats_the_ceiling_it_prints():
    path = ROOT / "examples" / "01_layers_in_pyg.py"
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    accuracy, ceiling = (float(line.split()[-1]) for line in done.stdout.splitlines())
    assert accuracy > ceiling + 0.1
    assert len(path.read_text().splitlines()) <= 40
