"""The examples in the docstrings run and print what they say."""

import ast
import doctest
from importlib import import_module
from pathlib import Path

import pytest
import torch

import edgewise

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
    assert {"layers/convolution.py", "layers/attention.py", "channels.py"} <= written
    assert {"graph.py", "models.py"} <= written
