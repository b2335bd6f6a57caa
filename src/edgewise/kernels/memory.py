"""How much memory a pattern may take."""

import os

from edgewise.core.errors import EdgewiseError


def memory_limit() -> int:
    """Half of the machine's memory in bytes, or what ``EDGEWISE_MEMORY_GB`` says."""
    said = os.environ.get("EDGEWISE_MEMORY_GB")
    if said:
        try:
            return int(float(said) * 2**30)
        except ValueError:
            raise EdgewiseError(
                f"EDGEWISE_MEMORY_GB is {said!r}, which is no number; say how many GiB a pattern "
                "may take, for example 8"
            ) from None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # no sysconf on this platform
        return 8 * 2**30
