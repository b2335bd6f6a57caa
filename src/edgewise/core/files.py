"""Files that are whole or not there: written beside their place, then renamed."""

import os
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
        temporary.chmod(0o644)  # folders may be shared; temporary files start private
        os.replace(temporary, path)
    except OSError as error:
        raise EdgewiseError(
            f"cannot write {path} ({error.strerror or error}); make room or {cure}"
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder while ``what`` goes on, so that no other process does; a killed one lets go."""
    from filelock import FileLock, Timeout  # a moment that few commands need

    lock = FileLock(folder / LOCK, timeout=0)
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
