"""The examples in docstrings and documentation run and print what they say."""

import ast
import doctest
import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest
import torch

import edgewise
from edgewise.core.errors import EdgewiseError
from edgewise.report import panels

SOURCE = Path(edgewise.__file__).parent
WITH_EXAMPLES = sorted(path for path in SOURCE.rglob("*.py") if ">>>" in path.read_text())


def examples(path, namespace):
    """Read from the file itself: shape checks wrap functions, and doctest skips wrapped ones."""
    parser = doctest.DocTestParser()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text and ">>>" in text:
                name = getattr(node, "name", path.stem)
                line = node.body[0].lineno - 1
                yield parser.get_doctest(text, dict(namespace), name, str(path), line)


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_examples_print_what_they_say(path):
    module = import_module(".".join(("edgewise", *path.relative_to(SOURCE).with_suffix("").parts)))
    namespace = {**vars(module), "torch": torch, "edgewise": edgewise, "ew": edgewise}
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for example in examples(path, namespace):
        runner.run(example, out=report.append)
    assert runner.tries >= path.read_text().count(">>> ")
    assert runner.failures == 0, "".join(report)


def test_the_public_layers_have_examples():
    written = {str(path.relative_to(SOURCE)) for path in WITH_EXAMPLES}
    assert {"nn/layers/convolution.py", "nn/layers/attention.py", "nn/network.py"} <= written
    assert {"graphs/channels.py", "graphs/graph.py", "graphs/batch.py"} <= written


DOCS = Path(__file__).parents[1] / "docs"
NODES = [
    f"f{i},{i * 7 % 50},{'DE' if i % 2 else 'FR'},{'low' if i % 3 else 'high'}" for i in range(20)
]
EDGES = [f"f{i},f{(i + 3) % 20},{i + 1}" for i in range(20)]
MOLECULES = [f"{'C' * n}{end},{n / 2}" for n in range(1, 8) for end in ("O", "N")]


@pytest.fixture(scope="module")
def named_files(tmp_path_factory):
    """The files that the pages name, and a run, in a folder of their own."""
    folder = tmp_path_factory.mktemp("docs") / "files"
    for place, lines in {
        "my_graph/nodes.csv": ["id,employees,country,risk", *NODES],
        "my_graph/edges.csv": ["source,target,amount", *EDGES],
        "molecules.csv": ["smiles,logp", *MOLECULES],
    }.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        edgewise.train("my_graph", "runs/cora", target="risk", epochs=2, hidden=4)
    return folder


@pytest.fixture
def files_of_the_docs(named_files, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(named_files, tmp_path / "files"))
    monkeypatch.setattr("edgewise.report.panels.PANELS", dict(panels.PANELS))


# estimators.md needs no files: tests/estimators/test_estimator_docs.py
@pytest.mark.slow
@pytest.mark.dataset
@pytest.mark.parametrize("name", ["data", "edges", "report", "uncertainty"])
def test_the_code_of_a_page_runs_and_prints_its_comments(name, files_of_the_docs, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / f"{name}.md").read_text(), re.M | re.S)
    namespace: dict[str, object] = {}
    try:
        for block in blocks:
            exec(block, namespace)
    except EdgewiseError as error:
        if "is unavailable" not in str(error):
            raise
        pytest.skip(str(error))
    comments = re.findall(r"^print\(.*\)  # (.*)$", "\n".join(blocks), re.M)
    assert capsys.readouterr().out.splitlines() == comments
