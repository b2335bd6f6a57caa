"""Files and folders that are whole or not there: written beside their place, then renamed."""

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from edgewise.core.errors import EdgewiseError

LOCK = ".lock"
_PART, _ENDING = ".part-", ".edgewise"  # of a file that is being written
_BINARY = getattr(os, "O_BINARY", 0)  # of Windows
_FOLDER = ".folder"  # of a folder that is being filled, beside a file of the same name


@contextmanager
def replacing(path: str | Path, cure: str = "choose another place") -> Iterator[BinaryIO]:
    """Open a stream that becomes ``path`` when all is written; a failure leaves ``path`` alone."""
    path = Path(path)
    temporary, held = None, -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _part_path(path.parent)
        number, held = _born(temporary)
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
            with suppress(OSError):  # of a folder that nothing can be written to
                temporary.unlink(missing_ok=True)
        if held >= 0:
            os.close(held)  # last, so that nobody sweeps the file before


@contextmanager
def building(folder: str | Path, cure: str = "choose another --out") -> Iterator[Path]:
    """Give a folder to fill that becomes ``folder`` at the end; a failure leaves nothing behind.

    What killed processes left half built beside it is taken away first.
    """
    folder = Path(folder)
    filling, held, mark = None, -1, None
    try:
        check_vacant(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        sweep(folder.parent)
        mark = _part_path(folder.parent)
        number, held = _born(mark)
        os.close(number)
        filling = mark.with_suffix(_FOLDER)
        filling.mkdir()
        yield filling
        _flush_folder(filling)
        if folder.is_dir():
            folder.rmdir()
        os.replace(filling, folder)
    except OSError as error:
        raise EdgewiseError(
            f"cannot write {folder} ({error.strerror or error}); make room or {cure}"
        ) from error
    finally:
        if filling is not None:
            shutil.rmtree(filling, ignore_errors=True)
        if mark is not None:
            with suppress(OSError):
                mark.unlink(missing_ok=True)
        if held >= 0:
            os.close(held)


def check_vacant(folder: str | Path, flag: str = "--out") -> None:
    """Refuse a folder that holds something, or a place that is no folder."""
    folder = Path(folder)
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        reason = getattr(error, "strerror", None) or error
        raise EdgewiseError(f"{folder} cannot be used ({reason}); choose another {flag}") from error
    raise EdgewiseError(f"{folder} is there already, and not empty; choose another {flag}")


def _flush_folder(folder: Path) -> None:
    """Have all files of a folder on the disk, so that a machine may lose its power."""
    for path in folder.iterdir():
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError as error:
            if error.errno != errno.EBADF:  # some systems flush only what is open for writing
                raise
        finally:
            os.close(number)


def _part_path(folder: Path) -> Path:
    """The path of a file to come: who knows it before it is there can delete it in any case."""
    return folder / f"{_PART}{secrets.token_hex(6)}{_ENDING}"


def _born(path: Path) -> tuple[int, int]:
    """A descriptor of a new file to write to, and a second one that keeps :func:`sweep` off it."""
    while True:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        held = _hold(path, wait=True)
        if os.fstat(number).st_nlink:
            return number, held
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
        shutil.rmtree(scrap.with_suffix(_FOLDER), ignore_errors=True)
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
