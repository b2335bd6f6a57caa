"""How many ones each row of a sparse matrix has in common with each row of another."""

from typing import Any

import numpy as np
from numba import prange
from scipy.sparse import csr_matrix

from edgewise.kernels import backend
from edgewise.kernels.backend import jit


def overlaps(left: csr_matrix, right: csr_matrix) -> np.ndarray:
    """``[left, right]`` of float32: the product of two matrices of zeros and ones, exactly.

    A sparse product finds out where its result is not zero, which is nearly everywhere here.
    """
    rows_of = right.tocsc()
    common = np.zeros((left.shape[0], right.shape[0]), dtype=np.float32)
    with backend.running:
        _count(_unsigned(left.indptr), _unsigned(left.indices),
               _unsigned(rows_of.indptr), _unsigned(rows_of.indices), common)  # fmt: skip
    return common


def _unsigned(places: np.ndarray) -> Any:
    return places.astype(np.uint32)


@jit(parallel=True)
def _count(start, column, row_start, row, common):  # type: ignore[no-untyped-def]
    for i in prange(len(common)):
        for p in range(start[i], start[i + 1]):
            for q in range(row_start[column[p]], row_start[column[p] + 1]):
                common[i, row[q]] += np.float32(1)
