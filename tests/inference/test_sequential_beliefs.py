"""Beliefs carried between a few fits, against closed forms before every round."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from bayesfair.errors import ConvergenceError, DataError, OptionError
from bayesfair.families import FAMILIES as LAWS
from bayesfair.families.logs import posterior_of, prior_of
from bayesfair.history import History
from bayesfair.inference.beliefs_by_fits import sequential_beliefs
from bayesfair.inference.refit import known_before
from bayesfair.rewards import Bernoulli, StudentT

pytestmark = pytest.mark.statistical


def bernoulli_log(k, n_rounds, seed):
    rng = np.random.default_rng(seed)
    theta, arm = rng.random(k), rng.integers(0, k, n_rounds)
    return History(arm, rng.random(n_rounds) < theta[arm], arms=[f"arm {i}" for i in range(k)])


def jeffreys_means(history):
    """Posterior means of Beta(1/2, 1/2)-Bernoulli before each round, by counting."""
    k, n_rounds = history.n_arms, history.n_rounds
    won, pulls = np.zeros((2, n_rounds + 1, k))
    for t in range(n_rounds):
        won[t + 1], pulls[t + 1] = won[t], pulls[t]
        won[t + 1, history.arm[t]] += history.reward[t]
        pulls[t + 1, history.arm[t]] += 1
    return ((won + 0.5) / (pulls + 1))[:-1]


def test_two_thousand_rounds_from_few_fits():
    k = 3
    history = bernoulli_log(k, 2000, seed=k)
    found = sequential_beliefs(history, model="bernoulli_independent", seed=1, cores=1)
    exact = jeffreys_means(history)
    assert found.n_fits <= 15
    assert found.n_compiled == 1
    assert found.worst_khat <= 0.7
    assert found.ess.min() >= 200
    assert found.fit_rounds[0] == 0 and found.fit_rounds[-1] == 1999
    z = (found.mean - exact) / found.mean_mcse
    assert np.abs(z).max() < 5
    # independent arms: P* at the means is the posterior mean of P*
    z = (found.best_arm_probability - Bernoulli(exact).best_arm_probability()) / found.best_arm_mcse
    assert np.abs(z).max() < 5
    assert np.allclose(found.best_arm_probability.sum(axis=1), 1)
    assert np.allclose(found.rewards.mean, found.mean, rtol=1e-12)
    # errors are small beside the spread of the belief itself, so that the 5 means something
    seen = np.arange(2000)[:, None] / k
    assert np.all(found.mean_mcse < 0.25 * np.sqrt(exact * (1 - exact) / (seen + 2)) + 0.01)
    assert "fits" in repr(found)


def mixed_log(reward_of):
    """Return 300 rounds with delays, missing rewards and an arm that is not always on offer."""
    rng = np.random.default_rng(5)
    n_rounds, k = 300, 3
    arm = rng.integers(0, k, n_rounds)
    offered = np.ones((n_rounds, k), dtype=bool)
    offered[100:140, 2] = False
    arm[100:140] %= 2
    reward = reward_of(rng, arm).astype(float)
    reward[rng.random(n_rounds) < 0.1] = np.nan
    rounds = np.arange(n_rounds)
    return History(arm, reward, arms=tuple("abc"), offered=offered, known_at=rounds // 4 * 4 + 6)


FAMILIES = {
    "bernoulli": lambda rng, arm: rng.random(len(arm)) < 0.2 + 0.25 * arm,
    "finite": lambda rng, arm: rng.choice([1.0, 2.0, 5.0], size=len(arm)),
    "poisson": lambda rng, arm: rng.poisson(1.0 + 2 * arm),
    "normal": lambda rng, arm: rng.normal(arm * 0.5, 1 + 0.5 * arm),
}


# what is carried between fits knows the family by its rewards alone: one of them shows it
@pytest.mark.parametrize(
    "family",
    [f if f == "bernoulli" else pytest.param(f, marks=pytest.mark.long) for f in FAMILIES],
)
def test_other_families_delays_and_offers(family):
    history = mixed_log(FAMILIES[family])
    found = sequential_beliefs(history, model=f"{family}_independent", seed=1, cores=1)
    assert found.worst_khat <= 0.7
    support = [1.0, 2.0, 5.0] if family == "finite" else None
    # of measurements that of the whole log, which a model keeps from the first round on
    prior = prior_of(history, LAWS[family], None)[0] if family == "normal" else None
    z = []
    for t in range(0, 300, 7):
        known = history.before(t)
        reward = np.where(history.known_at[:t] <= t, known.reward, np.nan)
        part = History(known.arm, reward, arms=history.arms)
        _, table, _ = posterior_of(part, LAWS[family], prior=prior, support=support)
        if family == "finite":
            exact = table / table.sum(axis=1, keepdims=True) @ np.array(support)
        elif family == "bernoulli":
            exact = table[:, 0] / table.sum(axis=1)
        elif family == "poisson":
            exact = table[:, 0] / table[:, 1]
        else:
            exact = table[:, 0]
            mean, kappa, shape, scale = table.T
            predictive = StudentT(2 * shape, mean, np.sqrt(scale * (kappa + 1) / (shape * kappa)))
            distance = predictive.divergence("total_variation")
            # the law on cells is coarse where one arm is unknown, and sampled
            assert np.abs(found.rewards[t].divergence("total_variation") - distance).max() < 0.05
            # two degrees of freedom: the mean of draws has no standard error
            exact = np.where(shape > 1.5, exact, found.mean[t])
        z.append((found.mean[t] - exact) / found.mean_mcse[t])
    assert np.abs(z).max() < 5
    assert np.isnan(found.best_arm_probability[100:140, 2]).all()
    assert np.allclose(np.nansum(found.best_arm_probability, axis=1), 1)
    assert not np.isnan(found.best_arm_probability[:100]).any()
    # states change with the batches only
    assert np.array_equal(found.mean[20], found.mean[21])


def hierarchical(history):
    """Posterior means and P* of logit-normal arms by quadrature: over centre, spread and each arm.

    Given centre and spread the arms are independent, and P* is linear in each success rate: it is
    that of the conditional means, summed over all outcomes of one reward per arm.
    """
    mu = np.linspace(-15, 15, 201)[:, None, None]
    node, share = np.polynomial.legendre.leggauss(40)
    tau = (3 * (node + 1))[:, None]  # its prior has 2e-9 beyond 6
    z = np.linspace(-7, 7, 181)
    log_rate = special.log_expit(mu + tau * z)
    log_fail = special.log_expit(-mu - tau * z)
    weight = stats.logistic.pdf(mu[..., 0]) * share * stats.norm.pdf(tau[:, 0])
    means = []
    for pulls, won in zip(*history.counts(), strict=True):
        mass = stats.norm.pdf(z) * np.exp(won * log_rate + (pulls - won) * log_fail)
        total = mass.sum(axis=-1)
        means.append((mass * np.exp(log_rate)).sum(axis=-1) / total)
        weight = weight * total
    weight /= weight.sum()
    theta = np.array(means)
    best = np.zeros(len(means))
    for rewards in itertools.product((0, 1), repeat=len(means)):
        won = np.array(rewards)
        chance = np.where(won[:, None, None] == 1, theta, 1 - theta).prod(axis=0)
        highest = won == won.max()
        best += highest / highest.sum() * float((weight * chance).sum())
    return (weight * theta).sum(axis=(1, 2)), best


def test_dependent_arms_against_quadrature():
    """Means and P* under the hierarchical model, fitted or carried, against the exact ones."""
    history = bernoulli_log(3, 120, seed=7)
    found = sequential_beliefs(history, model="bernoulli_hierarchical", seed=1, cores=1)
    rounds = (0, 5, 12, 20, 32, 45, 70, 100, 119)
    assert sum(t not in found.fit_rounds for t in rounds) >= 5
    for t in rounds:
        mean, best = hierarchical(history.before(t))
        assert np.all(np.abs(found.mean[t] - mean) < 5 * found.mean_mcse[t])
        assert np.all(np.abs(found.best_arm_probability[t] - best) < 5 * found.best_arm_mcse[t])


def test_drift_is_filtered_bin_by_bin():
    rng = np.random.default_rng(8)
    arm = np.tile([0, 1], 150)
    theta = np.where(np.arange(300)[:, None] < 150, [[0.9, 0.5]], [[0.1, 0.5]])
    arms = ("falls", "stays", "never tried")
    history = History(arm, rng.random(300) < theta[np.arange(300), arm], arms=arms)
    found = sequential_beliefs(
        history, model="bernoulli_drifting", model_options={"n_bins": 4}, seed=1, cores=1
    )
    assert found.worst_khat <= 0.7
    assert found.mean[74, 0] > 0.8 and found.mean[299, 0] < 0.25
    # at the first round of a new bin nothing is known of its step: the belief is wider, not moved
    assert abs(found.mean[149, 0] - found.mean[150, 0]) < 0.1
    # without look-ahead: the past is the same if the future is another
    other = History(arm[:250], history.reward[:250], arms=history.arms)
    again = sequential_beliefs(
        other,
        model="bernoulli_drifting",
        model_options={"bin_start": [0, 75, 150, 225]},
        seed=2,
        cores=1,
    )
    error = np.hypot(found.mean_mcse[:250], again.mean_mcse)
    assert np.all(np.abs(found.mean[:250] - again.mean) < 5 * error + 1e-3)


def test_own_models_that_embed_their_data_are_compiled_anew():
    import pymc as pm

    def build(history):
        pulls, won = history.counts()
        with pm.Model(coords={"arm": history.arms}) as model:
            theta = pm.Beta("theta", 0.5, 0.5, dims="arm")
            pm.Binomial("won", pulls, theta, observed=won.astype(int), dims="arm")
        return model

    build.READS = ("theta",)
    history = bernoulli_log(2, 3, seed=9)
    found = sequential_beliefs(history, model=build, seed=1, cores=1)
    assert found.n_compiled == found.n_fits > 1
    z = (found.mean - jeffreys_means(history)) / found.mean_mcse
    assert np.abs(z).max() < 5


def test_what_is_known_before_a_round():
    history = History([0, 1, 0], [1, 0, 1], arms=("a", "b"), known_at=[3, 2, 3])
    part = known_before(history, np.array([1, 0, 2]), 1, 2)
    assert part.n_rounds == 2
    assert np.isnan(part.reward[0]) and part.reward[1] == 0


def test_short_logs_and_refusals():
    history = bernoulli_log(3, 2000, seed=3)
    one = sequential_beliefs(
        History([0], [1], arms=history.arms), model="bernoulli_independent", seed=1, cores=1
    )
    assert one.n_fits == 1 and one.best_arm_probability == pytest.approx(1 / 3, abs=0.1)
    with pytest.raises(OptionError, match="no rounds"):
        sequential_beliefs(History([], [], arms=("a",)), model="bernoulli_independent", seed=1)
    with pytest.raises(DataError, match=r"0\.5"):
        sequential_beliefs(History([0], [0.5]), model="bernoulli_independent", seed=1)
    with pytest.raises(ConvergenceError, match="2 fits did not suffice"):
        sequential_beliefs(history, model="bernoulli_independent", seed=1, max_fits=2, cores=1)
