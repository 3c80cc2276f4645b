r"""Normal arms whose mean depends linearly on features of the round.

    sigma_i^2 ~ InverseGamma(shape_i, scale_i)            i = 1..k   dims ("arm",)
    beta_i ~ Normal((mean_i, 0, ..., 0), sigma_i^2 / kappa_i I)      dims ("arm", "feature")
    r_t ~ Normal(z_t' beta_{a_t}, sigma_{a_t}^2)          t = 1..n   dims ("known",)

z_t are the features of ``bayesfair.history.design.Design``: an intercept, columns of numbers
centred and scaled by the first 100 rounds, an indicator for each value of other columns.

Prior rationale. That of `normal_independent` for the intercept and the noise: centred and scaled
by the first 20 known rewards, with the weight of one play. Of numbers the same weight means that
one standard deviation of a column is expected to move the mean by about that of the noise.

Contract. Observed: ``reward`` of every known round, given the data ``rows`` and ``chosen``. Read
downstream: ``beta``, ``sd``. Arms are independent under the posterior. This file is the
definition of the beliefs of ``audit(context_model="linear")``, which has them in closed form. It
is no ``model=`` of an audit or a fit: those have one mean per arm.

References: Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., section 14.8.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesfair.families import FAMILIES
from bayesfair.families.logs import prior_of
from bayesfair.history import History
from bayesfair.history.design import design_of

READS = ("beta", "sd")
FAMILY = "normal"


def build(history: History, *, prior: Any = None) -> pm.Model:
    """Return the unsampled model; ``prior``: (mean, kappa, shape, scale), common or per arm."""
    names, rows = design_of(history)
    table, _ = prior_of(history, FAMILIES[FAMILY], prior)
    known = ~np.isnan(history.reward)
    of = ("arm", "feature")
    with pm.Model(coords={"arm": history.arms, "feature": names}) as model:
        m, kappa, shape, scale = (
            pm.Data(name, column, dims="arm")
            for name, column in zip(
                ("prior_mean", "prior_kappa", "prior_shape", "prior_scale"), table.T, strict=True
            )
        )
        z = pm.Data("rows", rows[known], dims=("known", "feature"))
        arm = pm.Data("chosen", history.arm[known], dims="known")
        variance = pm.InverseGamma("variance", alpha=shape, beta=scale, dims="arm")
        sd = pm.Deterministic("sd", pt.sqrt(variance), dims="arm")
        raw = pm.Normal("raw", dims=of)  # in units of the prior: no funnel
        away = raw * (sd / pt.sqrt(kappa))[:, None]
        beta = pm.Deterministic("beta", pt.set_subtensor(away[:, 0], away[:, 0] + m), dims=of)
        observed = pm.Data("observed_reward", history.reward[known], dims="known")
        mean = (z * beta[arm]).sum(axis=1)
        pm.Normal("reward", mu=mean, sigma=sd[arm], observed=observed, dims="known")
    return model
