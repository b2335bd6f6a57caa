"""Settings in TOML files: a table for each part."""

import json
import tomllib
from pathlib import Path
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import write_atomically
from edgewise.core.schema import DEEPEST
from edgewise.core.settings import SETTINGS, Settings, flattened

_LARGEST = 2**20  # bytes; a file with every setting has 2,000


def read_config(path: str | Path) -> dict[str, Any]:
    """The settings in a TOML file by their names, and ``preset`` if it names one.

    Version 0.1 wrote all settings outside of tables; such files are read alike.
    """
    try:
        content = _bounded(Path(path))
    except OSError as error:
        raise EdgewiseError(f"{path} cannot be read ({error.strerror}); check the name") from error
    except ValueError as error:  # bad TOML, bytes that are no text, a null in the name
        raise EdgewiseError(
            f"{path} is not TOML ({error}); write lines like hidden = 64 below [model]"
        ) from error
    preset = {"preset": content.pop("preset")} if "preset" in content else {}
    return {**preset, **flattened(content, f"{path}: ")}


def _bounded(path: Path) -> dict[str, Any]:
    """The content of a TOML file of ordinary size and depth."""
    with path.open("rb") as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"it holds more than {_LARGEST // 2**20} MB")
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep") from None
    level: list[Any] = [content]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:  # keys with dots nest without brackets
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    return content


def write_config(path: str | Path, settings: Settings) -> None:
    """Write every setting, in tables that :func:`read_config` reads; ``None`` is left out."""
    lines = []
    for part, table in settings.to_json().items():
        given = {name: value for name, value in table.items() if value is not None}
        # JSON's strings, numbers, booleans and flat lists are TOML's, too.
        lines += [
            f"[{part}]",
            *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in given.items()),
        ]
        lines.append("")
    write_atomically(path, "\n".join(lines))


def says_something(name: str, value: Any) -> bool:
    """Whether a setting of a file differs from its default; files often write out all of them."""
    default = SETTINGS[name].default
    return bool(value != (list(default) if isinstance(default, tuple) else default))
