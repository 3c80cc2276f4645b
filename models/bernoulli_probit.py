r"""Bernoulli arms whose probability depends on features of the round: probit regression.

    beta_i ~ Normal(0, I)                          i = 1..k         dims ("arm", "feature")
    r_t ~ Bernoulli(Phi(z_t' beta_{a_t}))          t = 1..n         dims ("known",)

z_t are the features of ``bayesfair.history.design.Design``: an intercept, columns of numbers
centred and scaled by the first 100 rounds, an indicator for each value of other columns.

Prior rationale. At average features z'z is 2 for one column of numbers, so z'beta has standard
deviation 1.4 and the probability is spread over all of [0, 1], with little mass on certainty.

Contract. Observed: ``reward`` of every known round, given the data ``rows`` and ``chosen``. Read
downstream: ``beta``. Arms are independent under the posterior. This file is the definition of
the beliefs of ``audit(context_model="probit")``, which has them without a sampler, as normal
laws with the exact mean and covariance after each reward. It is no ``model=`` of an audit or a
fit: those have one theta per arm.

References: Minka (2001), A family of algorithms for approximate Bayesian inference, section 3.
"""

from typing import Any

import numpy as np
import pymc as pm

from bayesfair.families import FAMILIES
from bayesfair.families.logs import coded_of
from bayesfair.history import History
from bayesfair.history.design import design_of

READS = ("beta",)
FAMILY = "bernoulli"


def build(history: History, *, prior_sd: float = 1.0) -> pm.Model:
    """Return the unsampled model; ``prior_sd`` of every coefficient."""
    return regression(history, prior_sd, pm.math.invprobit)


def regression(history: History, prior_sd: float, chance: Any) -> pm.Model:
    """Return the model whose probability of a reward is ``chance`` of z'beta."""
    names, rows = design_of(history)
    coded_of(history, FAMILIES[FAMILY], np.empty(0))  # checks that they are 0 or 1
    known = ~np.isnan(history.reward)
    with pm.Model(coords={"arm": history.arms, "feature": names}) as model:
        z = pm.Data("rows", rows[known], dims=("known", "feature"))
        arm = pm.Data("chosen", history.arm[known], dims="known")
        sd = pm.Data("prior_sd", float(prior_sd))
        beta = pm.Normal("beta", mu=0.0, sigma=sd, dims=("arm", "feature"))
        observed = pm.Data("observed_reward", history.reward[known].astype(np.int64), dims="known")
        p = chance((z * beta[arm]).sum(axis=1))
        pm.Bernoulli("reward", p=p, observed=observed, dims="known")
    return model
