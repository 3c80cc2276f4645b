"""Decision rules whose beliefs depend on the features of a round: where they start, one run."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.progress import Steps
from bayesfair.errors import BayesfairWarning, OptionError
from bayesfair.families import FAMILIES
from bayesfair.families.featured import FAMILY_OF, PRIOR_SD, Featured
from bayesfair.families.priors import prior_table
from bayesfair.history.context import Context
from bayesfair.kernels.log.coefficients import Coefficients, run_coefficients
from bayesfair.kernels.simulation.counts_and_means import choose
from bayesfair.kernels.simulation.world import Run
from bayesfair.policies import FairSDTS, LinUCB, Policy
from bayesfair.policies.features import Seen
from bayesfair.rewards import Bernoulli, Rewards
from bayesfair.simulation.running import World, paid_by
from bayesfair.typing import Floats

__all__ = ["featured_start", "run_featured"]

_NOTHING = np.zeros(1, np.int32), np.full(1, np.nan), None


def featured_start(
    model: str, context: Context, truth: Rewards, rule: Policy, *, family: str | None, prior: Any
) -> tuple[Featured, Floats]:
    """Return beliefs on coefficients before the first round, with all features, and their rows.

    Raises
    ------
    OptionError
        If rewards or options do not go with the model.
    """
    of = FAMILIES[FAMILY_OF[model]]
    why = None
    if of.binary and not isinstance(truth, Bernoulli):
        why = f"is of rewards 0 and 1, and the truth is {type(truth).__name__}; take 'linear'"
    elif family not in (None, of.name):
        why = f"learns under family {of.name!r}, not {family!r}; leave family out"
    elif model in PRIOR_SD and prior is not None:
        why = "has a prior of its own, on coefficients; leave prior out"
    elif isinstance(rule, LinUCB) and model != "linear":
        why = "tells no bound of lin_ucb, which is of linear beliefs; take 'linear'"
    if why is not None:
        raise OptionError(
            f"context_model={model!r} {why}.",
            kind="unused_option", column="context_model", value=model,
        )  # fmt: skip
    if isinstance(rule, FairSDTS):
        warnings.warn(
            f"{rule.name}: C is made for arms that pay alike in all rounds; given features no "
            "guarantee is known.",
            BayesfairWarning,
            stacklevel=5,
        )
    table = prior_table(prior if model == "linear" else None, of, truth.arms)
    found = Featured.start(model, context, table, from_data=prior is None)
    design = found.design.widened(context)
    beliefs = found.beliefs.widened(len(design.names))
    return found._replace(design=design, beliefs=beliefs), design.rows(context)


def run_featured(
    rule: Policy, start: Featured, rows: Floats, world: World, exploration: float, told: Steps
) -> Run:
    """Run a rule on beliefs about the coefficients of every arm.

    Parameters
    ----------
    rule : Policy
        The rule.
    start : Featured
        Beliefs before the first round, with all features.
    rows : (T, d) array
        Features of each round.
    world : World
        What it is exposed to.
    exploration : float
        An arm with at most so many known rewards is still to be explored; -1 = none ever is.
    told : Steps
        Who follows the rounds.
    """
    n, k = world.n_rounds, world.truth.n_arms
    pay, beliefs, plays, done = paid_by(world), start.beliefs, np.zeros(k), 0
    ran = Run(np.empty(n, np.int32), np.empty(n), np.empty((n, k)))
    for t in range(n):
        first = done
        while done < n and world.known_at[world.order[done]] <= t:
            done += 1
        if done > first:
            known = world.order[first:done]
            beliefs = _learned(start.model, beliefs, rows[known], ran.arm[known], ran.reward[known])
            np.add.at(plays, ran.arm[known], 1.0)
        law = run_coefficients(start.model, beliefs, rows[t : t + 1], *_NOTHING)[0][0]
        v = np.einsum("d,kde,e->k", rows[t], beliefs.spread, rows[t])
        linear = start.model == "linear"
        unit = np.sqrt(beliefs.scale / beliefs.shape) if linear else np.ones(k)
        seen = Seen(law, beliefs.mean @ rows[t], np.sqrt(v), unit, plays, exploration)
        offered = None if world.mask is None else world.mask[t]
        ran.pi[t] = rule.given_features(seen, offered)
        ran.arm[t] = choose(ran.pi[t], world.decide[t])
        ran.reward[t] = pay(t, int(ran.arm[t]))
        told.add()
    return ran


def _learned(
    model: str, beliefs: Coefficients, rows: Floats, arm: NDArray[np.int32], reward: Floats
) -> Coefficients:
    """Return the beliefs once some rewards became known, in this order."""
    waiting = beliefs._replace(
        pending_at=np.zeros(len(arm), np.int64), pending_arm=arm, pending_reward=reward,
        pending_row=rows,
    )  # fmt: skip
    none = np.empty((0, rows.shape[1])), np.empty(0, np.int32), np.empty(0), None
    return run_coefficients(model, waiting, *none, laws=False)[1]
