"""The drifting rule behind choices: its density by scipy, and what it refuses."""

import numpy as np
import pytest
from densities import log_density
from scipy import special, stats

from bayesfair.errors import DataError
from bayesfair.history import History
from bayesfair.models import selection_drifting


def test_the_density_is_that_of_the_words():
    history = History([0, 1, 1, 2, 0, 0], [0] * 6, arms=("a", "b", "c"))
    model = selection_drifting.build(history, n_bins=2, drift=0.7)
    tau, first, z = 0.4, np.array([0.3, -0.2, 0.1]), np.array([[0.5, -1.0, 0.2]])
    # counts of the bins by hand: rounds 0-2 have a, b, b; rounds 3-5 have c, a, a
    by_hand = (
        stats.halfnorm(scale=0.7).logpdf(tau) + stats.norm(0, 1.5).logpdf(first).sum()
        + stats.norm.logpdf(z).sum()
        + stats.multinomial(3, special.softmax(first)).logpmf([1, 2, 0])
        + stats.multinomial(3, special.softmax(first + tau * z[0])).logpmf([2, 0, 1])
    )  # fmt: skip
    (density,) = log_density(model, [{"tau": tau, "first": first, "z": z}])
    assert density == pytest.approx(by_hand)
    assert model.named_vars_to_dims["pi"] == ("bin", "arm")


def test_arms_that_were_not_on_offer_are_refused():
    offered = np.array([[True, True, False], [True, True, True]])
    with pytest.raises(DataError) as caught:
        selection_drifting.build(History([0, 1], [0, 1], arms=("a", "b", "c"), offered=offered))
    assert caught.value.kind == "not_on_offer"
