"""What one row of predictions is: one unit, one file, which owns how rows are read and written."""

from edgewise.units.base import Opened, Problem, Show, Tell, Unit

__all__ = ["Opened", "Problem", "Show", "Tell", "Unit"]
