r"""Bernoulli arms whose rates drift: a random walk of the log-odds over time bins.

    tau ~ HalfNormal(0.5)                drift per bin, log-odds, shared by all arms
    logit_0i ~ Logistic(0, 1)                      i = 1..k
    logit_bi = logit_(b-1)i + tau z_bi,  z_bi ~ Normal(0, 1)     b = 1..B-1
    theta_bi = 1 / (1 + exp(-logit_bi))                          dims ("bin", "arm")
    s_bi ~ Binomial(n_bi, theta_bi)                              dims ("bin", "arm")

Prior rationale. The first bin is uniform in theta, as standard logistic log-odds are. tau has
mean 0.40 and 95 % of its mass below 0.98. Over the 9 steps between 10 bins, log-odds move by
9^(1/2) tau: with the prior mean of tau that is a standard deviation of 1.2, for example from 0.5
to 0.77; tau near 0, no drift at all, has the highest prior density.

Contract. Bins hold equally many rounds (``n_bins``, default 10) unless ``bin_start`` gives the
first round of each. Observed: ``successes`` per bin and arm; cost grows with bins, not rounds.
Read downstream: ``theta`` with its dim ``bin``, and ``bin_start``; a round is judged by its own
bin. Arms are dependent under the posterior through ``tau``. Prefer ``bernoulli_independent`` where
rates are constant.

References: West, Harrison (1997), Bayesian Forecasting and Dynamic Models, 2nd ed., section 14.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesfair.families import FAMILIES
from bayesfair.families.logs import coded_of, earlier_counts
from bayesfair.history import History
from bayesfair.history.cells import binned_counts, time_bins

READS = ("theta",)
FAMILY = "bernoulli"
PRIOR = (
    "logit theta: random walk over bins, first Logistic(0, 1), steps Normal(0, tau), "
    "tau ~ HalfNormal({drift:g})"
)


def build(
    history: History, *, n_bins: int = 10, bin_start: Any = None, drift: float = 0.5
) -> pm.Model:
    """Return the unsampled model; ``drift`` is the prior scale of ``tau``, in log-odds per bin."""
    starts = time_bins(history.n_rounds, n_bins, bin_start)
    coded_of(history, FAMILIES[FAMILY], np.empty(0))  # checks that they are 0 or 1
    pulls, total = binned_counts(history, starts)
    successes = total.astype(np.int64)
    # outcomes from before the log count as part of its first bin
    earlier = earlier_counts(history, FAMILIES[FAMILY], whole=True).astype(np.int64)
    pulls[0] += earlier.sum(axis=1)
    successes[0] += earlier[:, 0]
    coords = {"bin": np.arange(len(starts)), "arm": history.arms, "step": np.arange(1, len(starts))}
    with pm.Model(coords=coords) as model:
        pm.Data("bin_start", starts, dims="bin")
        n = pm.Data("pulls", pulls, dims=("bin", "arm"))
        tau = pm.HalfNormal("tau", sigma=float(drift))
        first = pm.Logistic("first", mu=0.0, s=1.0, dims="arm")
        logit = pt.zeros((len(starts), 1)) + first
        if len(starts) > 1:
            z = pm.Normal("z", mu=0.0, sigma=1.0, dims=("step", "arm"))
            # the sum of all steps up to a bin, as a product: it compiles in half the time
            logit = logit + tau * pt.dot(np.tri(len(starts), len(starts) - 1, -1), z)
        pm.Deterministic("theta", pm.math.sigmoid(logit), dims=("bin", "arm"))
        observed = pm.Data("observed_successes", successes, dims=("bin", "arm"))
        pm.Binomial("successes", n=n, logit_p=logit, observed=observed, dims=("bin", "arm"))
    return model


def log_prior(draws: Any, *, drift: float = 0.5, n_bins: int = 10, bin_start: Any = None) -> Any:
    """Return the log density of (tau, first bin), up to a constant; what power scaling scales."""
    first = np.abs(draws["first"])
    return (-first - 2 * np.log1p(np.exp(-first))).sum("arm") - 0.5 * (draws["tau"] / drift) ** 2
