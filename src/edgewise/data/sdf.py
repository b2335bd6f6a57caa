"""Structures and properties of an SDF as rows, whatever its encoding."""

import io
import re
from collections.abc import Iterator
from typing import Any

from edgewise.core.errors import EdgewiseError
from edgewise.data.chemistry import sdf_records
from edgewise.data.delimited import decoded_lines, resolved_encoding

_FIELD = re.compile(r">.*<(.+)>")


def sdf_names(stream: io.BufferedIOBase, path: str, encoding: str) -> list[str]:
    """The columns of an SDF, in the order in which they come; bytes of no text are a sentence."""
    names = {"smiles": None}
    some = False
    for line in decoded_lines(stream, path, encoding):
        some = some or not line.isspace()
        if found := _FIELD.match(line):
            names[found[1]] = None
    if not some:
        raise EdgewiseError(f"{path} is empty; expected an SDF with structures")
    return list(names)


def sdf_rows(stream: io.BufferedIOBase, path: str, encoding: str) -> Iterator[dict[str, Any]]:
    """Each structure as SMILES beside its properties; an unreadable one has an empty SMILES."""
    stream.seek(0)
    name = resolved_encoding(stream, path, encoding)
    if name == "utf-8":
        yield from sdf_records(stream)
        return
    text: io.TextIOWrapper = io.TextIOWrapper(stream, name, newline="")  # type: ignore[arg-type]
    try:
        yield from sdf_records(_InUtf8(text))
    finally:
        text.detach()  # the stream belongs to the caller


class _InUtf8:
    """Text as the UTF-8 that RDKit expects."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def read(self, size: int = -1) -> bytes:
        # A character is up to four bytes, and RDKit takes no more than it asked for.
        return self._text.read(size if size < 0 else max(size // 4, 1)).encode("utf-8")
