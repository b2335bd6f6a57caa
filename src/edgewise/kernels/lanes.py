"""SIMD: several numbers in one register, for compiled kernels.

LLVM turns long loops into vector instructions by itself, but not the short ones over a handful
of columns. These functions, which work only within compiled code, spell them out.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LINE_BYTES = 64  # of a cache
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
def zeros(typing, like, lanes):  # type: ignore[no-untyped-def]
    """As many zeros as the tuple ``lanes`` is long, of the type of the array ``like``."""
    kind = Lanes(like.dtype, len(lanes))

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return ir.Constant(_vector(kind), None)

    return kind(like, lanes), generate


@intrinsic
def load(typing, like, rows, row, column):  # type: ignore[no-untyped-def]
    """The numbers ``rows[row, column:]`` that fill a register such as ``like``."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = _vector_pointer(context, builder, like, signature.args[1:], arguments[1:])
        return builder.load(pointer, align=like.element.bitwidth // 8)

    return like(like, rows, row, column), generate


@intrinsic
def store(typing, numbers, rows, row, column):  # type: ignore[no-untyped-def]
    """Write a register to ``rows[row, column:]``."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = _vector_pointer(context, builder, numbers, signature.args[1:], arguments[1:])
        builder.store(arguments[0], pointer, align=numbers.element.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(numbers, rows, row, column), generate


@intrinsic
def multiply(typing, weight, numbers):  # type: ignore[no-untyped-def]
    """``weight * numbers``; the weight is a number, or a register of them."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        factor = _broadcast(context, builder, weight, arguments[0], numbers)
        return builder.fmul(factor, arguments[1], flags=_FLAGS)

    return numbers(weight, numbers), generate


@intrinsic
def multiply_add(typing, sums, weight, numbers):  # type: ignore[no-untyped-def]
    """``sums + weight * numbers``; the weight is a number, or a register of them."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        factor = _broadcast(context, builder, weight, arguments[1], sums)
        product = builder.fmul(factor, arguments[2], flags=_FLAGS)
        return builder.fadd(arguments[0], product, flags=_FLAGS)

    return sums(sums, weight, numbers), generate


@intrinsic
def broadcast(typing, like, number):  # type: ignore[no-untyped-def]
    """A register such as ``like``, filled with one number."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _broadcast(context, builder, number, arguments[1], like)

    return like(like, number), generate


@intrinsic
def where_positive(typing, test, numbers):  # type: ignore[no-untyped-def]
    """The numbers, and 0 where the test is not above 0; what is no number stays so."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        zero = ir.Constant(_vector(numbers), None)
        negative = builder.fcmp_ordered("<=", arguments[0], zero)
        return builder.select(negative, zero, arguments[1])

    return numbers(test, numbers), generate


@intrinsic
def concatenate(typing, left, right):  # type: ignore[no-untyped-def]
    """Two registers as one of twice the size."""
    kind = Lanes(left.element, 2 * left.count)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.shuffle_vector(*arguments, _indices(range(kind.count)))

    return kind(left, right), generate


@intrinsic
def low_half(typing, numbers):  # type: ignore[no-untyped-def]
    """The first half of a register."""
    return _half(numbers, 0)


@intrinsic
def high_half(typing, numbers):  # type: ignore[no-untyped-def]
    """The second half of a register."""
    return _half(numbers, 1)


@intrinsic
def prefetch(typing, array, place):  # type: ignore[no-untyped-def]
    """Prefetch ``array[place]``, the place a tuple, into the cache."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        indices = cgutils.unpack_tuple(builder, arguments[1])
        _prefetch(builder, _pointer(context, builder, (array, *place), (arguments[0], *indices)), 0)
        return context.get_dummy_value()

    return types.void(array, place), generate


@intrinsic
def prefetch_register(typing, like, rows, row, column):  # type: ignore[no-untyped-def]
    """Prefetch what :func:`load` would read, all its cache lines."""
    size = like.count * like.element.bitwidth // 8

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer = _pointer(context, builder, signature.args[1:], arguments[1:])
        for offset in range(0, size, LINE_BYTES):
            _prefetch(builder, pointer, offset)
        return context.get_dummy_value()

    return types.void(like, rows, row, column), generate


@intrinsic
def horizontal_sum(typing, numbers):  # type: ignore[no-untyped-def]
    """The sum of a register, of a power of two numbers."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        # Half to half, in this order and no other: the same bits, however LLVM compiles it.
        (left,) = arguments
        count = numbers.count
        while count > 1:
            count //= 2
            left = builder.fadd(*(_part(builder, left, first, count) for first in (0, count)))
        return builder.extract_element(left, ir.IntType(32)(0))

    return numbers.element(numbers), generate


def _prefetch(builder, pointer, offset):  # type: ignore[no-untyped-def]
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    llvm_prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    place = builder.gep(builder.bitcast(pointer, byte), [number(offset)])
    to_read, to_keep, data = number(0), number(3), number(1)
    builder.call(llvm_prefetch, [place, to_read, to_keep, data])


def _vector_pointer(context, builder, numbers, kinds, arguments):  # type: ignore[no-untyped-def]
    pointer = _pointer(context, builder, kinds, arguments)
    return builder.bitcast(pointer, _vector(numbers).as_pointer())


def _pointer(context, builder, kinds, arguments):  # type: ignore[no-untyped-def]
    array = make_array(kinds[0])(context, builder, arguments[0])
    place = [
        context.cast(builder, index, kind, types.uintp)
        for kind, index in zip(kinds[1:], arguments[1:], strict=True)
    ]
    return cgutils.get_item_pointer(context, builder, kinds[0], array, place, wraparound=False)


def _half(numbers, which):  # type: ignore[no-untyped-def]
    count = numbers.count // 2

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _part(builder, arguments[0], which * count, count)

    return Lanes(numbers.element, count)(numbers), generate


def _part(builder, numbers, first, count):  # type: ignore[no-untyped-def]
    return builder.shuffle_vector(numbers, numbers, _indices(range(first, first + count)))


def _broadcast(context, builder, kind, number, numbers):  # type: ignore[no-untyped-def]
    """A number in all lanes of a register such as ``numbers``; a register as it is."""
    if isinstance(kind, Lanes):
        return number
    number = context.cast(builder, number, kind, numbers.element)
    empty = ir.Constant(_vector(numbers), ir.Undefined)
    one = builder.insert_element(empty, number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, _indices([0] * numbers.count))


def _indices(places):  # type: ignore[no-untyped-def]
    number = ir.IntType(32)
    return ir.Constant(ir.VectorType(number, len(places)), [number(place) for place in places])
