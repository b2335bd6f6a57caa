"""The one exception family. Every message: what was wrong, where, what to do."""

from collections.abc import Sequence
from typing import Any


class EdgewiseError(ValueError):
    """Input that cannot be used, with the fix in the message."""


class NotRegistered(EdgewiseError):
    """A name that nothing is registered by; perhaps a plugin does so that was not loaded."""


def preview(items: Sequence[Any], limit: int = 5) -> str:
    """``[3, 8, 21, 22, 40, ... 112 in all]``: enough to find them, never a wall."""
    shown = ", ".join(str(item.item() if hasattr(item, "item") else item) for item in items[:limit])
    return f"[{shown}]" if len(items) <= limit else f"[{shown}, ... {len(items)} in all]"


def missing_extra(package: str, extra: str, purpose: str) -> EdgewiseError:
    """The sentence for an optional dependency that is not installed."""
    return EdgewiseError(
        f"{purpose} needs the package {package}, which is not installed; "
        f"run: pip install 'edgewise[{extra}]'"
    )
