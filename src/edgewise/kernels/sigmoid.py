"""The logistic function of a register, for compiled kernels.

The compiler calls a library function once for every number; this is the same polynomial for all
numbers of a register at once, exact to a few units in the last place.
"""

from math import factorial, log
from typing import Any

from llvmlite import ir
from numba.extending import intrinsic

from edgewise.kernels.lanes import Lanes

_FLAGS = ("contract", "nsz")  # as in backend.FAST_MATH
# Below the first a gate keeps the value it has there, so that normalising can divide by the sum of
# gates, or by its square in the gradient. Above the second it is 1 to the last bit.
LOWEST, HIGHEST = -40.0, 80.0


@intrinsic
def sigmoid(typing, numbers):  # type: ignore[no-untyped-def]
    """``1 / (1 + exp(-numbers))`` of a register, its argument held at ``LOWEST`` and above."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (z,) = arguments
        for bound, beyond in ((LOWEST, "<"), (HIGHEST, ">")):
            limit = _filled(z.type, bound)
            z = builder.select(builder.fcmp_ordered(beyond, z, limit), limit, z)
        power = _exp(builder, builder.fmul(z, _filled(z.type, -1.0)), numbers)
        one = _filled(z.type, 1.0)
        return builder.fdiv(one, builder.fadd(one, power, flags=_FLAGS), flags=_FLAGS)

    return numbers(numbers), generate


@intrinsic
def inverse(typing, numbers):  # type: ignore[no-untyped-def]
    """``1 / numbers`` of a register, and 0 where a number is 0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        zero, one = (_filled(arguments[0].type, number) for number in (0.0, 1.0))
        empty = builder.fcmp_ordered("==", arguments[0], zero)
        quotient = builder.fdiv(one, builder.select(empty, one, arguments[0]), flags=_FLAGS)
        return builder.select(empty, zero, quotient)

    return numbers(numbers), generate


def _exp(builder: Any, x: Any, kind: Lanes) -> Any:
    """``2^n exp(x - n log 2)`` with the nearest whole ``n``; ``x`` must be far from overflow."""
    bits = kind.element.bitwidth
    mantissa, terms = {32: (23, 7), 64: (52, 13)}[bits]
    # Adding 1.5 * 2^mantissa rounds to whole numbers and leaves n in the lowest bits.
    shift = _filled(x.type, 1.5 * 2.0**mantissa)
    shifted = builder.fadd(
        builder.fmul(x, _filled(x.type, 1 / log(2)), flags=_FLAGS), shift, flags=_FLAGS
    )
    n = builder.fsub(shifted, shift)
    # log 2 in two parts, of which the first times n is exact.
    first = round(log(2) * 2**14) / 2**14
    rest = x
    for part in (first, _LOG_2_REST):
        rest = builder.fsub(
            rest, builder.fmul(n, _filled(x.type, part), flags=_FLAGS), flags=_FLAGS
        )
    result = _filled(x.type, 1 / factorial(terms))
    for power in reversed(range(terms)):
        product = builder.fmul(result, rest, flags=_FLAGS)
        result = builder.fadd(product, _filled(x.type, 1 / factorial(power)), flags=_FLAGS)
    whole = ir.VectorType(ir.IntType(bits), kind.count)
    one = {32: 127, 64: 1023}[bits] << mantissa  # the bits of 1.0
    scale = builder.add(
        builder.shl(builder.bitcast(shifted, whole), _filled(whole, mantissa)), _filled(whole, one)
    )
    return builder.fmul(result, builder.bitcast(scale, x.type), flags=_FLAGS)


# log 2 - round(log 2 * 2^14) / 2^14, whose difference of floats would lose digits.
_LOG_2_REST = -2.908897130469058e-05


def _filled(kind: Any, number: Any) -> Any:
    return ir.Constant(kind, [number] * kind.count)
