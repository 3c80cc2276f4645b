r"""Bernoulli arms that are told by features of their own, with weights in common: logistic.

    a ~ Normal(0, 1.5^2),  w_f ~ Normal(0, 1.5^2)         f = 1..d       dims ("feature",)
    theta_ti = 1 / (1 + exp(-(a + sum_f w_f z_tif)))                     dims ("round", "arm")
    r_t ~ Bernoulli(theta_{t, a_t})                       t = 1..n       dims ("known",)

z_tif is feature f of arm i in round t, such as the price of each action, centred and scaled over
the first 100 rounds; 0 where it is no number, as of actions that are not on offer.

Prior rationale. On the log-odds scale 1.5 is as wide as chances from .05 to .95 at the average, and
as strong an effect of one standard deviation of a feature.

Contract. Observed: ``reward`` of every known round. Read downstream: ``theta``, P(reward = 1) of
every arm in every round. What one arm teaches holds for all: arms are *dependent* under the belief.
P* is averaged over joint draws, and the theorem on SD_TS, which needs independent arms, does not
hold. Beside the features an arm has no level of its own: actions need no identity across rounds.

References: Li, Chu, Langford, Schapire (2010), section 3.2 (features shared by arms).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm

from bayesfair.errors import OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.logs import coded_of
from bayesfair.history import History
from bayesfair.history.cells import no_context

READS = ("theta",)
FAMILY = "bernoulli"
PRIOR = "intercept and weights ~ Normal(0, 1.5^2), in common for all arms"

_FIRST = 100


def build(history: History, *, features: Sequence[str] = ()) -> pm.Model:
    """Return the unsampled model; ``features``: patterns of columns, such as ``"price_{arm}"``."""
    if history.context is None:
        raise no_context(history, "reads features of each arm")
    patterns = (features,) if isinstance(features, str) else tuple(features)
    if not patterns or not all("{arm}" in pattern for pattern in patterns):
        raise OptionError(
            f"features={features!r} must name columns of the context with {{arm}} in the place of "
            "the label, such as model_options={'features': ['price_{arm}']}.",
            kind="option_value", column="features", value=features,
        )  # fmt: skip
    coded_of(history, FAMILIES[FAMILY], np.empty(0))  # checks that they are 0 or 1
    found = [history.context.of_arms(pattern, history.arms) for pattern in patterns]
    z = np.stack([_scaled(values) for values in found], axis=-1)
    known = np.flatnonzero(~np.isnan(history.reward))
    coords: dict[str, Any] = {
        "round": np.arange(history.n_rounds), "arm": history.arms, "feature": patterns,
    }  # fmt: skip
    with pm.Model(coords=coords) as model:
        of = pm.Data("z", z, dims=("round", "arm", "feature"))
        seen = pm.Data("known_rounds", known, dims="known")
        chosen = pm.Data("chosen", history.arm[known].astype(np.int64), dims="known")
        level = pm.Normal("level", 0.0, 1.5)
        weight = pm.Normal("weight", 0.0, 1.5, dims="feature")
        value = level + (of * weight).sum(axis=-1)
        theta = pm.Deterministic("theta", pm.math.sigmoid(value), dims=("round", "arm"))
        observed = pm.Data("observed_reward", history.reward[known].astype(np.int64), dims="known")
        pm.Bernoulli("reward", p=theta[seen, chosen], observed=observed, dims="known")
    return model


def _scaled(values: Any) -> Any:
    first = values[:_FIRST]
    first = first[np.isfinite(first)]
    if not first.size:
        return np.zeros_like(values)
    return np.nan_to_num((values - first.mean()) / (first.std() or 1.0), nan=0.0)
