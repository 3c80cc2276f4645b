"""`with_groups`: what ArviZ's own functions say of a fit is what ours say."""

import warnings

import numpy as np
import pytest
from scipy import stats

import bayesfair as bf
from bayesfair import examples

LOG = bf.History(["a", "b"] * 20, [1, 0, 1, 1, 0, 1, np.nan, 0] * 5)


@pytest.fixture(scope="module")
def fits():
    return {"flat": bf.fit(LOG, seed=1, prior=(1, 1)), "wrong": bf.fit(LOG, seed=1, prior=(1, 9))}


@pytest.fixture(scope="module")
def whole(fits):
    return {name: bf.models.with_groups(tree, LOG) for name, tree in fits.items()}


def test_groups_hold_one_value_for_each_observed_round(whole):
    tree, seen = whole["flat"], ~np.isnan(LOG.reward)
    theta = tree["posterior"]["theta"].values[..., LOG.arm[seen]]
    np.testing.assert_allclose(
        tree["log_likelihood"]["reward"], stats.bernoulli.logpmf(LOG.reward[seen], theta)
    )
    np.testing.assert_array_equal(tree["observed_data"]["reward"], LOG.reward[seen])
    # 4000 draws of 0 or 1: five standard errors
    drawn = tree["posterior_predictive"]["reward"].values
    np.testing.assert_allclose(drawn.mean((0, 1)), theta.mean((0, 1)), atol=0.04)
    assert set(np.unique(drawn)) == {0, 1}
    arms = tree["posterior"]["theta"].values
    density = stats.beta.logpdf(arms, 1, 1).sum(-1)
    np.testing.assert_allclose(np.ptp(tree["log_prior"]["prior"].values - density), 0, atol=1e-9)


def test_arviz_agrees_with_our_loo_compare_and_sensitivity(fits, whole):
    import arviz as az

    for name, tree in fits.items():
        # ArviZ estimates the efficiency of draws, which are independent here
        assert az.loo(whole[name]).elpd == pytest.approx(bf.loo(tree).elpd, abs=5e-3)
    assert list(az.compare(whole).index) == list(bf.compare(fits).index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ warns of what it finds
        theirs = az.psense_summary(whole["wrong"])
    ours = bf.prior_sensitivity(fits["wrong"])
    assert theirs["prior"]["theta[a]"] == pytest.approx(ours["prior"]["theta[a]"], abs=2e-3)


@pytest.mark.parametrize("name", ["plot_ppc_dist", "plot_loo_pit"])
@pytest.mark.filterwarnings("ignore:Variables reward in:UserWarning")
def test_arviz_plots_draw(whole, name):
    import matplotlib as mpl

    mpl.use("Agg")
    import arviz_plots as azp
    from matplotlib import pyplot as plt

    getattr(azp, name)(whole["flat"], backend="matplotlib")
    assert plt.get_fignums()
    plt.close("all")


def test_groups_are_left_out_on_request_and_wrong_fits_refused(fits):
    bare = bf.models.with_groups(
        fits["flat"], log_likelihood=False, posterior_predictive=False, log_prior=False
    )
    assert not {"log_likelihood", "posterior_predictive", "log_prior"} & set(bare.children)
    duels = bf.Comparisons.from_counts(["a"], ["b"], [7], [3])
    with pytest.raises(bf.OptionError) as refused:
        bf.models.with_groups(bf.fit(duels, seed=1, draws=40))
    assert refused.value.kind == "wrong_kind"
    other = bf.read_history(examples.path("ecmo"))
    with pytest.raises(bf.OptionError):
        bf.models.with_groups(fits["flat"], other)


def test_the_default_seed_is_that_of_the_fit(fits, whole):
    again = bf.models.with_groups(fits["flat"], seed=1)
    np.testing.assert_array_equal(
        again["posterior_predictive"]["reward"], whole["flat"]["posterior_predictive"]["reward"]
    )
