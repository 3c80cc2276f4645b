"""The interval of draws is that of numpy's quantiles, bit for bit."""

import numpy as np
import pytest

from bayesfair.base.estimates import interval


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 41, 400, 4001])
def test_the_interval_is_that_of_numpy(n):
    rng = np.random.default_rng(n)
    for power in range(-9, 10):
        draws = rng.normal(size=n) * 10.0**power
        assert interval(draws) == tuple(np.quantile(draws, [0.025, 0.975]))


def test_infinite_draws_keep_their_place():
    assert interval(np.r_[np.zeros(90), np.full(10, np.inf)]) == (0.0, np.inf)
