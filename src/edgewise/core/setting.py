"""How a setting is declared, and how a value for it is checked."""

import math
from collections.abc import Collection
from dataclasses import Field, field, fields
from typing import Any, cast

from edgewise.core.errors import EdgewiseError, NotRegistered
from edgewise.core.registry import Choices

BELOW_ONE = 0.999999
# Who says whether a setting holds: each has a set of the names that it takes.
OWNERS = ("source", "unit", "layer", "task")


def setting(
    default: Any,
    help: str,
    *,
    of: str = "",
    choices: Collection[str] = (),
    low: int | float = -math.inf,
    high: int | float = math.inf,
) -> Any:
    """A field with its help text, who decides whether it holds, and what values it may take."""
    limits = {"choices": choices, "low": low, "high": high}
    return field(default=default, metadata={"help": help, "of": of, **limits})


class Part:
    """Settings whose values are checked when they are made."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, one.name, checked(one, getattr(self, one.name)))


def checked(one: "Field[Any]", value: Any) -> Any:
    """The value in the field's type, or a sentence."""
    limits, wanted = one.metadata, cast(Any, one.type)
    if wanted == tuple[str, ...]:
        items = (value,) if isinstance(value, str) else value
        if isinstance(items, list | tuple) and all(isinstance(item, str) for item in items):
            return tuple(items)
        raise EdgewiseError(f"{one.name} = {_shown(value)} is not a list of column names")
    if wanted == int | None and value is None:
        return None
    number = wanted in (int, float, int | None)
    right = {bool: bool, str: str, float: int | float}.get(wanted, int)
    if not isinstance(value, right) or (number and isinstance(value, bool)):
        name = {bool: "true or false", str: "a word", float: "a number"}.get(
            wanted, "a whole number"
        )
        raise EdgewiseError(f"{one.name} = {_shown(value)} is not {name}")
    choices = limits["choices"]
    if choices and value not in choices:
        unknown = f"{one.name} = {_shown(value)} is unknown; choose one of {', '.join(choices)}"
        if isinstance(choices, Choices):
            raise NotRegistered(
                f"{unknown}, or name the Python file that registers it with --plugin"
            )
        raise EdgewiseError(unknown)
    if number and not (_finite(value) and limits["low"] <= value <= limits["high"]):
        most = {BELOW_ONE: " and below 1", math.inf: ""}.get(
            limits["high"], f" and at most {limits['high']:,}"
        )
        raise EdgewiseError(
            f"{one.name} = {_shown(value)} is out of range; it must be at least "
            f"{limits['low']:g}{most}"
        )
    return float(value) if wanted is float else value


def _finite(number: Any) -> bool:
    return abs(number) <= 10**300  # where whole numbers of any length are compared, not converted


def _shown(value: Any) -> str:
    """A value as it was written, within the length of a line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}..."
