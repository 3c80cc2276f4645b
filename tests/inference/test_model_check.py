"""`check` passes sound models and finds out those that leave out rewards, or mix up arms."""

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats
from typer.testing import CliRunner

import bayesfair as bf
from bayesfair.cli.model import load_model
from bayesfair.cli.program import app

# a sound model fails once in a thousand seeds: the seed is fixed
pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The template of `bayesfair model new`, whose graph its own test has compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("model"))
        CliRunner().invoke(app, ["model", "new", "mine"], catch_exceptions=False)
        return load_model("mine.py:build", True)


def blind(history):
    """Return the log without what was observed."""
    return bf.History(history.arm, np.full(history.n_rounds, np.nan), arms=history.arms)


def mixed_up(history):
    """Return the log with the rewards of other arms."""
    return bf.History((history.arm + 1) % 3, history.reward, arms=history.arms)


def test_a_sound_model_passes_and_its_prior_is_shown(sound):
    passed = bf.models.check(sound)
    assert passed.passed and passed.n_compiled == 1 and passed.n_simulations == 20

    # logit ~ Normal(0, sqrt(1.5^2 + tau^2)), tau ~ HalfNormal(1)
    def below(x):
        share = integrate.quad(
            lambda tau: 2 * stats.norm.pdf(tau) * stats.norm.cdf(x / np.hypot(1.5, tau)), 0, 12
        )
        return share[0]

    high = special.expit(optimize.brentq(lambda x: below(x) - 0.975, 0, 20))
    # 1000 draws, 5 standard errors; P* is 1/3 of arms that are alike
    np.testing.assert_allclose(passed.prior_mean, 0.5, atol=0.055)
    np.testing.assert_allclose(passed.prior_interval, [[1 - high, high]] * 3, atol=0.03)
    np.testing.assert_allclose(passed.prior_best, 1 / 3, atol=0.06)
    assert "passed" in str(passed) and "likelihood" in passed.p_values


@pytest.mark.parametrize("changed", [blind, mixed_up])
def test_models_that_misuse_rewards_are_found_out(changed, sound):
    def wrong(history):
        return sound(changed(history))

    wrong.READS = ("theta",)
    found = bf.models.check(wrong)
    assert not found.passed and found.findings[0].kind == "not_calibrated"
    assert "NOT passed" in str(found)


def test_a_prior_outside_the_range_is_found_before_anything_is_fitted():
    import pymc as pm

    def build(history):
        with pm.Model(coords={"arm": list(history.arms)}) as model:
            pm.Normal("theta", 0.5, 1, dims="arm")
        return model

    build.READS = ("theta",)
    (finding,) = bf.models.check(build).findings
    assert finding.kind == "outside" and finding.column == "theta"


def test_what_cannot_be_checked_is_refused(sound):
    def fails(history):
        return history.reward[np.isfinite(history.reward)][0]

    fails.READS = ("theta",)
    with pytest.raises(bf.OptionError) as refused:
        bf.models.check(fails)
    assert refused.value.kind == "not_built" and refused.value.column == "build"
    log = bf.History(["a", "b"], [1, 0], prior_counts={"a": (1, 1), "b": (1, 1)})
    with pytest.raises(bf.OptionError) as refused:
        bf.models.check(sound, log)
    assert refused.value.column == "history"
