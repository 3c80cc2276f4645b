"""Simulation-based calibration of every model of the arms; a wrong prior must fail it."""

import numpy as np
import pytest
from sbc_tools import CASES, marked, normalised_ranks, smallest_p

pytestmark = pytest.mark.statistical

N_SIMULATIONS = 60


@pytest.mark.parametrize("name", marked(CASES))
def test_ranks_are_uniform(compiled, name):
    ranks = normalised_ranks(compiled, name, N_SIMULATIONS, seed=20)
    # a false alarm in one test of a thousand, shared by all parameters and both tests of each
    alpha = 0.001 / (2 * len(ranks))
    p, label = smallest_p(ranks)
    assert all(len(u) == N_SIMULATIONS for u in ranks.values())
    assert p > alpha, f"{name}: {label} is not calibrated, p = {p:.1e}"


@pytest.mark.parametrize("name", marked(CASES))
def test_a_wrong_prior_is_found_out(compiled, name):
    ranks = normalised_ranks(compiled, name, 40, seed=21, wrong=True)
    p, _ = smallest_p(ranks)
    assert p < 0.001 / (2 * len(ranks)), f"{name}: the wrong prior went unnoticed, p = {p:.1e}"


@pytest.mark.long
def test_simuk_agrees(compiled, monkeypatch):
    """simuk's own prior draws, conditioning and ranks; only its sampler is the compiled one."""
    import simuk
    from simuk import sbc as simuk_sbc

    from bayesfair.history import History
    from bayesfair.models import bernoulli_independent

    history = History([0, 1, 2] * 8, [0, 1] * 12, arms=("a", "b", "c"))
    model, data = compiled("bernoulli_independent", history)

    def sample(random_seed, **kwargs):
        conditioned = simuk_sbc.pm.modelcontext(None)
        (variable,) = conditioned.observed_RVs
        observed = conditioned.rvs_to_values[variable].data
        return model.sample(
            draws=200, tune=200, target_accept=0.9, chains=1, seed=int(random_seed), cores=1,
            data={**data, "observed_successes": observed},
        ).isel(draw=slice(None, None, 2))  # fmt: skip

    monkeypatch.setattr(simuk_sbc.pm, "sample", sample)
    sbc = simuk.SBC(
        bernoulli_independent.build(history),
        num_simulations=N_SIMULATIONS,
        seed=22,
        progress_bar=False,
    )
    sbc.run_simulations()
    ranks = sbc.simulations["prior_sbc"]["theta"].values[0]
    assert ranks.shape == (N_SIMULATIONS, 3)
    u = {f"theta[{i}]": (ranks[:, i] + 0.5) / 101 for i in range(3)}
    assert smallest_p(u)[0] > 0.001 / 6
    assert len(np.unique(ranks)) > 50  # the data did change between simulations
