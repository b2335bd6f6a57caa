"""Take single files out of gzip, tar and zip data in memory, so nothing can land outside."""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Collection
from pathlib import PurePosixPath

from edgewise.core.errors import EdgewiseError

LARGEST = 512 * 2**20  # bytes; ten times the largest file, so that a zip bomb ends here


def gunzip(data: bytes, where: str) -> bytes:
    """Unpack gzip data; a truncated or damaged stream is a sentence, not a stack."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return _bounded(stream.read(LARGEST + 1), where)
    except (EOFError, OSError, zlib.error) as error:
        raise EdgewiseError(
            f"{where} is not a complete gzip file ({str(error).rstrip('.')}); "
            "delete it and fetch it again"
        ) from error


def take_members(data: bytes, where: str, names: Collection[str]) -> dict[str, bytes]:
    """The regular files of a tar or zip archive that carry one of these names, in any folder.

    Members are matched by their last part and returned as bytes: the paths inside the archive
    are never used to write, and links are never followed.
    """
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            return _from_zip(data, where, names)
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
            return _from_tar(archive, where, names)
    except (EOFError, OSError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise EdgewiseError(
            f"{where} is not a complete archive ({str(error).rstrip('.')}); "
            "delete it and fetch it again"
        ) from error


def _from_zip(data: bytes, where: str, names: Collection[str]) -> dict[str, bytes]:
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            name = PurePosixPath(member.filename).name
            if name in names and not member.is_dir():
                with archive.open(member) as stream:
                    found[name] = _bounded(stream.read(LARGEST + 1), f"{where}: {name}")
    return found


def _from_tar(archive: tarfile.TarFile, where: str, names: Collection[str]) -> dict[str, bytes]:
    found = {}
    for member in archive:
        name = PurePosixPath(member.name).name
        if name in names and member.isreg():
            stream = archive.extractfile(member)
            assert stream is not None  # regular files always have one
            found[name] = _bounded(stream.read(LARGEST + 1), f"{where}: {name}")
    return found


def _bounded(data: bytes, where: str) -> bytes:
    if len(data) > LARGEST:
        raise EdgewiseError(
            f"{where} unpacks to more than {LARGEST // 2**20} MB, far more than any data set "
            "here; it is not the file it should be"
        )
    return data
