"""LOO per round, comparison, prior sensitivity: against exact values and ArviZ on single rounds."""

import numpy as np
import pytest

from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.inference import fit, rewards_from_posterior
from bayesfair.inference.elpd import compare, loo
from bayesfair.inference.prior_power import prior_sensitivity

RNG = np.random.default_rng(1)
ARM = RNG.integers(0, 3, 200)
HISTORY = History(ARM, RNG.random(200) < np.array([0.2, 0.5, 0.8])[ARM], arms=("a", "b", "c"))


def expanded(tree, history):
    """Return the tree with the log likelihood of every single round, for ArviZ."""
    import xarray as xr

    rewards = rewards_from_posterior(tree)
    seen = np.flatnonzero(~np.isnan(history.reward))
    table = np.stack(
        [rewards.log_prob(history.reward[t])[:, history.arm[t]] for t in seen], axis=-1
    )
    sizes = tree["posterior"].sizes
    values = table.reshape(sizes["chain"], sizes["draw"], -1)
    group = xr.Dataset({"y": (("chain", "draw", "round"), values)})
    return xr.DataTree.from_dict(
        {"/posterior": tree["posterior"].to_dataset(), "/log_likelihood": group}
    )


def test_loo_is_exact_for_beta_bernoulli():
    found = loo(fit(HISTORY, seed=1, draws=20_000))
    pulls, won = HISTORY.counts()
    # leaving one round out: Beta(a + s - r, b + f - (1 - r)), predictive in closed form
    success = (0.5 + won - 1) / pulls
    failure = (0.5 + pulls - won - 1) / pulls
    exact = np.log(np.where(HISTORY.reward == 1, success[HISTORY.arm], failure[HISTORY.arm]))
    # log p(reward) of a draw varies by sqrt((1 - p) / (p n)), p the probability of the reward
    p = np.exp(exact)
    error = np.sqrt((1 - p) / (p * pulls[HISTORY.arm]) / 20_000)
    assert np.all(np.abs(found.elpd_i.values - exact) < 5 * error)
    # errors of rounds with the same arm and reward are one and the same
    assert abs(found.elpd - exact.sum()) < 5 * error.sum()
    assert found.se == pytest.approx(np.sqrt(200 * exact.var(ddof=1)), rel=0.01)
    assert found.n_data_points == 200 and not found.warning


@pytest.mark.parametrize("family", ["bernoulli", "finite", "poisson", "normal"])
def test_loo_equals_arviz_on_single_rounds(family):
    import arviz_stats as az

    tree = fit(HISTORY, family=family, seed=2)
    ours, theirs = loo(tree), az.loo(expanded(tree, HISTORY), pointwise=True, reff=1.0)
    assert type(ours) is type(theirs)
    assert ours.elpd == pytest.approx(float(theirs.elpd), abs=1e-8)
    assert ours.se == pytest.approx(float(theirs.se), abs=1e-8)
    assert ours.p == pytest.approx(float(theirs.p), abs=1e-8)
    assert ours.elpd_i.values == pytest.approx(theirs.elpd_i.values, abs=1e-10)
    assert ours.pareto_k.values == pytest.approx(theirs.pareto_k.values, abs=1e-10)
    assert "elpd_loo" in str(ours)


def test_multiplicities_do_not_cost():
    rounds = 400_000
    rng = np.random.default_rng(3)
    history = History(rng.integers(0, 2, rounds), rng.random(rounds) < 0.3, arms=("a", "b"))
    found = loo(fit(history, seed=1))
    assert found.n_data_points == rounds
    assert found.elpd_i.shape == (rounds,)
    assert found.elpd / rounds == pytest.approx(0.3 * np.log(0.3) + 0.7 * np.log(0.7), abs=5e-3)


def test_unobserved_rounds_have_no_term():
    history = History([0, 1, 0, 1], [1, np.nan, 0, 1], arms=("a", "b"))
    assert loo(fit(history, seed=1)).n_data_points == 3
    with pytest.raises(DataError, match="no reward"):
        loo(fit(History([0], [np.nan], arms=("a",)), seed=1))


def test_compare_is_paired_by_round():
    import arviz_stats as az

    fits = {
        "own": fit(HISTORY, seed=1),
        "pooled": fit(HISTORY, prior=(1000, 1000), seed=1),
        "levels": fit(HISTORY, family="finite", seed=1),
    }
    table = compare(fits)
    assert list(table.index[-1:]) == ["pooled"]
    theirs = az.compare(
        {name: az.loo(expanded(tree, HISTORY), pointwise=True, reff=1.0)
         for name, tree in fits.items()},
        round_to="none",
    )  # fmt: skip
    for column in ("elpd", "elpd_diff", "dse", "se"):
        assert table[column].astype(float).values == pytest.approx(
            theirs.loc[table.index, column].astype(float).values, abs=1e-7
        )


def test_compare_refuses_what_cannot_be_compared():
    one = fit(HISTORY, seed=1)
    with pytest.raises(OptionError, match="at least two"):
        compare({"one": one})
    with pytest.raises(OptionError, match="density"):
        compare({"one": one, "normal": fit(HISTORY, family="normal", seed=1)})
    with pytest.raises(OptionError, match="different numbers of rounds"):
        compare({"one": one, "half": fit(HISTORY.before(100), seed=1)})
    with pytest.raises(OptionError, match="200 rounds"):
        loo(one, HISTORY.before(100))


def test_compare_takes_what_loo_returned():
    import arviz_stats as az

    fits = {"flat": fit(HISTORY, prior=(1, 1), seed=1), "tight": fit(HISTORY, prior=(9, 9), seed=1)}
    from_fits = compare(fits)
    results = {name: loo(tree) for name, tree in fits.items()}
    mixed = compare({"flat": fits["flat"], "tight": results["tight"]})
    theirs = az.compare(results, round_to="none")
    for ours in (from_fits, compare(results), mixed):
        assert list(ours.index) == list(theirs.index)
        assert ours["elpd"].to_numpy() == pytest.approx(theirs["elpd"].to_numpy(), abs=1e-10)
        assert ours["dse"].to_numpy() == pytest.approx(theirs["dse"].to_numpy(), abs=1e-10)


def test_fits_of_different_logs_of_one_length_are_refused():
    other = History(HISTORY.arm, 1 - HISTORY.reward, arms=HISTORY.arms)
    with pytest.raises(OptionError, match="different logs"):
        compare({"one": fit(HISTORY, seed=1), "other": fit(other, seed=1)})
    # the same rewards at other rounds: the pairs of terms would not belong together
    turned = History(HISTORY.arm[::-1], HISTORY.reward[::-1], arms=HISTORY.arms)
    with pytest.raises(OptionError, match="different logs"):
        compare({"one": fit(HISTORY, seed=1), "turned": fit(turned, seed=1)})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: loo("bernoulli_independent", HISTORY), "loo needs a fit"),
        (lambda: compare([1, 2]), "by name"),
    ],
)
def test_what_is_no_fit_is_named(call, message):
    with pytest.raises(OptionError, match=message):
        call()


def test_prior_sensitivity_names_the_conflict():
    good = prior_sensitivity(fit(HISTORY, seed=1))
    assert set(good.columns) == {"prior", "likelihood", "diagnosis"}
    assert (good["prior"] < 0.05).all() and (good["diagnosis"] == "✓").all()
    assert "best_arm_probability[a]" in good.index
    bad = prior_sensitivity(fit(HISTORY, prior=(40, 2), seed=1))
    assert bad.loc["theta[a]", "diagnosis"] == "potential prior-data conflict"
    weak = prior_sensitivity(fit(HISTORY.before(3), prior=(60, 60), seed=1))
    assert "strong prior" in weak["diagnosis"].str.cat()


@pytest.mark.parametrize("family", ["bernoulli", "finite", "poisson", "normal"])
def test_prior_sensitivity_equals_arviz_on_single_rounds(family):
    import arviz_stats as az
    import xarray as xr
    from scipy import stats

    prior = {"bernoulli": (2, 3), "finite": (2,), "poisson": (2, 3), "normal": (0, 1, 2, 2)}[family]
    tree = fit(HISTORY, family=family, prior=prior, seed=2)
    data = expanded(tree, HISTORY)
    draws = tree["posterior"].to_dataset()
    if family == "bernoulli":
        log = stats.beta(2, 3).logpdf(draws["theta"])
    elif family == "finite":
        log = stats.beta(2, 2).logpdf(draws["probability"][..., 0])
    elif family == "poisson":
        log = stats.gamma(2, scale=1 / 3).logpdf(draws["rate"])
    else:
        log = stats.norm.logpdf(draws["mean"], 0, draws["sd"])
        log = log + stats.invgamma(2, scale=2).logpdf(draws["sd"] ** 2)
    data["log_prior"] = xr.DataTree(xr.Dataset({"p": (("chain", "draw", "arm"), np.asarray(log))}))
    theirs = az.psense_summary(data, round_to=6)
    ours = prior_sensitivity(tree, quantities={})
    for column in ("prior", "likelihood"):
        assert ours[column].values == pytest.approx(theirs[column].values, abs=2e-6)


@pytest.mark.parametrize(("family", "prior"), [("bernoulli", (1, 1)), ("finite", (1,))])
def test_a_flat_prior_has_no_power_that_matters(family, prior):
    import arviz_stats as az

    tree = fit(HISTORY, family=family, prior=prior, seed=2)
    ours = prior_sensitivity(tree, quantities={})
    assert (ours["prior"] == 0).all()
    theirs = az.psense(expanded(tree, HISTORY), group="likelihood")
    name = tree.attrs["reads"]
    assert ours["likelihood"].values == pytest.approx(theirs[name].values.ravel(), abs=2e-6)


def test_a_log_without_rewards_has_no_likelihood_that_matters():
    log = History([0, 1, 0], [np.nan] * 3)
    found = prior_sensitivity(fit(log, seed=1))
    assert (found["likelihood"] == 0).all()
    assert (found["prior"] > 0.05).all()
    assert set(found["diagnosis"]) == {"potential strong prior / weak likelihood"}


def test_what_cannot_vary_is_not_sensitive():
    found = prior_sensitivity(fit(History([0, 1, 0], [5, 5, 5]), seed=1))
    assert (found[["prior", "likelihood"]].to_numpy() == 0).all()


def test_quantities_of_an_audit():
    tree = fit(HISTORY, seed=1)
    theta = tree["posterior"]["theta"].values.reshape(-1, 3)
    table = prior_sensitivity(
        tree, quantities={"gap": theta[:, 2] - theta[:, 0], "pairs": theta[:, :2]}
    )
    assert {"gap", "theta[a]"} <= set(table.index)
    assert sum(name.startswith("pairs") for name in table.index) == 2
    with pytest.raises(OptionError, match="4000 draws"):
        prior_sensitivity(tree, quantities={"gap": np.zeros(10)})


@pytest.mark.statistical
def test_shared_models_and_models_of_ones_own():
    """Only top-level priors are scaled: those of mu and tau, not the law of the arms."""
    import pymc as pm

    fits = {
        "independent": fit(HISTORY, seed=1),
        "hierarchical": fit(HISTORY, model="bernoulli_hierarchical", seed=1, cores=1),
    }
    assert set(compare(fits).index) == set(fits)
    table = prior_sensitivity(fits["hierarchical"])
    assert {"theta[a]", "theta[c]"} <= set(table.index)
    assert table.loc["theta[a]", "prior"] < 0.05

    def build(history, *, spread=1.0):
        pulls, won = history.counts()
        with pm.Model(coords={"arm": history.arms}) as model:
            mu = pm.Logistic("mu", 0, 1)
            tau = pm.HalfNormal("tau", spread)
            logit = pm.Normal("logit", mu, tau, dims="arm")
            pm.Deterministic("theta", pm.math.sigmoid(logit), dims="arm")
            pm.Binomial("won", n=pulls, logit_p=logit, observed=won.astype(int), dims="arm")
        return model

    build.READS = ("theta",)
    own = fit(HISTORY, model=build, seed=1, cores=1, allow_unconverged=True)
    with pytest.raises(OptionError, match="give the history"):
        prior_sensitivity(own, model=build)
    with pytest.raises(OptionError, match="fit of your own model"):
        prior_sensitivity(own, HISTORY)
    same = prior_sensitivity(own, HISTORY, model=build)
    # two samplers of one posterior: sensitivities agree within their own noise
    for name in ("theta[a]", "theta[b]", "theta[c]"):
        assert abs(same.loc[name, "prior"] - table.loc[name, "prior"]) < 0.02

    def density(draws, spread=1.0):
        mu = np.abs(draws["mu"])
        return -mu - 2 * np.log1p(np.exp(-mu)) - 0.5 * (draws["tau"] / spread) ** 2

    # its own log_prior may return arrays, and takes the options of build that it names
    own.attrs["model_options"] = '{"spread": 1.0}'
    for build.log_prior in (
        density,
        lambda draws: density(draws).transpose("draw", "chain"),
        lambda draws, **_: density(draws).values,
    ):
        said = prior_sensitivity(own, model=build)
        assert said["prior"].values == pytest.approx(same["prior"].values, abs=2e-6)
    build.log_prior = lambda draws: density(draws).mean("draw")
    with pytest.raises(OptionError) as refused:
        prior_sensitivity(own, model=build)
    assert refused.value.kind == "wrong_shape"
