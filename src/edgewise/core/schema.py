"""JSON files that are read back: bounded, decoded, and held against the form they should have."""

import json
import math
import re
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError

LARGEST = 64 * 2**20  # bytes of a JSON file of ours; ten times what a large run writes
DEEPEST = 20  # levels; none of our files has more than six
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")  # which may stand without its other half
_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class Maybe:
    """A key that need not be there."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


def read_json(path: Path, shape: Any) -> Any:
    """The content of a JSON file that has the given form.

    Args:
        path: The file.
        shape: A type (``str``, ``int``, ``float``, ``bool``, ``object`` for anything); a tuple of
            forms, any of which will do; ``[form]`` for a list; ``{name: form}`` for an object with
            these keys and perhaps others, :class:`Maybe` around those that may lack;
            ``{str: form}`` for an object with any keys.

    Raises:
        EdgewiseError: If it is too large, no JSON, or of another form; FileNotFoundError and
            other OSErrors are the caller's.
    """
    if path.stat().st_size > LARGEST:
        raise EdgewiseError(f"it holds more than {LARGEST // 2**20} MB")
    try:
        return parse_json(path.read_text(encoding="utf-8"), shape)
    except UnicodeDecodeError as error:
        raise EdgewiseError(f"it is no text: {error}") from error


def parse_json(text: str, shape: Any) -> Any:
    """JSON that has the given form; NaN, infinities and deep nesting are refused."""
    if nested_too_deep(text):
        raise EdgewiseError(f"it is nested more than {DEEPEST} levels deep")
    try:
        content = json.loads(text, parse_constant=_refused, parse_float=_finite)
        if _HALF_CHARACTER.search(text):
            json.dumps(content, ensure_ascii=False).encode("utf-8")
    except ValueError as error:  # also a number of thousands of digits
        raise EdgewiseError(f"it is no JSON: {error}") from error
    fault = mismatch(content, shape)
    if fault:
        raise EdgewiseError(fault)
    return content


def mismatch(content: Any, shape: Any, where: str = "") -> str:
    """What is wrong with the form of some content, or nothing."""
    here = f"{where} " if where else ""
    if isinstance(shape, tuple):
        faults = [mismatch(content, one, where) for one in shape]
        return "" if not all(faults) else faults[0]
    if isinstance(shape, list):
        if not isinstance(content, list):
            return f"{here}is not a list"
        faults = [mismatch(item, shape[0], f"{where}[{i}]") for i, item in enumerate(content)]
        return next(filter(None, faults), "")
    if isinstance(shape, dict):
        return _object_mismatch(content, shape, where)
    if shape is None:
        return "" if content is None else f"{here}is not null"
    if shape is object:
        return ""
    if shape is float and isinstance(content, int) and abs(content) > 2**1000:
        return f"{here}is too large"
    right = (int, float) if shape is float else shape
    if not isinstance(content, right) or (isinstance(content, bool) and shape is not bool):
        words = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
        return f"{here}is not {words[shape]}"
    return ""


def _object_mismatch(content: Any, shape: dict[Any, Any], where: str) -> str:
    if not isinstance(content, dict):
        return f"{where or 'it'} is not an object with names"
    if str in shape:
        pairs = [(name, shape[str]) for name in content]
    else:
        pairs = []
        for name, one in shape.items():
            if name in content:
                pairs.append((name, one.shape if isinstance(one, Maybe) else one))
            elif not isinstance(one, Maybe):
                return f"{where + '.' if where else ''}{name} is missing"
    faults = (
        mismatch(content[name], one, f"{where + '.' if where else ''}{name}") for name, one in pairs
    )
    return next(filter(None, faults), "")


def nested_too_deep(text: str) -> bool:
    """Whether brackets outside of strings are nested deeper than any file of ours."""
    level = 0
    for found in _STRINGS_AND_BRACKETS.finditer(text):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if level > DEEPEST:
            return True
    return False


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is too large")
    return value
