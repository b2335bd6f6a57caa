"""The inner loop of a matrix product: a tile of the result that stays in registers.

A tile has some rows and as many columns as two registers of AVX-512 hold. Every step loads the
columns once and a number for each row, so that nearly all instructions multiply and add.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

REGISTER, ACROSS = 16, 2  # single-precision numbers in a register, and registers in a row of a tile
COLUMNS = REGISTER * ACROSS
_BYTES = 4  # of a number
# As in backend.FAST_MATH.
_FLAGS = ("contract", "nsz")
_INTEGER, _NUMBER = ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_NUMBER, REGISTER)


@intrinsic
def multiply_tile(  # type: ignore[no-untyped-def]
    typing, rows, left, left_row, left_step, right, right_step, first, first_row, out, out_row,
    depth,
):  # fmt: skip
    """``out[i] = first[i] + sum of left[i, p] * right[p]``, in increasing order of ``p``.

    ``rows`` is a tuple as long as the tile is high; matrices are the addresses of their first
    numbers, and beside them how many numbers lie from row to row, and from ``p`` to ``p + 1``.
    ``depth``, the number of steps, is at least 1. ``first`` may be ``out``.
    """
    height = len(rows)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        _, left, left_row, left_step, right, right_step, first, first_row, out, out_row, depth = (
            arguments
        )
        tile = range(height), range(ACROSS)
        begin = [
            [_read(builder, place, _VECTOR, across * REGISTER) for across in tile[1]]
            for place in _rows(builder, first, first_row, height)
        ]
        places = _rows(builder, left, left_row, height)
        jumps = [builder.mul(step, _INTEGER(_BYTES)) for step in (left_step, right_step)]
        before = builder.block
        loop, behind = builder.append_basic_block("step"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        step, along, down = [builder.phi(_INTEGER) for _ in range(3)]
        sums = [[builder.phi(_VECTOR) for _ in tile[1]] for _ in tile[0]]
        columns = [_read(builder, down, _VECTOR, across * REGISTER) for across in tile[1]]
        after = []
        for row in tile[0]:
            number = _read(builder, builder.add(places[row], along), _NUMBER, 0)
            factor = _everywhere(builder, number)
            products = [builder.fmul(factor, column, flags=_FLAGS) for column in columns]
            after.append(
                [
                    builder.fadd(*pair, flags=_FLAGS)
                    for pair in zip(sums[row], products, strict=True)
                ]
            )
        one, zero = _INTEGER(1), _INTEGER(0)
        following = [
            builder.add(*pair) for pair in ((step, one), (along, jumps[0]), (down, jumps[1]))
        ]
        for phi, start, later in zip(
            (step, along, down), (zero, zero, right), following, strict=True
        ):
            _comes_from(phi, (before, start), (loop, later))
        for row in tile[0]:
            for across in tile[1]:
                start, later = begin[row][across], after[row][across]
                _comes_from(sums[row][across], (before, start), (loop, later))
        builder.cbranch(builder.icmp_signed("<", following[0], depth), loop, behind)
        builder.position_at_end(behind)
        for row, place in enumerate(_rows(builder, out, out_row, height)):
            for across in tile[1]:
                pointer = _pointer(builder, place, _VECTOR, across * REGISTER)
                builder.store(after[row][across], pointer, align=_BYTES)
        return context.get_dummy_value()

    return types.void(rows, *[types.intp] * 10), generate


def _rows(builder: Any, first: Any, numbers: Any, count: int) -> list[Any]:
    """The addresses of so many rows."""
    apart = builder.mul(numbers, _INTEGER(_BYTES))
    return [builder.add(first, builder.mul(apart, _INTEGER(row))) for row in range(count)]


def _pointer(builder: Any, address: Any, kind: Any, numbers: int) -> Any:
    place = builder.add(address, _INTEGER(numbers * _BYTES))
    return builder.inttoptr(place, kind.as_pointer())


def _read(builder: Any, address: Any, kind: Any, numbers: int) -> Any:
    return builder.load(_pointer(builder, address, kind, numbers), align=_BYTES)


def _everywhere(builder: Any, number: Any) -> Any:
    """A number in all lanes of a register."""
    index = ir.IntType(32)
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, index(0))
    mask = ir.Constant(ir.VectorType(index, REGISTER), [index(0)] * REGISTER)
    return builder.shuffle_vector(one, one, mask)


def _comes_from(phi: Any, *origins: tuple[Any, Any]) -> None:
    for block, value in origins:
        phi.add_incoming(value, block)
