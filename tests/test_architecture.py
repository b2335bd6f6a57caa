"""Data flows one way, so imports do too; names are looked up; nothing is unpickled."""

import ast
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import edgewise
from edgewise.core.registries import LAYERS, TASKS, UNITS

SOURCE = Path(edgewise.__file__).parent
ORDER = [
    "core", "kernels", "graphs", "nn", "data", "tasks", "units", "training", "report", "runs",
    "estimators", "tuning", "paper", "cli", "__main__",
]  # fmt: skip
# Read by everybody, and imports nothing itself.
FREE = {"__version__"}


parsed = cache(ast.parse)


def imported(tree):
    """The edgewise modules that a file imports, with ``from edgewise import x`` told apart."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            names = [f"edgewise.{'.' * node.level}{node.module or ''}"]
        elif isinstance(node, ast.ImportFrom) and node.module == "edgewise":
            names = [f"edgewise.{alias.name}" for alias in node.names if alias.name not in FREE]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "edgewise")


def wrong_imports(root):
    """A line for each import that goes against the flow, or of a module that has no place in it."""
    wrong = []
    for path in sorted(root.rglob("*.py")):
        here = path.relative_to(root).parts[0].removesuffix(".py")
        if here == "__init__":
            continue  # the public face names every module
        for name in imported(parsed(path.read_text())):
            there = name.split(".")[1] if "." in name else ""
            placed = here in ORDER and there in ORDER
            if not placed or not (there == here or ORDER.index(there) < ORDER.index(here)):
                wrong.append(f"{path.relative_to(root)} imports {name}")
    return wrong


@pytest.mark.slow
def test_modules_import_only_what_comes_before():
    assert wrong_imports(SOURCE) == []


def test_every_module_has_its_place_in_the_flow():
    modules = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}
    assert {name.removesuffix(".py") for name in modules} - {"__init__"} <= set(ORDER)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("nn/operators.py", "from edgewise.data.splits import Split"),
        ("nn/operators.py", "import edgewise.training"),
        ("graphs/graph.py", "from edgewise import ChannelNetwork"),
        ("kernels/pattern.py", "from edgewise.graphs.features import SparseFeatures"),
        ("kernels/pattern.py", "from ..nn import ChannelConv"),
        ("data/store.py", "def later():\n    from edgewise.training import Trainer"),
        ("nn/layers/base.py", "from edgewise.nowhere import nothing"),
        ("nn/layers/base.py", "import edgewise"),
    ],
)
def test_a_wrong_import_is_caught(file, line, tmp_path):
    copy = tmp_path / "edgewise"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / file).write_text((copy / file).read_text() + f"\n{line}\n")
    (wrong,) = wrong_imports(copy)
    assert wrong.startswith(file)


NAMES = {*UNITS, *TASKS, *LAYERS}
# Words that mean other things, too: they count beside something that holds such a name.
AMBIGUOUS = {"node", "graph"}
HOLDERS = {"kind", "name", "unit", "task", "layer", "form"}


def words(node):
    """The strings of an operand: itself, or those of a list."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return {word for item in node.elts for word in words(item)}
    return set()


def holds_a_name(node):
    word = {ast.Attribute: "attr", ast.Name: "id"}.get(type(node), "")
    word = getattr(node, word, "")
    return word in HOLDERS or word.endswith("_name")


def branches(tree):
    """Comparisons with the name of a unit, a task or a layer."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            found = {word for operand in operands for word in words(operand)} & NAMES
            if found - AMBIGUOUS or (found and any(map(holds_a_name, operands))):
                yield ast.unparse(node)
        elif isinstance(node, ast.Match):
            patterns = [p for case in node.cases for p in ast.walk(case.pattern)]
            values = [p.value for p in patterns if isinstance(p, ast.MatchValue)]
            found = {word for value in values for word in words(value)} & NAMES
            if found - AMBIGUOUS or (found and holds_a_name(node.subject)):
                yield f"match {ast.unparse(node.subject)}"


def branching(root):
    """A line for each branch on a name that should be looked up."""
    return [
        f"{path.relative_to(root)}: {line}"
        for path in sorted(root.rglob("*.py"))
        for line in branches(parsed(path.read_text()))
    ]


def test_units_tasks_and_layers_are_looked_up_never_compared():
    assert branching(SOURCE) == []


@pytest.mark.parametrize(
    "line",
    [
        "if task.name == 'regression': pass",
        "if 'multilabel' != kind: pass",
        "x = settings.layer in ('attention', 'mine')",
        "x = layer not in {'conv'}",
        "if problem.unit.name == 'node': pass",
        "if unit_name == 'graph': pass",
        "match task.name:\n    case 'classification' | 'mine': pass",
        "match unit:\n    case 'node': pass",
        "assert anything == 'attention'",
    ],
)
def test_a_comparison_with_a_name_is_caught(line, tmp_path):
    (tmp_path / "planted.py").write_text(f"{line}\n")
    assert len(branching(tmp_path)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "if key != 'graph': pass",
        "match element:\n    case 'node': pass",
        "if task.name == other.name: pass",
        "task = TASKS['regression']",
        "if name == 'paper': pass",
    ],
)
def test_a_word_that_only_looks_like_a_name_is_none(line, tmp_path):
    (tmp_path / "fine.py").write_text(f"{line}\n")
    assert branching(tmp_path) == []


UNPICKLERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve"}


def unpicklers(path):
    """What in a file could run a stranger's code while loading."""
    for node in ast.walk(parsed(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in UNPICKLERS)
        elif isinstance(node, ast.ImportFrom) and node.module in UNPICKLERS:
            yield node.module
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("torch.load", "torch.save"):
            yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and ast.unparse(node) == "allow_pickle=True":
            yield "allow_pickle"


@pytest.mark.slow
def test_nothing_is_unpickled(tmp_path):
    found = {path.name: list(unpicklers(path)) for path in SOURCE.rglob("*.py")}
    assert {name: what for name, what in found.items() if what} == {}
    planted = tmp_path / "planted.py"
    planted.write_text("import torch, pickle\ntorch.load('x')\nload('x', allow_pickle=True)\n")
    assert sorted(unpicklers(planted)) == ["allow_pickle", "pickle", "torch.load"]


def test_every_public_name_resolves():
    for name in edgewise.__all__:
        assert getattr(edgewise, name) is not None
    assert sorted(edgewise.__all__) == dir(edgewise)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = edgewise.nothing


def test_importing_edgewise_and_its_command_line_waits_for_no_heavy_package():
    program = (
        "import sys, edgewise, edgewise.cli\n"
        "heavy = {'torch', 'numba', 'scipy', 'sklearn', 'pandas', 'torch_geometric', 'rdkit'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout.strip(), run.returncode) == ("[]", 0), run.stderr
