r"""Arms with normal rewards of unknown mean and spread: normal-inverse-gamma priors.

    variance_i ~ InverseGamma(shape_i, scale_i)    i = 1..k      dims ("arm",)
    mean_i ~ Normal(m_i, sd_i / kappa_i^(1/2)),  sd_i = variance_i^(1/2)
    average_i ~ Normal(mean_i, sd_i / n_i^(1/2))   observed      dims ("arm",)
    spread_i / variance_i ~ chi2(n_i - 1)          observed      dims ("arm",)

with average_i the mean reward of arm i and spread_i its sum of squared deviations: together they
carry the whole likelihood of the n_i rounds.

Prior rationale. Without ``prior`` the first 20 known rewards, whatever their arm, tell location and
unit: m is their median, scale the square of their robust standard deviation s (1.4826 times the
median absolute deviation), kappa = 1, shape = 1. In units of s from m, sd has median 1.20 and
central 95 % (0.52, 6.28); marginally mean_i is Student t with 2 degrees of freedom and scale 1,
central 95 % (-4.30, 4.30). So results shift and scale along with the rewards. These rewards count
in prior and likelihood; the prior weighs as much as one reward of each arm. Where no two of the
rewards differ the unit is 1.

Geometry. Sampled are the variance (its logarithm) and offset_i, where
mean_i = c_i + sd_i offset_i / w_i^(1/2) with constants w_i = kappa_i + n_i and
c_i = (kappa_i m_i + n_i average_i) / w_i; its prior,
Normal((m_i - c_i) w_i^(1/2) / sd_i, (w_i / kappa_i)^(1/2)), gives mean_i the prior above whatever
the constants. So neither few nor many rounds leave a funnel or a
needle to explore.

Contract. Read downstream: ``mean`` and ``sd``, in reward units. Independent over arms; the
posterior is normal-inverse-gamma. Not for skewed or bounded rewards.

References: Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., section 3.3.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesfair.families import FAMILIES
from bayesfair.families.logs import known_of, prior_of
from bayesfair.history import History

READS = ("mean", "sd")
FAMILY = "normal"


def build(history: History, *, prior: Any = None) -> pm.Model:
    """Return the unsampled model; ``prior``: (mean, kappa, shape, scale), common or per arm."""
    known, _ = known_of(history, FAMILIES[FAMILY])
    pulls, squares = known.pulls, known.spread
    average = known.total / np.maximum(pulls, 1)
    table, _ = prior_of(history, FAMILIES[FAMILY], prior)
    weight = table[:, 1] + pulls
    centre = (table[:, 1] * table[:, 0] + pulls * average) / weight
    with pm.Model(coords={"arm": history.arms}) as model:
        m, kappa, shape, scale = (
            pm.Data(name, column, dims="arm")
            for name, column in zip(
                ("prior_mean", "prior_kappa", "prior_shape", "prior_scale"), table.T, strict=True
            )
        )
        n = pm.Data("pulls", pulls.astype(np.float64), dims="arm")
        c = pm.Data("centre", centre, dims="arm")
        w = pm.Data("weight", weight, dims="arm")
        variance = pm.InverseGamma("variance", alpha=shape, beta=scale, dims="arm")
        sd = pm.Deterministic("sd", pt.sqrt(variance), dims="arm")
        offset = pm.Normal(
            "offset", mu=(m - c) * pt.sqrt(w) / sd, sigma=pt.sqrt(w / kappa), dims="arm"
        )
        mean = pm.Deterministic("mean", c + sd * offset / pt.sqrt(w), dims="arm")
        pm.CustomDist(
            "average",
            mean,
            sd,
            n,
            logp=_average_logp,
            dist=_average,
            observed=pm.Data("observed_average", average, dims="arm"),
            dims="arm",
        )
        pm.CustomDist(
            "spread",
            sd,
            n,
            logp=_spread_logp,
            dist=_spread,
            observed=pm.Data("observed_spread", squares, dims="arm"),
            dims="arm",
        )
    return model


def _average_logp(value: Any, mean: Any, sd: Any, n: Any) -> Any:
    # an arm without rounds has no average: it contributes nothing
    z = (value - mean) / sd
    density = 0.5 * pt.log(pt.maximum(n, 1) / (2 * np.pi)) - pt.log(sd) - 0.5 * n * z**2
    return pt.switch(n > 0, density, 0.0)


def _average(mean: Any, sd: Any, n: Any, size: Any) -> Any:
    return pm.Normal.dist(mean, sd / pt.sqrt(pt.maximum(n, 1)), size=size) * (n > 0)


def _spread_logp(value: Any, sd: Any, n: Any) -> Any:
    # density of the deviations given their average, as a function of sd; the power of `value` that
    # a chi-squared density adds is constant in sd, and infinite where all rewards are equal
    return pt.switch(n > 1, -(n - 1) * pt.log(sd) - 0.5 * value / sd**2, 0.0)


def _spread(sd: Any, n: Any, size: Any) -> Any:
    return sd**2 * pm.ChiSquared.dist(pt.maximum(n - 1, 1), size=size) * (n > 1)
