"""Constructors whose parameters are the settings of model and training, declared in one place."""

from collections.abc import Callable
from inspect import Parameter, Signature
from textwrap import fill
from typing import Any, TypeVar

import numpy as np

from edgewise.core.presets import PRESETS
from edgewise.core.settings import PART_OF, SETTINGS

PARAMETERS = tuple(name for name, part in PART_OF.items() if part in ("model", "training"))
_PRESET = ("default", f"where the settings that are not given come from: {' or '.join(PRESETS)}")
_HELP = {name: (None, SETTINGS[name].metadata["help"]) for name in PARAMETERS}
AnyClass = TypeVar("AnyClass", bound=type)


def setting_parameters(**own: tuple[Any, str]) -> Callable[[AnyClass], AnyClass]:
    """Give a class a constructor with its own parameters, ``preset`` and the settings.

    scikit-learn reads the parameters of an estimator off the signature of its constructor, and
    keeps what it is given untouched; a setting that is None is as the preset says.

    Args:
        own: Default and help text of each parameter that is not a setting.
    """
    parameters = {**own, "preset": _PRESET, **_HELP}
    signature = Signature(
        [
            Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
            *(
                Parameter(name, Parameter.KEYWORD_ONLY, default=default)
                for name, (default, _) in parameters.items()
            ),
        ]
    )

    def decorate(cls: AnyClass) -> AnyClass:
        def __init__(self: Any, **given: Any) -> None:
            bound = signature.bind(self, **given)
            bound.apply_defaults()
            for name in parameters:
                setattr(self, name, bound.arguments[name])

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__  # type: ignore[misc]
        lines = [_documented(name, *of) for name, of in parameters.items()]
        cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}\n\n    Args:\n" + "\n".join(lines) + "\n"
        return cls

    return decorate


def plain(value: Any) -> Any:
    """A setting without its wrapping: grids are often made of numpy's numbers."""
    return value.item() if isinstance(value, np.generic) else value


def _documented(name: str, default: Any, help: str) -> str:
    usual = "" if default is None else f" (default: {default})"
    return fill(f"{name}: {help}{usual}.", 98, initial_indent=" " * 8, subsequent_indent=" " * 12)
