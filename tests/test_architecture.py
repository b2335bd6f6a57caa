"""Data flows one way, so imports do too; importing is light; nothing is unpickled."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import edgewise

SOURCE = Path(edgewise.__file__).parent
ORDER = [
    "core", "kernels", "graphs", "nn", "data", "tasks", "units", "training", "report", "runs",
    "estimators", "tuning", "paper", "cli", "__main__",
]  # fmt: skip
# Read by everybody, and imports nothing itself.
FREE = {"__version__"}


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
        for name in imported(ast.parse(path.read_text())):
            there = name.split(".")[1] if "." in name else ""
            placed = here in ORDER and there in ORDER
            if not placed or not (there == here or ORDER.index(there) < ORDER.index(here)):
                wrong.append(f"{path.relative_to(root)} imports {name}")
    return wrong


def test_modules_import_only_what_comes_before():
    assert wrong_imports(SOURCE) == []


def test_every_module_has_its_place_in_the_flow():
    modules = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}
    assert {name.removesuffix(".py") for name in modules} - {"__init__"} <= set(ORDER)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("nn/operators.py", "from edgewise.data.splits import Split"),
        ("nn/operators.py", "import edgewise.training"),
        ("graphs/graph.py", "from edgewise import NodeModel"),
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
    assert len(wrong_imports(copy)) == 1
    assert wrong_imports(copy)[0].startswith(file)


UNPICKLERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve"}


def unpicklers(path):
    """What in a file could run a stranger's code while loading."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in UNPICKLERS)
        elif isinstance(node, ast.ImportFrom) and node.module in UNPICKLERS:
            yield node.module
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("torch.load", "torch.save"):
            yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and ast.unparse(node) == "allow_pickle=True":
            yield "allow_pickle"


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
