"""Arms of one population: a model of one's own for ``model=``."""

import numpy as np
import pymc as pm

READS = ("theta",)


def build(history):
    """Arms of one population: log-odds mu + tau z."""
    known = np.isfinite(history.reward)  # NaN is not observed
    with pm.Model(coords={"arm": list(history.arms)}) as model:
        mu = pm.Normal("mu", 0, 1.5)
        tau = pm.HalfNormal("tau", 1)
        z = pm.Normal("z", dims="arm")
        theta = pm.Deterministic("theta", pm.math.sigmoid(mu + tau * z), dims="arm")
        pm.Bernoulli("reward", theta[history.arm[known]], observed=history.reward[known])
    return model
