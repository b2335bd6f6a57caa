"""Values of any sort that stand for nothing."""

from typing import Any


def is_missing(value: Any) -> bool:
    """Whether a value of any sort stands for nothing: None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA is neither equal nor unequal to itself
        return True
    except ValueError:  # many values, not one
        return False
