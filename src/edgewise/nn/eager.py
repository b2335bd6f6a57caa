"""Layers and networks inside of ``torch.compile``, which cannot look into the compiled kernels."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def eager(function: Function) -> Function:
    """Run a function as it is, also where the code around it is compiled.

    ``torch.compiler.disable`` alone would import the compiler, which takes seconds, for everybody.
    """

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(function)(*arguments, **named)
        return function(*arguments, **named)

    return run  # type: ignore[return-value]
