"""Draws of coefficients that importance weights make exact, and how far the filter was from them.

Beliefs of 0/1 arms given features are normal laws with the moments of each step. At the end of a
log the posterior itself is known up to a constant: the beliefs before the first round times the
chance of every known reward. Arms are independent in it, so each has weights of its own, of draws
from a t law with five degrees of freedom around its normal law; where these fail, around the mode
of the posterior, which has one (probit and logit likelihoods are log-concave).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.truth.objective import Certificate
from bayesfair.families.featured import Featured
from bayesfair.history import History
from bayesfair.history.context import Context
from bayesfair.inference.coefficients import FEWEST, KHAT, ArmPosterior
from bayesfair.inference.reweight import psis_weights
from bayesfair.kernels.log.coefficients import run_coefficients
from bayesfair.typing import Floats, Ints

__all__ = ["APART", "Exact", "Known", "exact_draws"]

APART = 0.02
"""A difference of chances that is told where it is not rare."""

_PROPOSED = 4000
_MOST = 400_000_000  # rewards times draws: half a minute


class Exact(NamedTuple):
    """Weighted draws of the coefficients of every arm.

    Attributes
    ----------
    theta : (n, k, d) array
    weight : (n, k) array
        Of each arm, sums to 1.
    khat, ess : (k,) array
        Pareto k-hat, and effective draws.
    refitted : (k,) array of int
        1 where draws are those around the mode.
    """

    theta: Floats
    weight: Floats
    khat: Floats
    ess: Floats
    refitted: Ints

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Whether the weights of each arm are to be relied on, (k,)."""
        return (self.khat <= KHAT) & (self.ess >= FEWEST)

    def resampled(self, n: int, order: Ints, rng: np.random.Generator) -> Floats:
        """Return equally likely draws, (n, k, d), arm after arm."""
        found = np.empty((n, *self.theta.shape[1:]))
        for i in order:
            at = (np.arange(n) + rng.random()) / n
            place = np.searchsorted(np.cumsum(self.weight[:, i]), at).clip(0, len(self.theta) - 1)
            found[:, i] = self.theta[rng.permutation(place), i]
        return found

    def certificate(self, of: Featured, rows: Floats, n_rounds: int) -> Certificate:
        """Return how far the filter is from the posterior in some of the rounds so far, (T, d)."""
        end = of.settled()
        nothing = np.zeros(len(rows), np.int32), np.full(len(rows), np.nan), None
        filtered = run_coefficients(of.model, end, rows, *nothing)[0][:, :, 0]
        apart = np.abs(filtered - self.chances(of, rows))[:, self.holds].max(axis=1, initial=0.0)
        share = float((apart > APART).mean()) if len(rows) else 0.0
        told = self.khat, self.ess, self.refitted
        return Certificate(n_rounds, *told, float(apart.max(initial=0.0)), share)

    def chances(self, of: Featured, rows: Floats) -> Floats:
        """Return the probability of a reward of 1 in each round, (T, k), by all draws."""
        found = np.empty((len(rows), self.theta.shape[1]))
        for i in range(found.shape[1]):
            found[:, i] = of.chance(rows @ self.theta[:, i].T) @ self.weight[:, i]
        return found


class Known(NamedTuple):
    """What draws are weighed by: context, arm and reward of each round, without its rule."""

    context: Context | None
    arm: NDArray[np.int32]
    reward: Floats


def exact_draws(
    before: Featured, after: Featured, parts: Iterable[History | Known], n_rewards: int,
    order: Ints, rng: np.random.Generator,
) -> Exact | None:  # fmt: skip
    """Return weighted draws from the posterior; None where the rewards are too many for it.

    Parameters
    ----------
    before, after : Featured
        Beliefs before the first and after the last of the rounds.
    parts : iterable of History or Known
        The rounds.
    n_rewards : int
        How many are known, about.
    order : (k,) array
        Arms in the order of their draws.
    rng : Generator
        Of the draws.
    """
    n = min(_PROPOSED, _MOST // max(n_rewards, 1))
    if n < 2 * FEWEST:
        return None
    end = after.settled()
    k, d = end.mean.shape
    first = before.beliefs.widened(d)
    seen = [(first.pending_row, first.pending_arm, first.pending_reward)]
    for part in parts:
        assert part.context is not None
        known = ~np.isnan(part.reward)
        seen.append((after.design.rows(part.context)[known], part.arm[known], part.reward[known]))
    rows, arm, reward = (np.concatenate(some) for some in zip(*seen, strict=True))
    theta, weight = np.empty((n, k, d)), np.empty((n, k))
    khat, ess, refitted = np.empty(k), np.empty(k), np.zeros(k, np.int64)
    for i in order:
        mine = ArmPosterior(
            after.model, rows[arm == i], reward[arm == i], first.mean[i], first.spread[i]
        )
        around = end.mean[i], end.spread[i]
        for again in (0, 1):
            theta[:, i], log_ratio = mine.drawn(*around, n, rng)
            weight[:, i], khat[i] = psis_weights(log_ratio)
            ess[i] = 1 / (weight[:, i] ** 2).sum()
            refitted[i] = again
            if khat[i] <= KHAT and ess[i] >= FEWEST:
                break
            around = mine.mode(end.mean[i])
    return Exact(theta, weight, khat, ess, refitted)
