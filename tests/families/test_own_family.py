"""A family of a user's own, in one place: waiting times that are exponential, with Gamma beliefs.

Everything it is asked for is held against quadrature, enumeration or scipy's laws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import integrate, stats

import bayesfair as bf
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES, Family, family_named, register
from bayesfair.policies import SDTS, Thompson

NODE, WEIGHT = np.polynomial.laguerre.laggauss(60)
GRID = np.linspace(0, 30, 6001)


class Waits(bf.rewards.Rewards):
    """Laws on (0, inf), told by survival, density and the point that exp(-y) of the law survives.

    Each of the three is a function of a number and the parameters.
    """

    def _of(self, function, x, axis):
        return function(x, *(np.expand_dims(getattr(self, n), axis) for n in self._parameters))

    def best_arm_probability(self, *, offered=None):
        mask = self._offered(offered)
        mask = np.ones((*self.batch_shape, self.n_arms), bool) if mask is None else mask
        x = self._of(self.survived, NODE, -1)  # where arm i stands, (..., i, y)
        below = 1 - self._of(self.survival, x[..., None, :], (-3, -1))  # arm j there
        other = ~np.eye(self.n_arms, dtype=bool) & mask[..., None, :]
        best = np.where(other[..., None], below, 1.0).prod(axis=-2) @ WEIGHT
        return np.where(mask, best, np.nan)

    def _divergence(self, name):
        assert name == "total_variation"
        x = self._of(self.survived, GRID, -1)
        mine = self._of(self.density, x, -1)[..., None, :]
        ratio = self._of(self.density, x[..., None, :], (-3, -1)) / mine
        return integrate.trapezoid(np.maximum(1 - ratio, 0) * np.exp(-GRID), GRID, axis=-1)

    def log_prob(self, reward):
        value = np.asarray(reward, float)
        with np.errstate(divide="ignore"):
            log = np.log(self._of(self.density, np.abs(value), ()))
        return np.where(value > 0, log, -np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Exponential(Waits):
    rate: np.ndarray
    _parameters: ClassVar = ("rate",)
    survived = staticmethod(lambda y, rate: y / rate)
    survival = staticmethod(lambda x, rate: np.exp(-x * rate))
    density = staticmethod(lambda x, rate: rate * np.exp(-x * rate))

    def __post_init__(self):
        self._store(rate=self.rate)

    @property
    def mean(self):
        return 1 / self.rate

    def _sample(self, shape, rng):
        return rng.exponential(1 / self.rate, shape)


@dataclass(frozen=True, eq=False, repr=False)
class Lomax(Waits):
    shape: np.ndarray
    scale: np.ndarray
    _parameters: ClassVar = ("shape", "scale")
    survived = staticmethod(lambda y, a, b: b * np.expm1(y / a))
    survival = staticmethod(lambda x, a, b: (1 + x / b) ** -a)
    density = staticmethod(lambda x, a, b: a / b * (1 + x / b) ** -(a + 1))

    def __post_init__(self):
        self._store(shape=self.shape, scale=self.scale)

    @property
    def mean(self):
        return self.scale / (self.shape - 1)

    def _sample(self, shape, rng):
        return rng.pareto(self.shape, shape) * self.scale


class Waiting(Family):
    name, model = "waiting", "waiting_independent"
    parameters, default = ("shape", "rate"), (2.0, 1.0)
    law, reads, allowed = "1 / mean ~ Gamma(shape, rate = {})", ("pace",), "numbers above 0"
    continuous = True

    def holds(self, reward, support):
        return reward > 0

    def added(self, coded):
        return np.stack([np.ones_like(coded), coded], axis=1)

    def predictive(self, table, support, arms):
        return Lomax(table[..., 0], table[..., 1], arms=arms)

    def best_mean(self, table, support):
        """Of two arms: the slower pace has the larger mean; a ratio of Gamma variables is F."""
        (a, b), (c, d) = table
        first = stats.f(2 * a, 2 * c).cdf(b * c / (a * d))
        return np.array([first, 1 - first])

    def draws(self, table, shape, rng):
        return {"pace": rng.gamma(table[:, 0], 1 / table[:, 1], (*shape, len(table)))}

    def truth(self, reads, arms, level):
        return Exponential(reads["pace"], arms=arms)

    def log_prior(self, reads, prior):
        return stats.gamma(prior[:, 0], scale=1 / prior[:, 1]).logpdf(reads["pace"]).sum(axis=-1)


@pytest.fixture(autouse=True)
def waiting():
    register(Waiting())
    yield FAMILIES["waiting"]
    del FAMILIES["waiting"]


def waits(n=24, *, k=2, seed=5, missing=True):
    rng = np.random.default_rng(seed)
    pi = rng.dirichlet(np.full(k, 3.0), n)
    arm = (pi.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    reward = rng.exponential([1.0, 2.5, 0.7][:k], (n, k))[np.arange(n), arm]
    if missing:
        reward[rng.random(n) < 0.2] = np.nan
    known_at = np.arange(n) + rng.integers(1, 6, n)
    arms = [f"arm {i}" for i in range(k)]
    return bf.History(arm, reward, selection_probability=pi, arms=arms, known_at=known_at)


def known_before(log, t, i):
    use = (log.arm == i) & (log.known_at <= t) & ~np.isnan(log.reward)
    return log.reward[use]


def predictive(x, n=2.0, total=1.0):
    """Law of the next wait after waits x, from Bayes' rule: the pace integrated out by scipy."""
    a, b = n + len(x), total + x.sum()
    return stats.lomax(a, scale=b)


def best_of(laws):
    """P(each is the largest) of independent laws on (0, inf), by scipy's quadrature."""
    return [
        integrate.quad(
            lambda x, i=i: laws[i].pdf(x) * np.prod([f.cdf(x) for f in laws if f is not laws[i]]),
            0, np.inf, epsabs=1e-12, limit=400,
        )[0]
        for i in range(len(laws))
    ]  # fmt: skip


def test_the_predictive_law_of_the_oracle_is_bayes_rule():
    x, at = np.array([0.4, 1.9, 0.8]), 1.3

    def joint(pace, last):
        values = np.append(x, last) if last else x
        return stats.gamma(2.0, scale=1.0).pdf(pace) * np.prod(pace * np.exp(-pace * values))

    both = integrate.quad(joint, 0, np.inf, (at,))[0] / integrate.quad(joint, 0, np.inf, (0,))[0]
    assert predictive(x).pdf(at) == pytest.approx(both, rel=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_beliefs_before_each_round(k):
    log = waits(k=k)
    found = bf.beliefs(log, family="waiting")
    assert found.prior.startswith("1 / mean ~ Gamma(shape, rate = 2, 1), every arm")
    for t in (0, 3, 11, 23):
        laws = [predictive(known_before(log, t, i)) for i in range(k)]
        np.testing.assert_allclose(found.best_arm_probability[t], best_of(laws), atol=1e-8)
        np.testing.assert_allclose(
            np.exp(found.rewards[t].log_prob(1.3)), [law.pdf(1.3) for law in laws], rtol=1e-12
        )


def test_an_audit_judges_every_round_and_goes_on_where_it_ended(tmp_path):
    log = waits()
    audit = bf.audit(log, family="waiting", draws=200, seed=1)
    rounds = audit.rounds()
    for t in (0, 7, 23):
        laws = [predictive(known_before(log, t, i)) for i in range(2)]
        pi = log.selection_probability[t]
        far = integrate.quad(
            lambda x, laws=laws: abs(laws[0].pdf(x) - laws[1].pdf(x)) / 2, 0, np.inf, limit=400
        )[0]
        needed = max(0.0, abs(pi[0] - pi[1]) - audit.criterion.eps1 * far)
        assert float(rounds["smallest_eps2"][t]) == pytest.approx(needed, abs=1e-4)
        regret = np.maximum(best_of(laws) - pi, 0).sum()
        assert float(rounds["fairness_regret"][t]) == pytest.approx(regret, abs=1e-8)
    bf.audit(log.before(9), family="waiting", draws=200, seed=1).save(tmp_path / "a.nc")
    whole = bf.load_audit(tmp_path / "a.nc").resume(log.rounds(9, 24))
    assert whole.regret.value == pytest.approx(audit.regret.value, rel=1e-12)
    assert whole.probability_fair == audit.probability_fair


def test_arms_that_were_never_played_share_a_law():
    log = waits(k=3)
    more = bf.History(
        log.arm, log.reward, arms=[*log.arms, "x", "y", "z"], known_at=log.known_at,
        selection_probability=np.pad(log.selection_probability, ((0, 0), (0, 3))),
    )  # fmt: skip
    audit = bf.audit(more, family="waiting", objective=False)
    laws = [predictive(known_before(more, 23, i)) for i in range(6)]
    np.testing.assert_allclose(audit.rounds()["best_arm_probability"][23], best_of(laws), atol=1e-6)


def test_the_closed_form_is_the_posterior():
    log = waits(60)
    tree = bf.fit(log, family="waiting", draws=4000, seed=1)
    assert tree.attrs["model"] == "waiting_independent" and tree.attrs["method"] == "conjugate"
    for i in range(2):
        x = log.reward[(log.arm == i) & ~np.isnan(log.reward)]
        law = stats.gamma(2 + len(x), scale=1 / (1 + x.sum()))
        pace = tree["posterior"]["pace"].values[..., i].ravel()
        assert stats.kstest(pace, law.cdf).pvalue > 1e-4
    # log p(waits | pace) by scipy, averaged over draws: what leaving one out starts from
    assert bf.loo(tree, log).n_data_points == int((~np.isnan(log.reward)).sum())
    table = bf.prior_sensitivity(tree, log)
    assert table.loc["pace[arm 0]", "prior"] < 0.05


def test_decision_rules_learn_under_it():
    rule, x = SDTS(), [1.4, 0.2, 3.0]
    state = rule.start(2, "waiting")
    for reward in x:
        state = rule.update(state, 0, reward)
    laws = [predictive(np.array(x)), predictive(np.empty(0))]
    np.testing.assert_allclose(rule.selection_probability(state), best_of(laws), atol=1e-8)
    a, b = stats.gamma(2 + 3, scale=1 / (1 + 4.6)), stats.gamma(2, scale=1.0)
    first = integrate.quad(lambda p: a.pdf(p) * b.sf(p), 0, np.inf)[0]
    np.testing.assert_allclose(Thompson().selection_probability(state)[0], first, rtol=1e-8)
    run = bf.simulate(rule, Exponential([1.0, 0.4]), 20, seed=1, family="waiting")
    np.testing.assert_allclose(
        bf.beliefs(run, family="waiting").best_arm_probability,
        run.selection_probability,
        atol=1e-12,
    )


def test_one_message_wherever_a_reward_does_not_fit():
    log = bf.History(["a", "b"], [1.0, -2.0], selection_probability=[[0.5, 0.5]] * 2)
    rule = SDTS()
    words = "is -2; family='waiting' needs numbers above 0 (1 such reward). Ratings: "
    for call in (
        lambda: bf.audit(log, family="waiting", seed=1),
        lambda: bf.beliefs(log, family="waiting"),
        lambda: bf.fit(log, family="waiting", seed=1),
        lambda: rule.update(rule.start(2, "waiting"), 1, -2.0),
    ):
        with pytest.raises(DataError) as error:
            call()
        assert words in str(error.value)
        assert (error.value.kind, error.value.value) == ("not_in_family", -2.0)


def test_what_it_does_not_define_is_refused_by_name():
    log = waits()
    with pytest.raises(OptionError, match="closed form of family 'waiting'") as error:
        bf.fit(log, family="waiting", method="nuts", seed=1)
    assert error.value.kind == "no_model"
    with pytest.raises(OptionError) as error:
        FAMILIES["waiting"].mass({}, np.empty(0))
    assert error.value.kind == "family_lacks" and "mass()" in str(error.value)
    meanless = type("Meanless", (Waiting,), {"predictive": lambda *_: object()})()
    with pytest.raises(OptionError) as error:
        meanless.mean(np.array([[2.0, 1.0]]), np.empty(0))
    assert error.value.kind == "family_lacks" and "mean()" in str(error.value)


@pytest.mark.parametrize("wrong", [Waiting, "waiting", Waiting()])
def test_only_new_families_are_registered(wrong):
    with pytest.raises(OptionError):
        register(wrong)


def test_a_family_that_lacks_something_is_not_registered():
    class Nameless(Waiting):
        name, model, default = "other", "other_independent", (1.0,)

    with pytest.raises(OptionError, match="2 parameters and 1 default"):
        register(Nameless())
    assert "other" not in FAMILIES
    with pytest.raises(OptionError, match="waiting"):
        family_named("other")
