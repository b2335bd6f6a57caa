"""Settings that others leave without a use: refused where somebody set them."""

from collections.abc import Callable, Mapping
from typing import Any

from edgewise.core.errors import EdgewiseError, preview
from edgewise.core.settings import SETTINGS, Settings
from edgewise.units.splitting import is_file

_DRAWN = ("stratify", "split_seed")
# Names, when they have no use, and why.
_RULES: tuple[tuple[tuple[str, ...], Callable[[Settings], Any], str], ...] = (
    (("split", *_DRAWN), lambda s: s.split.split_column, "split_column says which rows are which"),
    (_DRAWN, lambda s: is_file(s.split.split), "split names a file that says which rows are which"),
    (
        ("warmup",),
        lambda s: s.training.schedule != "cosine",
        "schedule is not cosine, without warm-up",
    ),
)


def refuse_unused(given: Mapping[str, Any], settings: Settings) -> None:
    """Refuse settings that were given and would change nothing beside the others.

    Args:
        given: Settings that somebody set, by their names.
        settings: All of them.
    """
    said = {name for name, value in given.items() if value != SETTINGS[name].default}
    for names, useless, why in _RULES:
        unused = [name for name in names if name in said]
        if unused and useless(settings):
            raise EdgewiseError(f"{why}, so {preview(unused)} would be ignored; leave one out")
