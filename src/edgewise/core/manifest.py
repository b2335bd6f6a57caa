"""The checksums of a folder's files: what was changed or cut short since is found, not used.

A checksum finds damage, and a file that was swapped; it does not stop somebody who also rewrites
the manifest.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import inside, write_atomically
from edgewise.core.schema import read_json

MANIFEST = "manifest.json"
FORMAT = "edgewise manifest 1"
_SHAPE = {"format": str, "files": {str: str}}


def write_manifest(
    folder: Path, names: Iterable[str], coming: Mapping[str, bytes] | None = None
) -> None:
    """Write down the checksums of some files of a folder, beside those it has already.

    Args:
        folder: Where the files are.
        names: Of files that are there.
        coming: Contents of files that will be written next.
    """
    files = _read(folder) if (folder / MANIFEST).exists() else {}
    files |= {name: sha256_of(folder / name) for name in names}
    files |= {name: hashlib.sha256(data).hexdigest() for name, data in (coming or {}).items()}
    content = {"format": FORMAT, "files": dict(sorted(files.items()))}
    write_atomically(folder / MANIFEST, json.dumps(content, indent=1))


def check_manifest(folder: Path, names: Iterable[str]) -> None:
    """Refuse files that are not those the manifest was written for."""
    if not (folder / MANIFEST).exists():
        raise EdgewiseError(
            f"{folder} has no {MANIFEST}, so its files cannot be verified; copy the folder again, "
            "or train again"
        )
    files = _read(folder)
    for name in names:
        _check(folder, name, files.get(name, ""))


def check_listed(folder: Path, names: Iterable[str]) -> None:
    """The same for files that may not be listed: in a run that has no results yet, or is of 0.1."""
    if (folder / MANIFEST).exists():
        files = _read(folder)
        for name in files.keys() & set(names):
            _check(folder, name, files[name])


def _check(folder: Path, name: str, checksum: str) -> None:
    path = inside(folder, name)
    if not path.is_file() or sha256_of(path) != checksum:
        raise EdgewiseError(
            f"{path} is not as it was written (its checksum in {MANIFEST} differs); copy the "
            "folder again, or train again"
        )


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(folder: Path) -> dict[str, str]:
    path = inside(folder, MANIFEST)
    try:
        files: dict[str, str] = read_json(path, _SHAPE)["files"]
    except (OSError, ValueError) as error:
        raise EdgewiseError(
            f"{path} cannot be used ({error}); copy the folder again, or train again"
        ) from error
    return files
