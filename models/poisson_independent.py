r"""Arms that pay counts: one Gamma prior per Poisson rate.

    rate_i ~ Gamma(shape_i, rate = b_i)            i = 1..k      dims ("arm",)
    s_i ~ Poisson(n_i rate_i)                      i = 1..k      dims ("arm",)

Prior rationale. shape = b = 1/2: mean 1 event per round, worth half a round per arm, central 95 %
(0.00098, 5.02). The density is unbounded at 0, so arms that never pay are believed quickly; where
rates of 100 are expected give ``prior`` in those units.

Contract. Observed: ``total``, the summed reward, sufficient together with the data ``pulls``. Read
downstream: ``rate``, events per round. The posterior is Gamma(shape_i + s_i, b_i + n_i),
independent over arms.

References: Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., section 2.6.
"""

from typing import Any

import numpy as np
import pymc as pm

from bayesfair.families import FAMILIES
from bayesfair.families.logs import known_of
from bayesfair.families.priors import prior_table
from bayesfair.history import History

READS = ("rate",)
FAMILY = "poisson"


def build(history: History, *, prior: Any = None) -> pm.Model:
    """Return the unsampled model; ``prior``: (shape, rate) for all arms, per arm, or by label."""
    known, _ = known_of(history, FAMILIES[FAMILY])
    table = prior_table(prior, FAMILIES[FAMILY], history.arms)
    with pm.Model(coords={"arm": history.arms}) as model:
        shape = pm.Data("shape", table[:, 0], dims="arm")
        inverse_scale = pm.Data("inverse_scale", table[:, 1], dims="arm")
        n = pm.Data("pulls", known.pulls, dims="arm")
        rate = pm.Gamma("rate", alpha=shape, beta=inverse_scale, dims="arm")
        observed = pm.Data("observed_total", known.total.astype(np.int64), dims="arm")
        pm.Poisson("total", mu=n * rate, observed=observed, dims="arm")
    return model
