"""NUTS where it usually hurts: scripts without a guard, discrete variables, storage."""

import multiprocessing

import numpy as np
import pytest

from bayesfair.history import History
from bayesfair.inference import bin_starts, fit, rewards_from_posterior

pytestmark = pytest.mark.statistical


@pytest.fixture
def _no_process(monkeypatch):
    """A process that is spawned runs a script without a guard again, and dies: none may be."""

    def refuse(self):
        raise AssertionError(f"{self} was started")

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)


@pytest.mark.usefixtures("_no_process")
def test_a_script_needs_no_main_guard():
    history = History(["a", "b", "c"] * 10, [1, 0, 1] * 10)
    tree = fit(history, method="nuts", seed=1, draws=2000, cores=2)
    assert tree.attrs["method"] == "nuts" and tree["posterior"].sizes["chain"] == 4


@pytest.mark.usefixtures("_no_process")
def test_models_with_discrete_variables_are_sampled_too():
    """Nutpie has no discrete variables; PyMC's own samplers take over, in one process."""
    import pymc as pm

    def build(history):
        pulls, won = history.counts()
        with pm.Model(coords={"arm": history.arms}) as model:
            good = pm.Bernoulli("good", 0.5)
            rate = pm.math.switch(good, 0.8, 0.2)
            theta = pm.Deterministic("theta", rate * np.ones(len(history.arms)), dims="arm")
            pm.Binomial("won", pulls, theta, observed=won.astype(int), dims="arm")
        return model

    build.READS = ("theta",)
    history = History([0, 1], [1, np.nan], arms=("a", "b"))
    tree = fit(history, model=build, seed=1, draws=4000)
    # P(good | one success) = .8
    mean = float(tree["posterior"]["theta"].mean())
    assert mean == pytest.approx(0.8 * 0.8 + 0.2 * 0.2, abs=5 * 0.24 / np.sqrt(1000))


def test_a_drifting_fit_survives_storage(tmp_path):
    import arviz_stats as az
    import xarray as xr

    history = History([0, 1] * 50, [1, 0] * 25 + [0, 1] * 25, arms=("a", "b", "never tried"))
    tree = fit(history, model="bernoulli_drifting", model_options={"n_bins": 4}, seed=1, cores=1)
    assert tree.attrs["prior"].endswith("tau ~ HalfNormal(0.5)")
    assert bin_starts(tree).tolist() == [0, 25, 50, 75]
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "bin", "arm")
    assert rewards_from_posterior(tree).batch_shape == (4000, 4)
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as stored:
        assert bin_starts(stored).tolist() == [0, 25, 50, 75]
        again = rewards_from_posterior(stored)
        assert np.array_equal(again.mean, rewards_from_posterior(tree).mean)
        assert again.arms == ("a", "b", "never tried")
        assert "theta[0, a]" in az.summary(stored, var_names=["theta"]).index
        assert stored.attrs["seed"] == 1 and stored.attrs["model"] == "bernoulli_drifting"
    # the first arm falls from 1 to 0 halfway
    theta = tree["posterior"]["theta"].mean(("chain", "draw"))
    assert theta.sel(bin=0, arm="a") > 0.8 and theta.sel(bin=3, arm="a") < 0.2
