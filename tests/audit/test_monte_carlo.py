"""Logged probabilities that are shares of draws: simulated logs whose exact rule is known."""

import math

import numpy as np
import pytest

import bayesfair as bf
from bayesfair.base.notices import Notice
from bayesfair.errors import OptionError

N = 4000


def _log(rng, pi, n_draws, *, chosen=False):
    """Return choices and rewards of a rule, and what is logged of it in shares of draws."""
    rounds, k = pi.shape
    arm = np.array([rng.choice(k, p=row) for row in pi])
    logged = rng.multinomial(n_draws, pi) / n_draws
    own = logged[np.arange(rounds), arm]
    if chosen:
        return arm, rng.integers(0, 2, rounds), {"propensity": own}
    return arm, rng.integers(0, 2, rounds), {"selection_probability": logged}


@pytest.mark.parametrize("chosen", [False, True])
def test_intervals_hold_the_regret_and_the_eps2_of_the_exact_rule(chosen):
    held = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        pi = rng.dirichlet(np.full(3, 8.0), size=120)
        arm, reward, logged = _log(rng, pi, N, chosen=chosen)
        exact = bf.audit(
            bf.History(arm, reward, selection_probability=pi), objective=False, eps2=0.05
        )
        found = bf.audit(
            bf.History(arm, reward, **logged), objective=False, propensity_draws=N, eps2=0.05
        )
        held += found.regret.lower <= exact.regret.value <= found.regret.upper
        assert not found.regret.exact and found.regret.upper - found.regret.lower < 0.3
        if not chosen:
            low, high = found.to_dict()["monte_carlo"]["smallest_eps2"]
            assert low <= exact.smallest_eps2 <= high
            assert found.subjective_verdict in (exact.subjective_verdict, "undetermined")
            assert found.n_violating_rounds <= exact.n_violating_rounds
    assert held >= 27


def test_the_regret_of_an_exact_fair_rule_is_within_what_shares_of_few_draws_show():
    # P* is 1/2 each without rewards, and so is the rule: its regret is 0, its shares' is not
    pi = np.full((400, 2), 0.5)
    arm, _, logged = _log(np.random.default_rng(1), pi, 25)
    log = bf.History(arm, np.full(400, np.nan), **logged)
    found = bf.audit(log, objective=False, propensity_draws=25)
    # half the mean absolute deviation of a share of 25 draws of a fair coin, twice: .0806
    mean = sum(math.comb(25, x) / 2**25 * abs(x / 25 - 0.5) for x in range(26))
    assert found.regret.value == pytest.approx(mean, abs=4 * 0.06 / 20)
    assert found.regret.lower == 0.0


def test_the_band_is_hoeffdings_bound_and_the_verdict_follows_it():
    log = bf.History(
        [0, 1, 2, 0, 0] * 10, [1, 0] * 25, selection_probability=np.tile([0.5, 0.3, 0.2], (50, 1))
    )
    asked = {"eps1": 0, "propensity_draws": 10**6}
    found = bf.audit(log, eps2=0.02, seed=1, draws=50, **asked)
    band = found.to_dict()["monte_carlo"]["band"]
    # 10^9 comparisons, each beyond the band with probability 2 exp(-n h^2/2): .05 in all
    assert 1e9 * 2 * math.exp(-(10**6) * band**2 / 2) == pytest.approx(0.05)
    assert found.verdict == "unfair" and found.n_violating_rounds == 50
    assert found.probability_fair_between == (0.0, 0.0)
    # arms .3 apart need eps2 = .3: within the band of it nothing is concluded
    for eps2, verdict in (
        (0.3 - 2 * band, "unfair"), (0.3, "undetermined"), (0.3 + 2 * band, "fair"),
    ):  # fmt: skip
        one = bf.audit(log, eps2=eps2, seed=1, draws=50, **asked)
        assert (one.subjective_verdict, one.objective_verdict) == (verdict, verdict)
    assert bf.audit(log, eps1=0, eps2=0.3, objective=False).verdict == "fair"


def test_checks_that_need_exact_probabilities_are_left_out():
    rng = np.random.default_rng(3)
    arm, reward, logged = _log(rng, np.tile([0.5, 0.3, 0.2], (6000, 1)), 30)
    log = bf.History(arm, reward, **logged)
    # the shares' own noise looks like a rule that choices do not follow
    assert bf.audit(log, objective=False).checks["strength"].passed is False
    found = bf.audit(log, objective=False, propensity_draws=30)
    assert found.consistent and found.checks["choices"].passed
    assert found.checks["strength"].passed is None and found.checks["movement"].passed is None


def test_parts_files_and_groups_know_the_error(tmp_path):
    rng = np.random.default_rng(5)
    arm, reward, logged = _log(rng, rng.dirichlet(np.full(3, 8.0), size=120), N)
    log = bf.History(arm, reward, **logged)
    asked = {"seed": 1, "draws": 200, "eps2": 0.05}
    whole = bf.audit(log, propensity_draws=N, **asked)
    early = bf.audit(log.before(50), propensity_draws=N, **asked)
    early.save(tmp_path / "early.nc")
    again = bf.load_audit(tmp_path / "early.nc").resume(log.rounds(50, 120))
    for key in ("monte_carlo", "subjective", "calibration"):
        assert _close(again.to_dict()[key], whole.to_dict()[key])
    group = bf.audit({"a": log, "b": log}, propensity_draws=N, **asked)
    assert group["a"].to_dict()["monte_carlo"] == whole.to_dict()["monte_carlo"]
    assert "monte_carlo" in {Notice.of(one).kind for one in whole.findings}
    with pytest.raises(OptionError):
        bf.merge(early, bf.audit(log.rounds(50, 120), prior=early, **asked))
    with pytest.raises(OptionError):
        whole.prior_sensitivity()


def _close(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_close(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return all(map(_close, a, b))
    return a == pytest.approx(b) if isinstance(a, float) else a == b


@pytest.mark.parametrize(
    "options",
    [
        {"propensity_draws": 1},
        {"propensity_draws": 100, "divergence": "kl"},
        {"propensity_draws": 100, "context_model": "cells"},
    ],
)
def test_what_cannot_be_is_refused(options):
    log = bf.History([0, 1], [1, 0], selection_probability=[[0.5, 0.5]] * 2)
    with pytest.raises(OptionError) as caught:
        bf.audit(log, seed=1, **options)
    assert caught.value.column == "propensity_draws"


def test_a_log_without_probabilities_has_no_error_of_them():
    with pytest.raises(OptionError) as caught:
        bf.audit(bf.History([0, 1], [1, 0]), seed=1, propensity_draws=100)
    assert caught.value.column == "propensity_draws"


def test_an_audit_given_the_context_is_no_start_for_shares_of_draws():
    log = bf.History(
        [0, 1] * 4, [1, 0] * 4, selection_probability=[[0.5, 0.5]] * 8, context=["x", "y"] * 4
    )
    early = bf.audit(log.before(4), context_model="cells", objective=False)
    with pytest.raises(OptionError) as caught:
        bf.audit(log.rounds(4, 8), prior=early, objective=False, propensity_draws=100)
    assert caught.value.column == "propensity_draws"
    pooled = bf.audit(log, objective=False, propensity_draws=100)
    said = {Notice.of(one).kind: Notice.of(one).column for one in pooled.findings}
    assert said["monte_carlo"] == said["context_unused"] == "propensity_draws"
