"""How much memory a pattern may take, and what happens to memory that is freed."""

import ctypes
import os
from functools import cache

from edgewise.core.errors import EdgewiseError

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt in the C library


def memory_limit() -> int:
    """Half of the machine's memory in bytes, or what ``EDGEWISE_MEMORY_GB`` says."""
    said = os.environ.get("EDGEWISE_MEMORY_GB")
    if said:
        try:
            return int(float(said) * 2**30)
        except ValueError:
            raise EdgewiseError(
                f"EDGEWISE_MEMORY_GB is {said!r}, which is no number; say how many GiB "
                "training may take, for example 8"
            ) from None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # no sysconf on this platform
        return 8 * 2**30


@cache
def reuse_freed_memory() -> None:
    """Keep freed memory for the next training step instead of giving it back.

    Given back, each array of some megabytes costs thousands of page faults when its pages are
    asked for anew: a third of an epoch on a graph of 20,000 nodes.
    """
    mallopt = getattr(_c_library(), "mallopt", None)  # the GNU library's own
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 2**28)
        mallopt(_TRIM_THRESHOLD, 2**30)


def _c_library() -> object:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # not on this platform
        return None
