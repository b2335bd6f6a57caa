"""The map of the embeddings is that of scikit-learn's PCA, up to signs."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from edgewise.report.panels.embeddings import _components


@pytest.mark.parametrize("shape", [(40, 7), (6, 30), (5, 1), (2, 3)])
def test_components_are_those_of_scikit_learn(shape):
    rows = np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1) + 3
    place, explained = _components(rows)
    pca = PCA(min(2, *shape), svd_solver="full")
    expected = pca.fit_transform(rows)
    for column, (mine, theirs) in enumerate(zip(place.T, expected.T, strict=False)):
        sign = np.sign(mine @ theirs) or 1
        assert np.allclose(sign * mine, theirs, atol=1e-8)
        assert explained[column] == pytest.approx(pca.explained_variance_ratio_[column])


def test_equal_rows_lie_on_one_point():
    place, explained = _components(np.ones((4, 3)))
    assert not place.any()
    assert not explained.any()
