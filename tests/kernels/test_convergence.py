"""R-hat and effective sample sizes are ArviZ's, to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats

from bayesfair.kernels.orders.convergence import convergence


def autoregressive(rho, shape, rng):
    x = rng.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] += rho * x[:, t - 1]
    return x


@pytest.mark.parametrize("shape", [(4, 500), (4, 501), (2, 40), (3, 21)])
def test_numbers_are_those_of_arviz(shape):
    rng = np.random.default_rng(1)
    cases = [autoregressive(rho, shape, rng) for rho in (0, 0.5, 0.95, -0.6, 0.999)]
    cases += [cases[0] + np.arange(shape[0])[:, None]]  # chains apart
    cases += [np.round(cases[1]), np.round(cases[2], 1)]  # ties share ranks
    cases += [rng.standard_cauchy(size=shape), np.exp(3 * rng.normal(size=shape))]
    axes = {"chain_axis": 0, "draw_axis": 1}
    for x, (r_hat, bulk, tail) in zip(cases, convergence(np.array(cases)).T, strict=True):
        assert r_hat == pytest.approx(array_stats.rhat(x, **axes), rel=1e-10)
        assert bulk == pytest.approx(array_stats.ess(x, method="bulk", **axes), rel=1e-10)
        theirs = array_stats.ess(x, method="tail", prob=(0.05, 0.95), **axes)
        assert tail == pytest.approx(theirs, rel=1e-10, nan_ok=True)


def test_what_cannot_be_judged_is_no_number():
    x = np.random.default_rng(2).normal(size=(2, 4, 100))
    x[1, 0, 3] = np.inf
    found = convergence(x)
    assert np.isfinite(found[:, 0]).all() and np.isnan(found[:, 1]).all()
    assert np.isnan(convergence(x[:, :, :3])).all() and np.isnan(convergence(x[:, :1])).all()
