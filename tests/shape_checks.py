"""The shape and type checks of jaxtyping and beartype, in less time than they take.

jaxtyping makes two functions for each one that it checks, in closures at every call anew, and binds
the arguments once more: a training of small graphs took more than twice as long.
"""

import dataclasses
import inspect
from functools import partial, wraps
from types import FunctionType
from typing import get_args

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, TypeCheckError, _decorator
from jaxtyping._storage import pop_shape_memo, push_shape_memo

_thorough = jaxtyping.jaxtyped
_beartype = beartype(conf=BeartypeConf(violation_type=TypeCheckError))


def install():
    """Check what is imported from here on: the import hook looks the decorator up by its name."""
    jaxtyping.jaxtyped = checked


def checked(checked_object=None, *, typechecker):
    """As ``jaxtyping.jaxtyped``: arguments and result are checked, under one set of sizes."""
    if checked_object is None:
        return partial(checked, typechecker=typechecker)
    if isinstance(checked_object, type):
        return _with_checked_init(checked_object, typechecker)
    if not _is_simple(checked_object):
        return _thorough(checked_object, typechecker=typechecker)
    annotations = _without_strings(checked_object)
    shapes = [shape for hint in annotations.values() for shape in _shapes(hint)]
    if any("{" in shape.dim_str for shape in shapes):  # a size that is looked up by its name
        return _thorough(checked_object, typechecker=typechecker)
    typed = _typed(checked_object, annotations)
    return _with_sizes_of_its_own(typed) if shapes else typed


def _is_simple(function):
    ways = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return isinstance(function, FunctionType) and not any(way(function) for way in ways)


def _with_checked_init(cls, typechecker):
    made = vars(cls).get("__init__") if dataclasses.is_dataclass(cls) else None
    if made is not None and not hasattr(made, "__wrapped__"):
        cls.__init__ = checked(made, typechecker=typechecker)
    return cls


def _without_strings(function):
    """The annotations; one that names what is not there yet says nothing, as in jaxtyping."""
    return {
        name: _decorator._destring_annotation(hint, function.__globals__)
        if isinstance(hint, str)
        else hint
        for name, hint in function.__annotations__.items()
    }


def _shapes(hint):
    """The arrays with a shape in an annotation."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return [hint]
    return [shape for part in get_args(hint) for shape in _shapes(part)]


def _typed(function, annotations):
    of_before = _closures.get(function.__code__)
    if of_before is not None and of_before[0] == annotations:
        return _for_another(of_before[1], function)
    written, function.__annotations__ = function.__annotations__, annotations
    try:
        typed = _beartype(function)
    finally:
        function.__annotations__ = written
    typed.__annotations__ = written
    if "<locals>" in function.__qualname__ and _CALLED in (typed.__kwdefaults__ or {}):
        _closures[function.__code__] = annotations, typed
    return typed


# A closure is made anew at every call of the function around it, and its checks are the same ones.
_closures = {}
_CALLED = "__beartype_func"  # the argument by which a check of beartype knows what it checks


def _for_another(typed, function):
    """The checks that were made for one closure, before another one of the same code."""
    copied = FunctionType(typed.__code__, typed.__globals__, typed.__name__)
    copied.__kwdefaults__ = {**typed.__kwdefaults__, _CALLED: function}
    return wraps(function)(copied)


def _with_sizes_of_its_own(function):
    @wraps(function)
    def checked_function(*args, **kwargs):
        push_shape_memo({})
        try:
            return function(*args, **kwargs)
        finally:
            pop_shape_memo()

    return checked_function
