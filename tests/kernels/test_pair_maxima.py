"""The largest difference of every pair of probabilities, against broadcasting."""

from __future__ import annotations

import numpy as np
import pytest

from bayesfair.kernels.log.propensities import pair_maxima


@pytest.mark.parametrize("k", [1, 2, 3, 9])
@pytest.mark.parametrize("n_rounds", [1, 127, 128, 1000])
@pytest.mark.parametrize("gaps", [False, True])
def test_pair_maxima(k, n_rounds, gaps):
    rng = np.random.default_rng(n_rounds + k)
    pi = rng.dirichlet(np.ones(k), n_rounds)
    if gaps:
        pi[rng.random(pi.shape) < 0.4] = np.nan
        pi[:, 0] = np.where(np.isnan(pi[:, -1]), pi[:, 0], np.nan) if k > 1 else pi[:, 0]
    every = np.abs(pi[:, :, None] - pi[:, None, :])
    expected = np.max(np.where(np.isnan(every), -np.inf, every), axis=0)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_array_equal(pair_maxima(pi), expected)
