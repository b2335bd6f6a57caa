"""Read the files of a data set from a public address."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Collection
from pathlib import PurePosixPath

from edgewise.core.errors import EdgewiseError
from edgewise.data.archives import LARGEST, gunzip, take_members

Progress = Callable[[str, int, int | None], None]  # what, done so far, in all (if known)

_TIMEOUT = 10  # seconds without an answer; unreachable hosts must not hold the user up
_ATTEMPTS = 2  # a connection that broke off half way is worth one more
_CHUNK = 2**16
_ARCHIVES = (".tgz", ".tar.gz", ".zip")


class Unreached(EdgewiseError):
    """A host that does not answer."""


def files_from_address(
    address: str, names: Collection[str], progress: Progress | None = None
) -> dict[str, bytes]:
    """The named files, from an archive, a gzipped file or a plain file at this address."""
    data = _download(address, progress)
    name = PurePosixPath(address).name
    if name.endswith(_ARCHIVES):
        return take_members(data, address, names)
    if name.endswith(".gz"):
        return {name.removesuffix(".gz"): gunzip(data, address)}
    return {name: data}


def _download(address: str, progress: Progress | None) -> bytes:
    for attempt in range(_ATTEMPTS):
        try:
            return _read(address, progress)
        except (http.client.HTTPException, ConnectionError) as error:
            if attempt + 1 == _ATTEMPTS:
                raise EdgewiseError(f"the connection broke off: {error}") from error
        except urllib.error.HTTPError as error:
            raise EdgewiseError(f"the server answered {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            raise Unreached(f"not reached: {error.reason}") from error
        except (TimeoutError, OSError) as error:
            raise Unreached(f"not reached: {error}") from error
    raise AssertionError("the last attempt returns or raises")


def _read(address: str, progress: Progress | None) -> bytes:
    request = urllib.request.Request(address, headers={"User-Agent": "edgewise"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        length = answer.headers.get("Content-Length")
        expected = int(length) if length and length.isdigit() else None
        data = bytearray()
        while chunk := answer.read(_CHUNK):
            data += chunk
            if progress is not None:
                progress(address, len(data), expected)
            if len(data) > LARGEST:
                raise EdgewiseError(f"sends more than {LARGEST // 2**20} MB")
        # A plain read of a cut connection ends quietly; the announced length tells.
        if expected is not None and len(data) < expected:
            raise http.client.IncompleteRead(bytes(data), expected - len(data))
        return bytes(data)
