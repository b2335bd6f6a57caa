"""Files that are whole or not there: written beside their place, then renamed."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from edgewise.core.errors import EdgewiseError

LOCK = ".lock"
_PART, _ENDING = ".part-", ".edgewise"  # of a file that is being written


@contextmanager
def replacing(path: str | Path, cure: str = "choose another place") -> Iterator[BinaryIO]:
    """Open a stream that becomes ``path`` when all is written; a failure leaves ``path`` alone."""
    path = Path(path)
    temporary, held = None, -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, held, temporary = _new_part(path.parent)
        with os.fdopen(number, "wb") as stream:
            yield stream
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
        if held >= 0:
            os.close(held)  # last, so that nobody sweeps the file before


def _new_part(folder: Path) -> tuple[int, int, Path]:
    """A file to write to, a second descriptor that keeps :func:`sweep` off it, and its path."""
    while True:
        number, name = tempfile.mkstemp(dir=folder, prefix=_PART, suffix=_ENDING)
        held = _hold(Path(name), wait=True)
        if os.fstat(number).st_nlink:
            return number, held, Path(name)
        # Swept between its birth and its lock.
        os.close(number)
        if held >= 0:
            os.close(held)


def _hold(path: Path, *, wait: bool) -> int:
    """A descriptor with a lock on a file, or -1; a process that is killed lets go of its lock."""
    if sys.platform == "win32":  # where a file that is open cannot be deleted anyway
        return -1
    import fcntl

    try:
        held = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return -1
    try:
        fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # another process writes it, or the file system has no locks
        os.close(held)
        return -1
    return held


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
    """Take away what killed processes left half written; files of running ones stay."""
    for scrap in folder.glob(f"{_PART}*{_ENDING}"):
        held = _hold(scrap, wait=False)
        if held < 0 and sys.platform != "win32":
            continue
        with suppress(OSError):
            scrap.unlink()
        if held >= 0:
            os.close(held)


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
