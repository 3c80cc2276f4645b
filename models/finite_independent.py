r"""Arms whose rewards take finitely many values (ratings, levels): one Dirichlet prior per arm.

    probability_i ~ Dirichlet(a_i1, ..., a_iL)     i = 1..k      dims ("arm", "level")
    c_i ~ Multinomial(n_i, probability_i)          i = 1..k      dims ("arm", "level")

Prior rationale. a = 1/2 for each level (Jeffreys). For L = 2 it is the Beta(1/2, 1/2) of
``bernoulli_independent``; for L = 5 each level has prior mean 0.2, standard deviation 0.21, and
the prior is worth 2.5 rounds per arm.

Contract. Levels are the coordinate ``level``, in reward units, ascending: ``support`` if given,
else the values seen. Observed: ``counts``; cost does not grow with the number of rounds. Read
downstream: ``probability``. The posterior is Dirichlet(a_i + c_i), independent over arms. Levels
have no order in the prior; where neighbouring levels should share strength write a model of your
own.

References: Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., section 3.4.
"""

from typing import Any

import numpy as np
import pymc as pm

from bayesfair.errors import DataError
from bayesfair.families import FAMILIES
from bayesfair.families.logs import known_of
from bayesfair.families.priors import prior_table
from bayesfair.history import History

READS = ("probability",)
FAMILY = "finite"


def build(history: History, *, prior: Any = None, support: Any = None) -> pm.Model:
    """Return the unsampled model; ``prior``: concentration(s), ``support``: all reward levels."""
    known, levels = known_of(history, FAMILIES[FAMILY], support)
    counts = known.added.astype(np.int64)
    if len(levels) == 1:
        raise DataError(
            f"every observed reward is {levels[0]:g}: with one level nothing is left to estimate. "
            "Give support= with all levels a reward can take."
        )
    table = prior_table(prior, FAMILIES[FAMILY], history.arms, len(levels))
    with pm.Model(coords={"arm": history.arms, "level": levels}) as model:
        a = pm.Data("concentration", table, dims=("arm", "level"))
        n = pm.Data("pulls", counts.sum(axis=1), dims="arm")
        probability = pm.Dirichlet("probability", a=a, dims=("arm", "level"))
        observed = pm.Data("observed_counts", counts, dims=("arm", "level"))
        pm.Multinomial("counts", n=n, p=probability, observed=observed, dims=("arm", "level"))
    return model
