"""Fits that did not converge are refused with the evidence."""

import numpy as np
import pytest

from bayesfair.errors import ConvergenceError, OptionError
from bayesfair.history import History
from bayesfair.inference import fit
from bayesfair.inference.nuts import CompiledModel, diagnose, divergence_notices, refusal
from bayesfair.inference.tree import make_tree, posterior_dataset

ARMS = ["north", "south"]


def tree_of(theta, diverging=None):
    import xarray as xr

    groups = {"posterior": posterior_dataset({"theta": theta}, {"theta": ["arm"]}, {"arm": ARMS})}
    if diverging is not None:
        groups["sample_stats"] = xr.Dataset({"diverging": (("chain", "draw"), diverging)})
    return make_tree(groups, {})


def test_good_draws_pass():
    theta = np.random.default_rng(1).random((4, 1000, 2))
    found = diagnose(tree_of(theta, np.zeros((4, 1000), dtype=bool)))
    assert refusal(found) == ""
    assert found["rhat_max"] < 1.01 and found["ess_min"] > 3000 and found["divergences"] == 0


def test_the_message_names_variable_arm_value_limit_and_remedy():
    rng = np.random.default_rng(2)
    theta = rng.normal(size=(4, 500, 2))
    theta[:, :, 1] += np.arange(4)[:, None]  # chains that do not agree
    message = refusal(diagnose(tree_of(theta)))
    assert "theta[south] has R-hat" in message
    assert "(limit 1.01)" in message and "(need 400)" in message
    assert "theta[north]" not in message
    assert "4 x 500 draws" in message and "error.tree" in message and "Raise draws" in message
    diverging = np.zeros((4, 500), dtype=bool)
    diverging[0, :3] = True
    found = diagnose(tree_of(rng.normal(size=(4, 500, 2)), diverging))
    message = refusal(found)
    # beliefs between rounds cannot go on from such draws: no option is named that is not there
    assert "allow_unconverged" in message
    assert "allow_unconverged" not in refusal(found, returnable=False)
    assert "3 divergent transitions (limit 0)" in message and "Reparametrise" in message


def test_few_divergences_are_told_with_their_place_and_more_are_refused():
    theta = np.random.default_rng(6).normal(size=(4, 1000, 2))
    diverging = np.zeros((4, 1000), dtype=bool)
    for n, taken in ((4, True), (5, False)):
        diverging[1, :n] = True
        theta[1, :n, 1] = -3.0
        found = diagnose(tree_of(theta, diverging)) | {"max_divergent": 0.001}
        said = divergence_notices(found)
        assert (refusal(found) == "") is taken and bool(said) is taken
        assert "theta[south] is about -3" in (said[0] if taken else refusal(found))
        # strict: any is refused
        assert "limit 0" in refusal(found | {"max_divergent": 0.0})
        assert not divergence_notices(found | {"max_divergent": 0.0})
    assert (said or divergence_notices(found | {"divergences": 4}))[0].n == 4
    assert not divergence_notices(diagnose(tree_of(theta, np.zeros((4, 1000), dtype=bool))))


def test_too_few_draws_and_missing_values_do_not_pass():
    theta = np.random.default_rng(3).normal(size=(4, 50, 2))
    assert "need at least as many" in refusal(diagnose(tree_of(theta)))
    theta[0, 0, 0] = np.nan
    assert "theta[north]" in refusal(diagnose(tree_of(theta)))


def test_constants_are_no_offence():
    theta = np.random.default_rng(4).random((4, 1000, 2))
    theta[..., 1] = 1.0
    assert refusal(diagnose(tree_of(theta))) == ""


def test_many_offenders_are_counted():
    rng = np.random.default_rng(5)
    theta = rng.normal(size=(4, 500, 2)) + 10 * np.arange(4)[:, None, None]
    group = posterior_dataset(
        {"theta": theta, "rate": theta, "mean": theta},
        {name: ["arm"] for name in ("theta", "rate", "mean")},
        {"arm": ARMS},
    )
    assert "and 3 more variables" in refusal(diagnose(make_tree({"posterior": group}, {})))


def test_a_model_without_parameters_is_refused():
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("y", 0, 1, observed=1.0)
    with pytest.raises(OptionError, match="no free variable"):
        CompiledModel(model)


READS = ("theta",)


def impossible(history):
    """A reward that the model excludes."""
    import pymc as pm

    with pm.Model(coords={"arm": history.arms}) as model:
        theta = pm.Beta("theta", 1, 1, dims="arm")
        pm.Uniform("y", 0, theta.sum(), observed=5.0)
    return model


@pytest.mark.statistical
def test_an_impossible_model_says_so():
    history = History([0, 1], [1, 0], arms=ARMS)
    with pytest.raises(ConvergenceError, match="density is finite"):
        fit(history, model=impossible, seed=1, cores=1)


@pytest.mark.statistical
def test_own_models_and_reproducibility_over_cores():
    import pymc as pm

    def build(history):
        pulls, won = history.counts()
        with pm.Model(coords={"arm": history.arms}) as model:
            theta = pm.Beta("theta", 2, 2, dims="arm")
            pm.Binomial("won", pulls, theta, observed=won.astype(int), dims="arm")
        return model

    build.READS = "theta"
    history = History([0, 1, 0, 1], [1, 0, 1, 1], arms=ARMS)
    one = fit(history, model=build, seed=1, cores=1)
    two = fit(history, model=build, seed=1, cores=2)
    assert np.array_equal(one["posterior"]["theta"].values, two["posterior"]["theta"].values)
    assert one.attrs["family"] == "bernoulli" and one.attrs["method"] == "nuts"
    assert one["observed_data"]["won"].values.tolist() == [2, 1]
    # Beta(4, 2) and Beta(3, 3)
    mean = one["posterior"]["theta"].mean(("chain", "draw")).values
    assert np.all(np.abs(mean - [4 / 6, 1 / 2]) < 5 * 0.2 / np.sqrt(one.attrs["ess_min"]))
