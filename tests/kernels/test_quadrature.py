"""As few nodes as the error bound allows must be as good as the exact number."""

from __future__ import annotations

import numpy as np
import pytest

from bayesfair.kernels.laws.quadrature import n_tie_nodes, unit_nodes


@pytest.mark.parametrize("k", [1, 2, 3, 10, 17, 34, 64, 80, 128, 200])
def test_as_exact_as_the_exact_number_of_nodes(k):
    """The integrand of arm 0, for sure, unlikely and mixed rewards, by both numbers of nodes."""
    rng = np.random.default_rng(k)
    few, many = unit_nodes(n_tie_nodes(k)), unit_nodes(max(1, -(-k // 2)))
    for m in (np.ones(k - 1), np.full(k - 1, 0.01), rng.random(k - 1), rng.random(k - 1) ** 0.2):
        one, other = (
            w @ np.prod(1 - m[:, None] * (1 - x), axis=0, initial=1.0) for x, w in (few, many)
        )
        assert one == pytest.approx(other, rel=0, abs=4e-15)
    # all rewards sure: the integral of x^(k-1)
    assert few[1] @ few[0] ** (k - 1) == pytest.approx(1 / k, rel=0, abs=4e-15)


def test_nodes_grow_slower_than_half_the_arms():
    sizes = [n_tie_nodes(k) for k in (1, 2, 3, 16, 80, 200, 3000)]
    assert sizes[:4] == [1, 1, 2, 8]
    assert sizes[4:] == [30, 61, 220]
