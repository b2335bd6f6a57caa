"""Files that are whole or not there: written beside their place, then renamed."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from edgewise.core.errors import EdgewiseError

LOCK = ".lock"


@contextmanager
def replacing(path: str | Path, cure: str = "choose another place") -> Iterator[BinaryIO]:
    """Open a stream that becomes ``path`` when all is written; a failure leaves ``path`` alone."""
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".part-", delete=False) as stream:
            temporary = Path(stream.name)
            yield stream  # type: ignore[misc]
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(_mode_of(path))
        os.replace(temporary, path)
    except OSError as error:
        raise EdgewiseError(
            f"cannot write {path} ({error.strerror or error}); make room or {cure}"
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _mode_of(path: Path) -> int:
    """The mode of the file that is replaced, or that of a new file: temporary ones are private."""
    with suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def inside(folder: Path, name: str) -> Path:
    """A path below a folder that no symbolic link leads out of."""
    path = folder
    for part in Path(name).parts:
        path = path / part
        if part == ".." or path.is_symlink():
            raise EdgewiseError(
                f"{path} is a link, and what it leads to may lie outside of {folder}; put the file "
                "itself there"
            )
    return path


def sweep(folder: Path) -> None:
    """Take away what a process that was killed while it wrote has left behind."""
    for scrap in folder.glob(".part-*"):
        with suppress(OSError):
            scrap.unlink()


@contextmanager
def alone_in(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder while ``what`` goes on, so that no other process does; a killed one lets go."""
    from filelock import FileLock, Timeout  # a moment that few commands need

    lock = FileLock(inside(folder, LOCK), timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise EdgewiseError(
            f"another {what} is at work in {folder}; wait for it, or choose another --out"
        ) from error
    except OSError as error:
        raise EdgewiseError(
            f"cannot write into {folder} ({error.strerror or error}); choose another --out"
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # a file that is held cannot be deleted everywhere
            (folder / LOCK).unlink()
        lock.release()


def write_atomically(
    path: str | Path, data: bytes | str, cure: str = "choose another place"
) -> None:
    """Write a file so that a reader sees the whole of it or none."""
    with replacing(path, cure) as stream:
        stream.write(data.encode("utf-8") if isinstance(data, str) else data)
