"""Ones in common, counted along the columns, equal the product of the matrices."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from edgewise.kernels import overlaps as module
from edgewise.kernels.backend import plain_kernels
from edgewise.kernels.overlaps import common_bits, overlaps, plain_common_bits, plain_overlaps


def ones(rows, columns, share):
    return (np.random.default_rng(rows).random((rows, columns)) < share).astype(np.float32)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
@pytest.mark.parametrize(("left", "right"), [(5, 30), (30, 5), (1, 1), (0, 4), (4, 0)])
def test_overlaps_equal_the_dense_product(left, right, share):
    left, right = ones(left, 70, share), ones(right, 70, share)
    sparse = csr_matrix(left), csr_matrix(right)
    for found in (overlaps(*sparse), plain_overlaps(*sparse)):
        assert found.dtype == np.float32
        assert np.array_equal(found, left @ right.T)


def test_places_of_64_bits_as_in_a_saved_model_are_read():
    whole = csr_matrix(ones(6, 20, 0.3))
    saved = csr_matrix(
        (whole.data, whole.indices.astype(np.int64), whole.indptr.astype(np.int64)), whole.shape
    )
    assert np.array_equal(overlaps(whole, saved), overlaps(whole, whole))


@pytest.mark.parametrize(("left", "right"), [(5, 30), (1, 1), (0, 4), (4, 0)])
def test_common_bits_equal_the_product_of_zeros_and_ones(left, right):
    left, right = ones(left, 192, 0.4), ones(right, 192, 0.4)
    words = [np.packbits(bits.astype(bool), axis=1).view(np.uint64) for bits in (left, right)]
    for found in (common_bits(*words), plain_common_bits(*words)):
        assert found.dtype == np.uint32
        assert np.array_equal(found, left @ right.T)


def test_without_compiled_kernels_none_is_called(monkeypatch):
    for name in ("_count", "_count_bits"):
        monkeypatch.setattr(module, name, None)
    left = ones(3, 64, 0.4)
    words = np.packbits(left.astype(bool), axis=1).view(np.uint64)
    with plain_kernels():
        assert np.array_equal(overlaps(csr_matrix(left), csr_matrix(left)), left @ left.T)
        assert np.array_equal(common_bits(words, words), left @ left.T)
