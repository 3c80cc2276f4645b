"""The definitions of beliefs given a context against closed forms, quadrature and weights."""

import importlib

import numpy as np
import pytest
from densities import log_density
from sbc_tools import SHOWN, SITES, TWO, normalised_ranks, smallest_p
from scipy import special, stats

import bayesfair as bf
from bayesfair.audit.log.context_tables import KAPPA, shared_beliefs
from bayesfair.errors import DataError
from bayesfair.models import (
    bernoulli_cells,
    bernoulli_pooled_cells,
    bernoulli_shared_weights,
    normal_linear,
)


def log():
    """Six contexts from much to little, two arms."""
    rng = np.random.default_rng(8)
    arm = np.arange(len(SITES)) % 2
    pays = np.array([[0.8, 0.3], [0.7, 0.4], [0.9, 0.2], [0.5, 0.3], [0.7, 0.5], [0.8, 0.1]])
    theta = pays[np.unique(SITES, return_inverse=True)[1], arm]
    reward = (rng.random(len(SITES)) < theta).astype(float)
    reward[5] = np.nan
    return bf.History(arm, reward, context=SITES, arms=TWO)


def counts():
    """Successes and plays of each context and arm, (C, k), counted one by one."""
    history, won, seen = log(), np.zeros((6, 2)), np.zeros((6, 2))
    for site, arm, reward in zip(SITES, history.arm, history.reward, strict=True):
        if not np.isnan(reward):
            won[int(site[1]), arm] += reward
            seen[int(site[1]), arm] += 1
    return won, seen


def integrated(n_kappa):
    """E theta_ci by quadrature: Gauss-Jacobi in mu, the trapezoidal rule in log kappa."""
    won, seen = counts()
    x, w = special.roots_jacobi(120, -0.5, -0.5)
    mu, kappa = (1 + x)[:, None] / 2, np.geomspace(*KAPPA, n_kappa)
    alpha, beta = mu * kappa, (1 - mu) * kappa
    ends = np.ones(n_kappa)
    ends[[0, -1]] = 0.5
    found = np.empty((6, 2))
    for i in range(2):
        log_w = np.log(w)[:, None] + np.log(ends)
        for s, n in zip(won[:, i], seen[:, i], strict=True):
            log_w = log_w + special.betaln(alpha + s, beta + n - s) - special.betaln(alpha, beta)
        weights = np.exp(log_w - log_w.max())
        weights /= weights.sum()
        for c in range(6):
            found[c, i] = (weights * (alpha + won[c, i]) / (kappa + seen[c, i])).sum()
    return found


def of(model, name="theta", dims=("context", "arm")):
    """Means of what is read and their Monte-Carlo standard errors."""
    import arviz_stats as az

    compiled, data = model
    tree, found = compiled.fit(draws=4000, seed=3, cores=1, data=data)
    assert found["divergences"] == 0
    draws = tree["posterior"].to_dataset()[[name]]
    assert draws[name].dims[-2:] == dims
    return draws[name].mean(("chain", "draw")).values, az.mcse(draws, method="mean")[name].values


def test_data_are_the_counts_of_each_context():
    won, seen = counts()
    for module in (bernoulli_cells, bernoulli_pooled_cells):
        model = module.build(log())
        assert np.array_equal(model["pulls"].get_value(), seen)
        assert np.array_equal(model["observed_successes"].get_value(), won)
        assert tuple(model.coords["context"]) == tuple(f"s{i}" for i in range(6))
        with pytest.raises(DataError, match="context="):
            module.build(bf.History([0, 1], [1, 0]))


def test_the_audit_has_the_beliefs_of_the_pooled_definition():
    history = log()
    audit = bf.audit(history, objective=False, context_model="pooled")
    settled, found = audit.summary.end.beliefs.settled()
    won, seen = counts()
    assert np.array_equal(found, [won, seen])
    every = bf.History([0] * 6, [np.nan] * 6, arms=(0, 1), context=[f"s{i}" for i in range(6)])
    tables = audit.summary.end.beliefs
    means = shared_beliefs(every, np.arange(6, dtype=np.int32), tables, 6)[0].rewards.mean
    # 40 x 20 nodes with equal weights against 120 x 400: the ends of log kappa count in full
    assert np.abs(means - integrated(400)).max() < 0.01
    assert settled.kappa[[0, -1]].tolist() == pytest.approx(KAPPA)


def test_the_density_of_cells_is_the_closed_form():
    won, seen = counts()
    at = np.random.default_rng(5).random((4, 6, 2))
    found = log_density(bernoulli_cells.build(log()), [{"theta": theta} for theta in at])
    law = stats.beta(won + 0.5, seen - won + 0.5)
    assert np.ptp(found - law.logpdf(at).sum(axis=(1, 2))) < 1e-9


@pytest.mark.statistical
def test_nuts_on_pooled_cells_agrees_with_quadrature_and_not_with_cells(compiled):
    won, seen = counts()
    mean, error = of(compiled("bernoulli_pooled_cells", log()))
    assert (np.abs(mean - integrated(400)) / error).max() < 5
    assert (np.abs(mean - (won + 0.5) / (seen + 1)) / error).max() > 5


def with_features(reward):
    rng = np.random.default_rng(9)
    return bf.History(np.arange(60) % 2, reward(SHOWN["x"], rng), context=SHOWN, arms=TWO)


def rows(log):
    """Features of each round: intercept, the number in standard units, indicators of labels."""
    x = log.context.codes[:, 0]
    value = np.array([float(v) for v in log.context.labels[0]])[x]
    return np.column_stack([np.ones(60), (value - value.mean()) / value.std(),
                            log.context.codes[:, [1]] == np.arange(3)])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "link", "sd"), [("probit", special.ndtr, 1.0), ("logit", special.expit, 1.5)]
)
def test_the_density_on_binary_features_is_that_of_the_words_and_the_filter_is_near_its_mean(
    name, link, sd
):
    log = with_features(lambda x, rng: rng.random(60) < special.expit((x - 50) / 10))
    z, won, mine = rows(log), log.reward == 1, log.arm[:, None] == np.arange(2)
    # no far tails, where 1 - Phi is rounded
    at = np.random.default_rng(5).normal(0, 0.5, (4, 2, 5))
    model = importlib.import_module(f"bayesfair.models.bernoulli_{name}").build(log)
    found = log_density(model, [{"beta": beta} for beta in at])
    sign = np.where(won, 1, -1)  # both links are symmetric
    words = np.log(link(sign * (z @ at.swapaxes(1, 2))[:, mine])).sum(axis=1)
    assert np.ptp(found - words - stats.norm(0, sd).logpdf(at).sum(axis=(1, 2))) < 1e-5
    # exact means of the coefficients: draws of a wider law, weighted by prior and likelihood
    end = bf.audit(log, context_model=name, objective=False).state.beliefs.featured.beliefs
    for arm in range(2):
        wide = stats.multivariate_t(end.mean[arm], end.spread[arm], df=5)
        beta = wide.rvs(40_000, random_state=4)
        log_weight = np.log(link(sign[log.arm == arm] * (beta @ z[log.arm == arm].T))).sum(axis=1)
        log_weight += stats.norm(0, sd).logpdf(beta).sum(axis=1) - wide.logpdf(beta)
        weight = np.exp(log_weight - log_weight.max())
        means = weight @ beta / weight.sum()
        assert (np.abs(end.mean[arm] - means) / np.sqrt(np.diag(end.spread[arm]))).max() < 0.2


def test_the_density_on_linear_features_is_the_closed_form_of_the_audit():
    log = with_features(lambda x, rng: 300 + x + 3 * rng.normal(size=60))
    end = bf.audit(log, context_model="linear", objective=False).state.beliefs.featured.beliefs
    model = normal_linear.build(log)
    m, kappa = (model[name].get_value() for name in ("prior_mean", "prior_kappa"))
    rng = np.random.default_rng(5)
    points, closed = [], []
    for _ in range(4):
        variance = end.scale / rng.gamma(end.shape)
        sd, raw = np.sqrt(variance), rng.normal(size=(2, 5))
        beta = raw * (sd / np.sqrt(kappa))[:, None] + np.eye(5)[0] * m[:, None]
        points.append({"variance": variance, "raw": raw})
        # the model samples coefficients in units of their prior
        closed.append(sum(
            stats.multivariate_normal(end.mean[i], variance[i] * end.spread[i]).logpdf(beta[i])
            + stats.invgamma(end.shape[i], scale=end.scale[i]).logpdf(variance[i])
            + 5 * np.log(sd[i] / np.sqrt(kappa[i]))
            for i in range(2)
        ))  # fmt: skip
    assert np.ptp(log_density(model, points) - closed) < 1e-7


@pytest.mark.long
@pytest.mark.statistical
def test_ranks_are_uniform_and_a_wrong_prior_is_found_out(compiled):
    """Of the model that is compiled above; of all five: benchmarks/context_models.py."""
    for wrong in (False, True):
        ranks = normalised_ranks(compiled, "bernoulli_pooled_cells", 25, seed=30, wrong=wrong)
        p, label = smallest_p(ranks)
        assert (p < 0.001 / (2 * len(ranks))) == wrong, f"{label}, p = {p:.1e}"


def test_weights_in_common_are_those_of_features_of_each_arm():
    from pytensor.compile.mode import Mode

    rng = np.random.default_rng(3)
    prices = rng.gamma(3.0, 2.0, (30, 2))
    offered = np.arange(30) % 5 > 0  # b is away in every fifth round
    shown = [f"{p:.2f}" if there else "" for p, there in zip(prices[:, 1], offered, strict=True)]
    table = {
        "arm": np.where(offered & (np.arange(30) % 2 > 0), "b", "a"),
        "reward": rng.integers(0, 2, 30), "propensity": np.where(offered, 0.5, 1.0),
        "price_a": prices[:, 0].round(2), "price_b": shown,
    }  # fmt: skip
    history = bf.read_history(table, context="price_{arm}", missing_context="away")
    model = bernoulli_shared_weights.build(history, features=["price_{arm}"])
    given = {model["level"]: 0.3, model["weight"]: np.array([-0.7])}
    theta = model["theta"].eval(given, mode=Mode(linker="py", optimizer=None))
    z = np.where(np.column_stack([np.ones(30, bool), offered]), prices.round(2), np.nan)
    z = (z - np.nanmean(z)) / np.nanstd(z)
    assert theta == pytest.approx(special.expit(0.3 - 0.7 * np.nan_to_num(z)), abs=1e-9)
    assert model.named_vars_to_dims["theta"] == ("round", "arm")
    with pytest.raises(DataError) as refused:
        bernoulli_shared_weights.build(history, features=["size_{arm}"])
    assert (refused.value.kind, refused.value.column) == ("missing_column", "size_a")
    with pytest.raises(bf.OptionError) as refused:
        bernoulli_shared_weights.build(history)
    assert refused.value.column == "features"
