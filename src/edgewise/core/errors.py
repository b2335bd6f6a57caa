"""The one exception family. Every message: what was wrong, where, what to do."""

from collections.abc import Sequence
from typing import Any

_LONGEST = 2000  # characters of a message; a cell or a name that it quotes may hold megabytes


class EdgewiseError(ValueError):
    """Input that cannot be used, with the fix in the message."""

    def __init__(self, message: str) -> None:
        half = _LONGEST // 2
        long = len(message) > _LONGEST
        super().__init__(f"{message[:half]} ... {message[-half:]}" if long else message)


class NotRegistered(EdgewiseError):
    """A name that nothing is registered by; perhaps a plugin does so that was not loaded."""


def preview(items: Sequence[Any], limit: int = 5) -> str:
    """``[3, 8, 21, 22, 40, ... 112 in all]``: enough to find them, never a wall."""
    texts = (str(item.item() if hasattr(item, "item") else item) for item in items[:limit])
    shown = ", ".join(text if len(text) <= 80 else f"{text[:60]}..." for text in texts)
    return f"[{shown}]" if len(items) <= limit else f"[{shown}, ... {len(items)} in all]"


def missing_extra(package: str, extra: str, purpose: str) -> EdgewiseError:
    """The sentence for an optional dependency that is not installed."""
    return EdgewiseError(
        f"{purpose} needs the package {package}, which is not installed; "
        f"run: pip install 'edgewise[{extra}]'"
    )


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; torch and Arrow have words of their own."""
    words = ("allocate memory", "out of memory", "bad alloc", "malloc of size")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)
    )
