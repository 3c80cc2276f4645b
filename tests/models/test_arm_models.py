"""What model files promise: contract, dims, numbers in the prior rationale, prior predictive."""

import importlib
import re

import numpy as np
import pytest
from pytensor.compile.mode import Mode
from scipy import special, stats

from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.inference.contract import ARM_MODELS
from bayesfair.models import bernoulli_independent

# nothing to compile
PLAIN = {"mode": Mode(linker="py", optimizer=None)}
HISTORY = History(["b", "a", "c", "a"], [0, 1, 1, np.nan], arms=("a", "b", "c"))


def module(name):
    return importlib.import_module(f"bayesfair.models.{name}")


@pytest.mark.parametrize("name", ARM_MODELS)
def test_contract(name):
    found = module(name)
    assert found.FAMILY == ARM_MODELS[name]
    assert found.READS == FAMILIES[found.FAMILY].reads
    for part in ("Prior rationale.", "Contract.", "References:", 'dims ("'):
        assert part in found.__doc__, part
    model = found.build(HISTORY)
    for read in found.READS:
        assert "arm" in model.named_vars_to_dims[read]
    assert tuple(model.coords["arm"]) == ("a", "b", "c")
    assert model.observed_RVs and model.free_RVs
    # sufficient statistics: nothing in the model has the length of the history
    long = found.build(History([0, 1, 2] * 500, [0, 1, 1] * 500, arms=("a", "b", "c")))
    assert max(v.get_value().size for v in long.data_vars) <= 30


@pytest.mark.parametrize("name", ARM_MODELS)
def test_data_containers_are_all_that_changes(name):
    from bayesfair.inference.compiled import graph_of

    other = History(["c", "c", "b", "a"], [1, 1, 0, 1], arms=("a", "b", "c"))
    found = graph_of(module(name).build(HISTORY))
    assert found.same_as(graph_of(module(name).build(other)))


def test_a_graph_sees_other_differences():
    from bayesfair.inference.compiled import graph_of

    build = module("bernoulli_hierarchical").build
    found = graph_of(build(HISTORY))
    assert not found.same_as(graph_of(build(HISTORY, spread=2.0)))
    assert not found.same_as(graph_of(module("bernoulli_independent").build(HISTORY)))


def test_a_model_that_was_changed_after_it_was_compiled_is_compiled_again(monkeypatch):
    import nutpie
    import pymc as pm

    from bayesfair.inference import compiled

    class Code:
        shared_var_keys = ()

        def with_data(self, **data):
            return self

    made = []
    monkeypatch.setattr(compiled, "_kept", [])
    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda model: made.append(model) or Code())
    with pm.Model() as model:
        x = pm.Normal("x")
    for _ in range(2):
        compiled.machine_code(compiled.graph_of(model))
    assert len(made) == 1
    with model:
        pm.Potential("far", -((x - 5.0) ** 2))
    for _ in range(2):
        compiled.machine_code(compiled.graph_of(model))
    assert len(made) == 2


def test_integer_priors_do_not_overflow():
    # pymc-devs/pymc#7678: Beta(100, 100) given as ints became int8
    model = module("bernoulli_independent").build(HISTORY, prior=(100, 100))
    assert model["alpha"].get_value().dtype == np.float64
    assert model["alpha"].get_value().tolist() == [100.0] * 3


def test_counts_and_earlier_outcomes():
    history = History(["a", "b"], [1, 0], prior_counts={"a": (3, 4)})
    model = module("bernoulli_hierarchical").build(history)
    assert model["pulls"].get_value().tolist() == [8, 1]
    assert model["observed_successes"].get_value().tolist() == [4, 0]
    model = module("bernoulli_drifting").build(history, n_bins=2)
    assert model["pulls"].get_value().tolist() == [[8, 0], [0, 1]]
    model = module("bernoulli_independent").build(history)
    assert model["alpha"].get_value().tolist() == [3.5, 0.5]


# -- the numbers in the docstrings -----------------------------------------------------------------


def has(name, *numbers):
    text = re.sub(r"\s+", " ", module(name).__doc__)
    for number in numbers:
        assert number in text, f"{name}: {number}"


def test_prior_numbers_of_closed_form_models():
    law = stats.beta(0.5, 0.5)
    has("bernoulli_independent", "({:.4f}, {:.4f})".format(*law.ppf([0.025, 0.975])))
    has("bernoulli_independent", f"{100 * law.cdf(0.1):.1f} %")
    level = stats.beta(0.5, 2.0)
    has("finite_independent", f"mean {level.mean():.1f}", f"deviation {level.std():.2f}", "2.5")
    rate = stats.gamma(0.5, scale=2)
    has("poisson_independent", "({:.5f}, {:.2f})".format(*rate.ppf([0.025, 0.975])))
    sd = np.sqrt(stats.invgamma(1.0).ppf([0.025, 0.5, 0.975]))
    has("normal_independent", f"median {sd[1]:.2f}", f"({sd[0]:.2f}, {sd[2]:.2f})")
    end = stats.t(2).ppf(0.975)
    has("normal_independent", f"(-{end:.2f}, {end:.2f})")


def share_of_pairs_above(gap):
    """P(|logit_i - logit_j| > gap): normal of sd tau sqrt(2), tau half-normal."""
    tau = stats.halfnorm.ppf((np.arange(200_000) + 0.5) / 200_000)
    return 2 * stats.norm.sf(gap / (np.sqrt(2) * tau)).mean()


def test_prior_numbers_of_shared_models():
    half = stats.halfnorm()
    has("bernoulli_hierarchical", f"mean {half.mean():.2f}", f"below {half.ppf(0.95):.2f}")
    assert share_of_pairs_above(np.log(1.7)) == pytest.approx(0.5, abs=0.02)
    has("bernoulli_hierarchical", f"{100 * share_of_pairs_above(np.log(10)):.1f} % of pairs")
    has("bernoulli_hierarchical", f"100 in {100 * share_of_pairs_above(np.log(100)):.1f} %")
    half = stats.halfnorm(scale=0.5)
    has("bernoulli_drifting", f"mean {half.mean():.2f}", f"below {half.ppf(0.95):.2f}")
    moved = 3 * half.mean()
    has("bernoulli_drifting", f"deviation of {moved:.1f}", f"0.5 to {special.expit(moved):.2f}")


# -- prior predictive ------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["bernoulli_hierarchical", "bernoulli_drifting"])
def test_prior_of_theta_is_uniform_in_the_centre(name):
    """Whatever data the sampled coordinates are standardised with, the prior is the stated one."""
    import pymc as pm

    # 900 rounds of lopsided data: the standardisation is far from neutral
    history = History([0, 1, 2] * 300, [0, 1, 1] * 300, arms=("a", "b", "c"))
    with module(name).build(history):
        prior = pm.sample_prior_predictive(draws=4000, random_seed=6, compile_kwargs=PLAIN)[
            "prior"
        ].to_dataset()
    if name == "bernoulli_hierarchical":
        centre = special.expit(prior["mu"].values.ravel())
        # the centre does not depend on tau
        tau = prior["tau"].values.ravel()
        assert abs(stats.spearmanr(centre, tau).statistic) < 5 / np.sqrt(4000)
        z = (special.logit(prior["theta"].values[0, :, 0]) - prior["mu"].values[0]) / tau
        assert stats.kstest(z, "norm").pvalue > 0.001
    else:
        centre = prior["theta"].values[0, :, 0, 1]
        steps = np.diff(special.logit(prior["theta"].values[0]), axis=1)
        z = steps[:, 4, 2] / prior["tau"].values[0]
        assert stats.kstest(z, "norm").pvalue > 0.001
    assert stats.kstest(centre, "uniform").pvalue > 0.001
    scale = 1.0 if name == "bernoulli_hierarchical" else 0.5
    assert stats.kstest(prior["tau"].values.ravel(), stats.halfnorm(scale=scale).cdf).pvalue > 0.001


@pytest.mark.long
@pytest.mark.statistical
def test_prior_predictive_counts():
    """Beta-binomial successes, gamma-Poisson totals, Student t averages: known laws."""
    import pymc as pm

    pulls = History([0] * 12, [0, 1] * 6, arms=("a",))

    def predictive(name, variable, history=pulls, **options):
        with module(name).build(history, **options):
            found = pm.sample_prior_predictive(draws=1500, random_seed=7, compile_kwargs=PLAIN)
        return found["prior_predictive"][variable].values.reshape(1500, -1)

    won = predictive("bernoulli_independent", "successes")[:, 0]
    expected = 1500 * stats.betabinom(12, 0.5, 0.5).pmf(np.arange(13))
    assert stats.chisquare(np.bincount(won, minlength=13), expected).pvalue > 0.001
    level = predictive("finite_independent", "counts")[:, 0]
    assert stats.chisquare(np.bincount(level, minlength=13), expected).pvalue > 0.001
    total = predictive("poisson_independent", "total")[:, 0]
    law = stats.nbinom(0.5, 0.5 / 12.5)
    edges = np.array([-1, 0, 1, 3, 6, 10, 15, 25, 40, 10**9])
    expected = 1500 * np.diff(law.cdf(edges))
    seen = np.histogram(total, edges + 0.5)[0]
    assert stats.chisquare(seen, expected * 1500 / expected.sum()).pvalue > 0.001
    average = predictive("normal_independent", "average", prior=(0, 1, 1, 1))[:, 0]
    law = stats.t(2, scale=np.sqrt(1 + 1 / 12))
    assert stats.kstest(average, law.cdf).pvalue > 0.001
    spread = predictive("normal_independent", "spread", prior=(0, 1, 1, 1))[:, 0]
    # spread / variance is chi2(11), variance inverse-gamma(1, 1): spread / 11 is F(11, 2)
    assert stats.kstest(spread / 11, stats.f(11, 2).cdf).pvalue > 0.001


@pytest.mark.statistical
def test_a_graph_is_compiled_once_in_a_process_and_each_log_has_its_own_posterior(monkeypatch):
    import nutpie

    from bayesfair.inference import fit
    from bayesfair.inference.compiled import graph_of

    made = []
    honest = nutpie.compile_pymc_model
    monkeypatch.setattr(
        nutpie, "compile_pymc_model", lambda model: made.append(model) or honest(model)
    )

    def fitted(won, arms):
        log = History([0] * 40, [1] * won + [0] * (40 - won), arms=arms)
        return log, fit(log, method="nuts", seed=1)["posterior"]["theta"]

    fitted(1, ("a", "b", "c"))  # compiled here, or by a test before
    made.clear()
    # labels are not in the machine code; Beta(1/2, 1/2), 40 rounds: means (won + 1/2) / 41
    for won, arms in ((2, ("a", "b", "c")), (30, ("x", "y", "z")), (5, ("a", "b", "c"))):
        log, theta = fitted(won, arms)
        mean, sd = (won + 0.5) / 41, np.sqrt((won + 0.5) * (40.5 - won) / 41**2 / 42)
        assert abs(float(theta.sel(arm=arms[0]).mean()) - mean) < 5 * sd / np.sqrt(400)
        assert tuple(theta["arm"].values) == arms
    assert not made
    two = bernoulli_independent.build(History([0, 1], [1, 0], arms=("a", "b")))
    assert not graph_of(bernoulli_independent.build(log)).same_as(graph_of(two))
