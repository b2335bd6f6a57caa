"""The most memory a process has held. Linux tells it; other systems do not in this way."""

from pathlib import Path


def peak_gib() -> float:
    """GiB of this process alone; the peak that ``resource`` tells may be its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(peak) / 2**20
