r"""Bernoulli arms in contexts that share nothing: one Beta prior per context and arm.

    theta_ci ~ Beta(alpha_i, beta_i)               c = 1..C, i = 1..k      dims ("context", "arm")
    s_ci ~ Binomial(n_ci, theta_ci)                                        dims ("context", "arm")

Prior rationale. That of ``bernoulli_independent`` in every context anew: alpha = beta = 1/2, worth
one round per context and arm.

Contract. Observed: ``successes`` per context and arm, sufficient together with the data ``pulls``.
Read downstream: ``theta``, P(reward = 1) given the context. The posterior is Beta(alpha_i + s_ci,
beta_i + n_ci - s_ci), independent over contexts and arms: this file is the definition of the
beliefs of ``audit(context_model="cells")``, which needs no sampler. Prefer
``bernoulli_pooled_cells`` where contexts are many.

References: Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., section 2.4.
"""

from typing import Any

import numpy as np
import pymc as pm

from bayesfair.families import FAMILIES
from bayesfair.families.logs import coded_of, earlier_counts
from bayesfair.families.priors import prior_table
from bayesfair.history import History
from bayesfair.history.cells import counts_by_context

READS = ("theta",)
FAMILY = "bernoulli"


def build(history: History, *, prior: Any = None) -> pm.Model:
    """Return the unsampled model; ``prior``: (alpha, beta) for all arms, per arm, or by label."""
    contexts, pulls, successes = counts_by_context(history)
    family = FAMILIES[FAMILY]
    coded_of(history, family, np.empty(0))  # checks that they are 0 or 1
    table = prior_table(prior, family, history.arms) + earlier_counts(history, family, whole=False)
    cells = ("context", "arm")
    with pm.Model(coords={"context": contexts, "arm": history.arms}) as model:
        alpha = pm.Data("alpha", table[:, 0], dims="arm")
        beta = pm.Data("beta", table[:, 1], dims="arm")
        n = pm.Data("pulls", pulls, dims=cells)
        theta = pm.Beta("theta", alpha=alpha[None, :], beta=beta[None, :], dims=cells)
        observed = pm.Data("observed_successes", successes.astype(np.int64), dims=cells)
        pm.Binomial("successes", n=n, p=theta, observed=observed, dims=cells)
    return model
