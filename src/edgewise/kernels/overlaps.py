"""How many ones each row of a matrix has in common with each row of another."""

from typing import Any

import numpy as np
from numba import prange, types
from numba.extending import intrinsic
from scipy.sparse import csr_matrix

from edgewise.kernels import backend
from edgewise.kernels.backend import jit


def overlaps(left: csr_matrix, right: csr_matrix) -> np.ndarray:
    """``[left, right]`` of float32: the product of two matrices of zeros and ones, exactly.

    A sparse product finds out where its result is not zero, which is nearly everywhere here.
    """
    if not backend.compiled():
        return plain_overlaps(left, right)
    rows_of = right.tocsc()
    common = np.zeros((left.shape[0], right.shape[0]), dtype=np.float32)
    with backend.running:
        _count(_unsigned(left.indptr), _unsigned(left.indices),
               _unsigned(rows_of.indptr), _unsigned(rows_of.indices), common)  # fmt: skip
    return common


def plain_overlaps(left: csr_matrix, right: csr_matrix) -> np.ndarray:
    """The same as a sparse product."""
    common: np.ndarray = (left @ right.T).toarray().astype(np.float32)
    return common


def _unsigned(places: np.ndarray) -> Any:
    return places.astype(np.uint32)


@jit(parallel=True)
def _count(start, column, row_start, row, common):  # type: ignore[no-untyped-def]
    for i in prange(len(common)):
        for p in range(start[i], start[i + 1]):
            for q in range(row_start[column[p]], row_start[column[p] + 1]):
                common[i, row[q]] += np.float32(1)


def common_bits(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``[left, right]``: how many bits each row of words has in common with each row of others."""
    if not backend.compiled():
        return plain_common_bits(left, right)
    common = np.zeros((len(left), len(right)), dtype=np.uint32)
    with backend.running:
        _count_bits(left, right, common)
    return common


def plain_common_bits(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The same as a product of zeros and ones."""
    ones = [
        np.unpackbits(words.view(np.uint8), axis=1).astype(np.float64) for words in (left, right)
    ]
    return (ones[0] @ ones[1].T).astype(np.uint32)


@intrinsic
def _ones(typing, word):  # type: ignore[no-untyped-def]
    """How many bits of a word are set."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(word), generate


@jit(parallel=True)
def _count_bits(left, right, common):  # type: ignore[no-untyped-def]
    for i in prange(len(left)):
        for j in range(len(right)):
            total = np.uint64(0)
            for word in range(left.shape[1]):
                total += _ones(left[i, word] & right[j, word])
            common[i, j] = total
