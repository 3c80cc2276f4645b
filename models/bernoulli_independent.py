r"""Bernoulli arms that share nothing: one Beta prior per arm.

    theta_i ~ Beta(alpha_i, beta_i)                i = 1..k      dims ("arm",)
    s_i ~ Binomial(n_i, theta_i)                   i = 1..k      dims ("arm",)

Prior rationale. alpha = beta = 1/2 (Jeffreys): invariant under reparametrisation and worth one
round per arm. Its mean is 1/2, its central 95 % is (0.0015, 0.9985), and 20.5 % of its mass lies
below 0.1: rates near 0 or 1 are as easily believed as moderate ones.

Contract. Observed: ``successes``, sufficient together with the data ``pulls``, so cost does not
grow with the number of rounds. Read downstream: ``theta``, P(reward = 1). The posterior is
Beta(alpha_i + s_i, beta_i + n_i - s_i), independent over arms: this file is the definition that
the closed form must meet. Prefer ``bernoulli_hierarchical`` where arms are alike and pulls are
few, ``bernoulli_drifting`` where rates change.

References: Liu et al. (2017), arXiv:1707.01875, section 4; Gelman et al. (2013), Bayesian Data
Analysis, 3rd ed., section 2.4.
"""

from typing import Any

import numpy as np
import pymc as pm

from bayesfair.families import FAMILIES
from bayesfair.families.logs import earlier_counts, known_of
from bayesfair.families.priors import prior_table
from bayesfair.history import History

READS = ("theta",)
FAMILY = "bernoulli"


def build(history: History, *, prior: Any = None) -> pm.Model:
    """Return the unsampled model; ``prior``: (alpha, beta) for all arms, per arm, or by label."""
    family = FAMILIES[FAMILY]
    known, _ = known_of(history, family)
    # outcomes from before the log need not be whole numbers: they enter through the prior
    table = prior_table(prior, family, history.arms) + earlier_counts(history, family, whole=False)
    with pm.Model(coords={"arm": history.arms}) as model:
        alpha = pm.Data("alpha", table[:, 0], dims="arm")
        beta = pm.Data("beta", table[:, 1], dims="arm")
        n = pm.Data("pulls", known.pulls, dims="arm")
        theta = pm.Beta("theta", alpha=alpha, beta=beta, dims="arm")
        won = known.total.astype(np.int64)
        observed = pm.Data("observed_successes", won, dims="arm")
        pm.Binomial("successes", n=n, p=theta, observed=observed, dims="arm")
    return model
