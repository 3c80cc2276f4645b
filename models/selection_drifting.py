r"""The rule behind choices without probabilities: a random walk of its log-odds over time bins.

    tau ~ HalfNormal(0.5)                drift per bin, log-odds, shared by all arms
    eta_0i ~ Normal(0, 1.5)                        i = 1..k
    eta_bi = eta_(b-1)i + tau z_bi,  z_bi ~ Normal(0, 1)         b = 1..B-1
    pi_b = softmax(eta_b)                                        dims ("bin", "arm")
    n_b ~ Multinomial(sum n_b, pi_b)                             dims ("bin", "arm")

Prior rationale. Log-odds of two arms are eta_i - eta_j, in the first bin Normal(0, 2.1): shares of
two arms are nearly uniform. Adding a constant to all eta of a bin changes nothing, and the prior
holds that direction. tau near 0, a rule that does not change, has the highest prior density; with
its mean, 0.40, log-odds of two arms move by 0.56 from bin to bin (standard deviation).

Contract. Bins hold equally many rounds (``n_bins``, default 10) unless ``bin_start`` gives the
first round of each. Observed: choices per bin and arm; cost grows with bins, not rounds. Rewards
are not used. Read downstream: ``pi`` with its dim ``bin``, and ``bin_start``. It is a model of the
rule and none of the rewards, so it is not for ``audit(model=)``: sample it, and hold ``pi`` against
P*. All arms are on offer in each round; a log with ``offered`` is refused.

References: West, Harrison (1997), Bayesian Forecasting and Dynamic Models, 2nd ed., section 14.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesfair.errors import DataError
from bayesfair.history import History
from bayesfair.history.cells import bin_of_rounds, time_bins

READS = ("pi",)
PRIOR = (
    "log-odds of the rule: random walk over bins, first Normal(0, 1.5), steps Normal(0, tau), "
    "tau ~ HalfNormal({drift:g})"
)


def build(
    history: History, *, n_bins: int = 10, bin_start: Any = None, drift: float = 0.5
) -> pm.Model:
    """Return the unsampled model; ``drift`` is the prior scale of ``tau``, in log-odds per bin."""
    if history.offered is not None:
        raise DataError(
            f"{history.source}: selection_drifting needs all arms on offer in each round; what was "
            "drawn among others says little of an arm's share. Take the rounds with all of them.",
            kind="not_on_offer", column="offered",
        )  # fmt: skip
    k, starts = len(history.arms), time_bins(history.n_rounds, n_bins, bin_start)
    which = bin_of_rounds(np.arange(history.n_rounds), starts)
    chosen = np.bincount(which * k + history.arm, minlength=len(starts) * k).reshape(-1, k)
    coords = {"bin": np.arange(len(starts)), "arm": history.arms, "step": np.arange(1, len(starts))}
    with pm.Model(coords=coords) as model:
        pm.Data("bin_start", starts, dims="bin")
        n = pm.Data("n_rounds", chosen.sum(axis=1), dims="bin")
        tau = pm.HalfNormal("tau", sigma=float(drift))
        first = pm.Normal("first", mu=0.0, sigma=1.5, dims="arm")
        eta = first[None, :]
        if len(starts) > 1:
            z = pm.Normal("z", mu=0.0, sigma=1.0, dims=("step", "arm"))
            eta = pt.concatenate([eta, first[None, :] + tau * pt.cumsum(z, axis=0)], axis=0)
        pi = pm.Deterministic("pi", pm.math.softmax(eta, axis=-1), dims=("bin", "arm"))
        observed = pm.Data("observed_chosen", chosen, dims=("bin", "arm"))
        pm.Multinomial("chosen", n=n, p=pi, observed=observed, dims=("bin", "arm"))
    return model
