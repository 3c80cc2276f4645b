r"""Bernoulli arms whose probability depends on features of the round: logistic regression.

    beta_i ~ Normal(0, 1.5^2 I)                          i = 1..k   dims ("arm", "feature")
    r_t ~ Bernoulli(1 / (1 + exp(-z_t' beta_{a_t})))     t = 1..n   dims ("known",)

z_t are the features of ``bayesfair.history.design.Design``: an intercept, columns of numbers
centred and scaled by the first 100 rounds, an indicator for each value of other columns.

Prior rationale. A logistic variable has standard deviation 1.8, so 1.5 is about as wide as 1 is
for a probit: probabilities spread over all of [0, 1], with little mass on certainty.

Contract. Observed: ``reward`` of every known round, given the data ``rows`` and ``chosen``. Read
downstream: ``beta``. Arms are independent under the posterior. This file is the definition of
the beliefs of ``audit(context_model="logit")``, which has them without a sampler, as normal laws
whose mean and covariance are those after each reward by Gauss-Hermite nodes. It is no ``model=``
of an audit or a fit: those have one theta per arm.

References: Gelman et al. (2008), Annals of Applied Statistics 2, 1360-1383.
"""

import pymc as pm

from bayesfair.history import History
from bayesfair.models.bernoulli_probit import regression

READS = ("beta",)
FAMILY = "bernoulli"


def build(history: History, *, prior_sd: float = 1.5) -> pm.Model:
    """Return the unsampled model; ``prior_sd`` of every coefficient."""
    return regression(history, prior_sd, pm.math.sigmoid)
