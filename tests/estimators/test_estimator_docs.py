"""Example and documentation print what their comments say."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def promises(text):
    """What the comments behind the calls of print say."""
    return re.findall(r"^\s*print\(.*\)  # (.*)$", text, re.MULTILINE)


def test_the_example_prints_what_its_comments_say(capsys):
    text = (ROOT / "examples" / "04_estimators.py").read_text()
    exec(compile(text, "04_estimators.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == promises(text)
    assert len(text.splitlines()) <= 40


def test_the_snippets_of_the_documentation_print_what_their_comments_say(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "estimators.md").read_text()
    snippets = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    namespace = {"__name__": "__main__"}
    for snippet in snippets:
        exec(compile(snippet, "estimators.md", "exec"), namespace)
    assert capsys.readouterr().out.splitlines() == promises("".join(snippets))
    assert text.count("```") == 2 * len(snippets)
