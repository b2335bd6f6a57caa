"""Read the files of a data set from a public address, with pooch."""

import io
from collections.abc import Callable, Collection
from pathlib import PurePosixPath
from typing import Any

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
    from pooch import HTTPDownloader
    from requests.exceptions import ConnectionError, HTTPError, RequestException, Timeout
    from urllib3.exceptions import MaxRetryError

    for attempt in range(_ATTEMPTS):
        received = _Received(address, progress)
        download = HTTPDownloader(
            progressbar=received.bar,
            chunk_size=_CHUNK,
            timeout=_TIMEOUT,
            headers={"User-Agent": "edgewise"},
        )
        try:
            download(address, received, None)
            return received.getvalue()
        except HTTPError as error:
            answer = error.response
            assert answer is not None
            raise EdgewiseError(
                f"the server answered {answer.status_code} {answer.reason}"
            ) from error
        except Timeout as error:
            raise Unreached(f"not reached: {error}") from error
        except RequestException as error:
            reason = error.args[0] if error.args else error
            if isinstance(error, ConnectionError) and isinstance(reason, MaxRetryError):
                raise Unreached(f"not reached: {reason.reason}") from error
            if attempt + 1 == _ATTEMPTS:
                raise EdgewiseError(f"the connection broke off: {reason}") from error
    raise AssertionError("the last attempt returns or raises")


class _Received(io.BytesIO):
    """What has arrived so far: bounded, and told to whoever shows progress."""

    def __init__(self, address: str, progress: Progress | None) -> None:
        super().__init__()
        self.address, self.progress, self.bar = address, progress, _Bar()

    def write(self, chunk: Any) -> int:
        written = super().write(chunk)
        if self.tell() > LARGEST:
            raise EdgewiseError(f"sends more than {LARGEST // 2**20} MB")
        if self.progress is not None:
            self.progress(self.address, self.tell(), self.bar.total or None)
        return written


class _Bar:
    """Takes from pooch how many bytes there will be."""

    total = 0

    def update(self, count: int) -> None: ...

    def reset(self) -> None: ...

    def close(self) -> None: ...
