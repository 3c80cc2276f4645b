r"""Bernoulli arms that share strength through a logit-normal population.

    mu ~ Logistic(0, 1)                  centre of the population, log-odds
    tau ~ HalfNormal(1)                  spread between arms, log-odds
    logit_i ~ Normal(mu, tau)                      i = 1..k      dims ("arm",)
    theta_i = 1 / (1 + exp(-logit_i))              i = 1..k      dims ("arm",)
    s_i ~ Binomial(n_i, theta_i)                   i = 1..k      dims ("arm",)

Prior rationale. mu is standard logistic, so that 1 / (1 + exp(-mu)) is uniform: before data no
success rate is favoured, and rates of 1 in 1000 are no surprise. tau has mean 0.80 and 95 % of
its mass below 1.96. The odds of two arms then differ by a median factor of 1.7, by more than 10 in
9.6 % of pairs and by more than 100 in 1.5 %: alike is likely, unlike is possible.

Geometry. Sampled are tau (its logarithm) and standardised coordinates: ``y`` for mu given tau,
``z_i`` for logit_i given mu and tau. Their centre and scale are those of the conditional posterior
if each arm's likelihood is replaced by Normal(l_i, I_i^(-1/2)), with l_i the empirical log-odds and
I_i = n_i r_i (1 - r_i) the information at the rate r_i = (s_i + 1/2) / (n_i + 1). Any centre and
scale leave the priors above as they are; these make y and z nearly standard normal and free of tau,
so that neither twelve rounds nor a million, neither equal nor unequal arms, give a funnel.

Contract. Observed: ``successes``; cost does not grow with the number of rounds. Read downstream:
``theta`` only. Arms are dependent under the posterior, so P* is averaged over joint draws and the
theorem on SD_TS does not apply. Use when arms are exchangeable.

References: Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., sections 5.3 and 5.7;
Papaspiliopoulos, Roberts, Skold (2007), Statistical Science 22(1), 59-73.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesfair.families import FAMILIES
from bayesfair.families.logs import earlier_counts, known_of
from bayesfair.history import History

READS = ("theta",)
FAMILY = "bernoulli"
PRIOR = (
    "logit theta ~ Normal(mu, tau), mu ~ Logistic(0, {center_scale:g}), "
    "tau ~ HalfNormal({spread:g})"
)


def build(history: History, *, center_scale: float = 1.0, spread: float = 1.0) -> pm.Model:
    """Return the unsampled model; scales of the priors on ``mu`` and ``tau``, in log-odds."""
    known, _ = known_of(history, FAMILIES[FAMILY])
    earlier = earlier_counts(history, FAMILIES[FAMILY], whole=True).astype(np.int64)
    pulls = known.pulls + earlier.sum(axis=1)
    successes = known.total.astype(np.int64) + earlier[:, 0]
    rate = (successes + 0.5) / (pulls + 1.0)
    with pm.Model(coords={"arm": history.arms}) as model:
        n = pm.Data("pulls", pulls, dims="arm")
        log_odds = pm.Data("log_odds", np.log(rate / (1 - rate)), dims="arm")
        information = pm.Data("information", pulls * rate * (1 - rate), dims="arm")
        tau = pm.HalfNormal("tau", sigma=float(spread))

        own = 1 / (1 + information * tau**2)  # share of mu in the centre of an arm
        precision = information * own  # of mu, from each arm
        # a logistic law has variance (pi scale)^2 / 3
        mu_sd = (precision.sum() + 3 / (np.pi * center_scale) ** 2) ** -0.5
        mu_centre = (precision * log_odds).sum() * mu_sd**2
        y = pm.Logistic("y", mu=-mu_centre / mu_sd, s=center_scale / mu_sd)
        mu = pm.Deterministic("mu", mu_centre + mu_sd * y)

        centre = own * mu + (1 - own) * log_odds
        sd = tau * pt.sqrt(own)
        z = pm.Normal("z", mu=(mu - centre) / sd, sigma=own**-0.5, dims="arm")
        logit = centre + sd * z
        pm.Deterministic("theta", pm.math.sigmoid(logit), dims="arm")
        observed = pm.Data("observed_successes", successes, dims="arm")
        pm.Binomial("successes", n=n, logit_p=logit, observed=observed, dims="arm")
    return model


def log_prior(draws: Any, *, center_scale: float = 1.0, spread: float = 1.0) -> Any:
    """Return the log density of (mu, tau), up to a constant, for power scaling.

    The population law of the arms given mu and tau is part of the model, not of its prior.
    """
    mu, tau = np.abs(draws["mu"]) / center_scale, draws["tau"] / spread
    return -mu - 2 * np.log1p(np.exp(-mu)) - 0.5 * tau**2
