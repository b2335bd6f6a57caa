"""The README says what the project does today."""

import json
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import edgewise, python

from edgewise.core.errors import EdgewiseError
from edgewise.paper.networks import count_networks

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


@pytest.mark.slow
def test_the_tables_here_and_in_the_docs_are_those_of_the_results(tmp_path):
    results = ROOT / "benchmarks" / "results"
    if (ROOT / ".git").exists() and shutil.which("git"):
        # As they are staged: an experiment may be adding to them.
        staged = subprocess.run(
            ["git", "ls-files", "benchmarks/results/*.jsonl"],
            cwd=ROOT, capture_output=True, check=True,
        ).stdout  # fmt: skip
        subprocess.run(
            ["git", "checkout-index", "--stdin", f"--prefix={tmp_path}/"],
            cwd=ROOT, input=staged, check=True,
        )  # fmt: skip
        results = tmp_path / "benchmarks" / "results"
    command = [sys.executable, ROOT / "benchmarks" / "tables.py", "--check", "--runs", results]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.dataset
def test_the_sizes_in_the_docs_are_those_of_the_data():
    counted = count_networks()
    if not counted.sizes:
        pytest.skip(f"no network is available: {counted.unavailable}")
    kept = json.loads((ROOT / "benchmarks" / "results" / "networks.json").read_text())
    assert {name: tuple(kept[name]) for name in counted.sizes} == counted.sizes


def commands(block):
    """Each command of a console block, with the lines printed below it."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((shlex.split(line[2:]), []))
        else:
            found[-1][1].append(line)
    return found


def run(arguments, folder):
    assert arguments[0] == "edgewise"
    done = edgewise(*arguments[1:], cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def same_but_for_numbers(line):
    return re.sub(r"\d+(\.\d+)?", "#", line)


@pytest.fixture
def cora():
    from edgewise.data.citation import load_citation

    try:
        return load_citation("cora")
    except EdgewiseError as error:
        pytest.skip(f"Cora is unavailable: {error}")


@pytest.mark.dataset
@pytest.mark.slow
def test_the_first_example_prints_what_is_printed_below_it(cora, tmp_path):
    for arguments, promised in commands(blocks("console")[0]):
        # A slow machine tells how it is going, in lines of their own.
        printed = [line for line in run(arguments, tmp_path) if not line.startswith("epoch ")]
        # Other processors round differently, and a run may end some epochs sooner or later.
        assert list(map(same_but_for_numbers, printed)) == list(map(same_but_for_numbers, promised))
        for mine, theirs in zip(printed, promised, strict=True):
            for name in ("test accuracy", "validation accuracy"):
                if name in theirs:
                    accuracies = [
                        float(re.search(rf"{name} ([\d.]+)", t)[1]) for t in (mine, theirs)
                    ]
                    assert accuracies[0] == pytest.approx(accuracies[1], abs=0.02)


@pytest.mark.dataset
@pytest.mark.slow
def test_the_python_example_prints_its_comment(cora, tmp_path):
    code = blocks("python")[0]
    done = python(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(float(code.rsplit("# ", 1)[1]), abs=0.02)


def table(path, header, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n")


@pytest.mark.slow
def test_the_commands_run_as_printed(tmp_path):
    draw = random.Random(0)
    for folder, known in ((tmp_path, True), (tmp_path / "next-month", False)):
        risks = [f"{'low' if i % 3 else 'high'}" if known and i < 35 else "" for i in range(40)]
        nodes = [
            f"f{i},{draw.randint(1, 99)},{draw.choice(['DE', 'FR'])},{risks[i]}" for i in range(40)
        ]
        table(folder / "nodes.csv", "id,employees,country,risk", nodes)
        pairs = sorted({(i, (i * 7 + 3 * step) % 40) for i in range(40) for step in range(3)})
        edges = [f"f{a},f{b},{draw.choice(['pays', 'owns'])}" for a, b in pairs]
        table(folder / "edges.csv", "source,target,kind", edges)
    chains = ["C" * length + end for length in range(1, 11) for end in ("O", "N", "Cl", "Br")]
    for name in ("molecules.csv", "measured.csv"):
        table(tmp_path / name, "smiles,logp", [f"{c},{len(c) / 3:.2f}" for c in chains])
    table(tmp_path / "library.csv", "key,smiles", [f"k{i},{c}" for i, c in enumerate(chains)])
    sizes = {f"g{g}": 3 + g % 5 for g in range(20)}
    compounds = tmp_path / "compounds"
    table(compounds / "graphs.csv", "graph,toxic", [f"{g},{n % 2}" for g, n in sizes.items()])
    atoms = [f"{g},{i},{'CNO'[i % 3]}" for g, n in sizes.items() for i in range(n)]
    table(compounds / "nodes.csv", "graph,id,element", atoms)
    bonds = [f"{g},{i},{i + 1}" for g, n in sizes.items() for i in range(n - 1)]
    table(compounds / "edges.csv", "graph,source,target", bonds)
    for arguments, _ in commands(blocks("console")[1]):
        printed = run(arguments, tmp_path)
        assert printed, arguments
    assert len((tmp_path / "risks.csv").read_text().splitlines()) == 41
    assert len((tmp_path / "logp.csv").read_text().splitlines()) == 41
    assert (tmp_path / "runs" / "logp-0" / "report.html").exists()


def headings(path):
    """The anchors of a document, as its headings make them."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_linked_file_and_heading_is_there():
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", README)
    assert any(anchor for _, anchor in links)
    for target, anchor in links:
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
            assert not anchor or anchor in headings(ROOT / target), (target, anchor)


@pytest.mark.slow
def test_the_layer_example_beats_the_ceiling_it_prints():
    path = ROOT / "examples" / "01_layers_in_pyg.py"
    done = python(path.read_text())
    assert done.returncode == 0, done.stderr
    accuracy, ceiling = (float(line.split()[-1]) for line in done.stdout.splitlines())
    assert accuracy > ceiling + 0.1
    assert len(path.read_text().splitlines()) <= 40
