"""Several numbers in one register, for compiled kernels.

LLVM turns long loops into vector instructions by itself, but not the short ones over a handful
of columns. These functions, which work only within compiled code, spell them out.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

# As in backend.FAST_MATH.
_FLAGS = ("contract", "nsz")


class Lanes(types.Type):
    """The type of a register of ``count`` numbers."""

    def __init__(self, element: types.Float, count: int) -> None:
        self.element, self.count = element, count
        super().__init__(name=f"Lanes({element}, {count})")


@register_default(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, _vector(kind))


def _vector(kind: Lanes) -> ir.VectorType:
    element = {32: ir.FloatType, 64: ir.DoubleType}[kind.element.bitwidth]()
    return ir.VectorType(element, kind.count)


@intrinsic
def nothing(typing, like, lanes):  # type: ignore[no-untyped-def]
    """As many zeros as the tuple ``lanes`` is long, of the type of the array ``like``."""
    kind = Lanes(like.dtype, len(lanes))

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return ir.Constant(_vector(kind), None)

    return kind(like, lanes), generate


@intrinsic
def load(typing, like, rows, row, column):  # type: ignore[no-untyped-def]
    """The numbers ``rows[row, column:]`` that fill a register such as ``like``."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = _place(context, builder, like, signature.args[1:], arguments[1:])
        return builder.load(pointer, align=like.element.bitwidth // 8)

    return like(like, rows, row, column), generate


@intrinsic
def store(typing, numbers, rows, row, column):  # type: ignore[no-untyped-def]
    """Write a register to ``rows[row, column:]``."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = _place(context, builder, numbers, signature.args[1:], arguments[1:])
        builder.store(arguments[0], pointer, align=numbers.element.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(numbers, rows, row, column), generate


@intrinsic
def plus(typing, sums, weight, numbers):  # type: ignore[no-untyped-def]
    """``sums + weight * numbers``; the weight is a number, or a register of them."""
    single = not isinstance(weight, Lanes)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        total, factor, terms = arguments
        if single:
            factor = context.cast(builder, factor, signature.args[1], sums.element)
            factor = _everywhere(builder, factor, sums)
        return builder.fadd(total, builder.fmul(factor, terms, flags=_FLAGS), flags=_FLAGS)

    return sums(sums, weight, numbers), generate


@intrinsic
def added_up(typing, numbers):  # type: ignore[no-untyped-def]
    """The sum of a register, of a power of two numbers."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        # Half to half, in this order and no other: the same bits, however LLVM compiles it.
        (left,) = arguments
        count = numbers.count
        while count > 1:
            count //= 2
            halves = [_places(range(first, first + count)) for first in (0, count)]
            left = builder.fadd(*(builder.shuffle_vector(left, left, half) for half in halves))
        return builder.extract_element(left, ir.IntType(32)(0))

    return numbers.element(numbers), generate


def _place(context, builder, numbers, kinds, arguments):  # type: ignore[no-untyped-def]
    array = make_array(kinds[0])(context, builder, arguments[0])
    place = [
        context.cast(builder, index, kind, types.uintp)
        for kind, index in zip(kinds[1:], arguments[1:], strict=True)
    ]
    pointer = cgutils.get_item_pointer(context, builder, kinds[0], array, place, wraparound=False)
    return builder.bitcast(pointer, _vector(numbers).as_pointer())


def _everywhere(builder, number, numbers):  # type: ignore[no-untyped-def]
    vector = _vector(numbers)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, _places([0] * numbers.count))


def _places(places):  # type: ignore[no-untyped-def]
    number = ir.IntType(32)
    return ir.Constant(ir.VectorType(number, len(places)), [number(place) for place in places])
