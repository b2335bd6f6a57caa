"""Each promise of docs/reliability.md names a test, and the test is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_promise_is_held_by_a_test():
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "held by" not in line]
    campaign = text.index("<!-- attack -->")
    promises = [row for row in rows if text.index(row) < campaign]
    assert len(promises) > 20
    assert [row for row in promises if not NAMED.search(row)] == []


def test_every_test_that_is_named_exists():
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    missing = []
    for path, name in NAMED.findall(text):
        found = (
            ast.parse((ROOT / path).read_text(encoding="utf-8")) if (ROOT / path).exists() else None
        )
        if found is None or name not in {getattr(node, "name", "") for node in found.body}:
            missing.append(f"{path}::{name}")
    assert missing == []
