"""NUTS where it usually hurts: scripts without a guard, discrete variables, storage."""

import subprocess
import sys

import numpy as np
import pytest

from bayesfair.history import History
from bayesfair.inference import bin_starts, fit, rewards_from_posterior

pytestmark = pytest.mark.statistical

SCRIPT = """
import multiprocessing
multiprocessing.set_start_method("spawn")
import bayesfair as bf
history = bf.History(["a", "b"] * 10, [1, 0, 1, 1] * 5)
tree = bf.fit(history, method="nuts", seed=1, draws=2000, cores=2)
print("sampled", tree.attrs["method"], tree["posterior"].sizes["chain"])
"""


def test_a_script_without_a_main_guard(tmp_path):
    # case 82: spawned processes would run the script again and die
    script = tmp_path / "audit.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == ["sampled", "nuts", "4"]


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
    tree = fit(history, model=build, seed=1, draws=4000, cores=1)
    # P(good | one success) = .8
    mean = float(tree["posterior"]["theta"].mean())
    assert mean == pytest.approx(0.8 * 0.8 + 0.2 * 0.2, abs=5 * 0.24 / np.sqrt(1000))


def test_a_drifting_fit_survives_storage(tmp_path):
    import arviz_stats as az
    import xarray as xr

    history = History([0, 1] * 50, [1, 0] * 25 + [0, 1] * 25, arms=("a", "b"))
    tree = fit(history, model="bernoulli_drifting", model_options={"n_bins": 5}, seed=1, cores=1)
    assert tree.attrs["prior"].endswith("tau ~ HalfNormal(0.5)")
    assert bin_starts(tree).tolist() == [0, 20, 40, 60, 80]
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "bin", "arm")
    assert rewards_from_posterior(tree).batch_shape == (4000, 5)
    tree.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as stored:
        assert bin_starts(stored).tolist() == [0, 20, 40, 60, 80]
        again = rewards_from_posterior(stored)
        assert np.array_equal(again.mean, rewards_from_posterior(tree).mean)
        assert again.arms == ("a", "b")
        assert "theta[0, a]" in az.summary(stored, var_names=["theta"]).index
        assert stored.attrs["seed"] == 1 and stored.attrs["model"] == "bernoulli_drifting"
    # the first arm falls from 1 to 0 halfway
    theta = tree["posterior"]["theta"].mean(("chain", "draw"))
    assert theta.sel(bin=0, arm="a") > 0.8 and theta.sel(bin=4, arm="a") < 0.2
