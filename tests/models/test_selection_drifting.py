"""The drifting rule behind choices: its density by scipy, and the rule it finds in simulations."""

import numpy as np
import pytest
from scipy import special, stats

from bayesfair.errors import DataError
from bayesfair.history import History
from bayesfair.models import selection_drifting


def _log(pi, per_bin, rng):
    arm = np.concatenate([rng.choice(pi.shape[1], per_bin, p=row) for row in pi])
    return History(arm, np.zeros(len(arm)), arms=tuple("abc"[: pi.shape[1]]))


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
    density = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    assert density({"tau_log__": np.log(tau), "first": first, "z": z}) == pytest.approx(by_hand)
    assert model.named_vars_to_dims["pi"] == ("bin", "arm")


def test_arms_that_were_not_on_offer_are_refused():
    offered = np.array([[True, True, False], [True, True, True]])
    with pytest.raises(DataError) as caught:
        selection_drifting.build(History([0, 1], [0, 1], arms=("a", "b", "c"), offered=offered))
    assert caught.value.kind == "not_on_offer"


@pytest.mark.statistical
def test_it_finds_the_rule_that_was_followed():
    import pymc as pm

    pi = np.array([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.3, 0.3, 0.4]])
    history = _log(pi, 500, np.random.default_rng(2))
    with selection_drifting.build(history, n_bins=4):
        tree = pm.sample(300, tune=400, chains=2, cores=1, random_seed=1, progressbar=False)
    draws = tree.posterior["pi"].to_numpy().reshape(-1, 4, 3)
    assert np.abs(draws.mean(axis=0) - pi).max() < 0.06  # shares of 500 have sd .022 at most
    low, high = np.quantile(draws, [0.005, 0.995], axis=0)
    assert ((low < pi) & (pi < high)).sum() >= 11
