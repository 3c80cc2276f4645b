"""Draws of coefficients that importance weights make exact, and how far the filter was from them.

Beliefs of 0/1 arms given features are normal laws with the moments of each step. At the end of a
log the posterior itself is known up to a constant: the beliefs before the first round times the
chance of every known reward. Arms are independent in it, so each has weights of its own, of draws
from a t law with five degrees of freedom around its normal law.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.truth.objective import Certificate
from bayesfair.families.featured import Featured
from bayesfair.history import History
from bayesfair.inference.reweight import psis_weights
from bayesfair.kernels.log.coefficients import run_coefficients
from bayesfair.kernels.log.needed import log_chances
from bayesfair.typing import Floats, Ints

__all__ = ["APART", "FEWEST", "KHAT", "Exact", "exact_draws"]

KHAT, FEWEST = 0.7, 400
"""Largest Pareto k-hat, and least effective draws, of weights that are relied on."""

APART = 0.02
"""A difference of chances that is told where it is not rare."""

_PROPOSED, _DF = 4000, 5.0
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
    """

    theta: Floats
    weight: Floats
    khat: Floats
    ess: Floats

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

    def certificate(self, of: Featured, rows: Floats) -> Certificate:
        """Return how far the filter is from the posterior in some rounds, (T, d)."""
        end = of.settled()
        nothing = np.zeros(len(rows), np.int32), np.full(len(rows), np.nan), None
        filtered = run_coefficients(of.model, end, rows, *nothing)[0][:, :, 0]
        apart = np.abs(filtered - self.chances(of, rows)).max(axis=1, initial=0.0)
        share = float((apart > APART).mean()) if len(rows) else 0.0
        return Certificate(self.khat, self.ess, float(apart.max(initial=0.0)), share)

    def chances(self, of: Featured, rows: Floats) -> Floats:
        """Return the probability of a reward of 1 in each round, (T, k), by all draws."""
        found = np.empty((len(rows), self.theta.shape[1]))
        for i in range(found.shape[1]):
            found[:, i] = of.chance(rows @ self.theta[:, i].T) @ self.weight[:, i]
        return found


def exact_draws(
    before: Featured, after: Featured, parts: Iterable[History], n_rewards: int, order: Ints,
    rng: np.random.Generator,
) -> Exact | None:  # fmt: skip
    """Return weighted draws from the posterior; None where the rewards are too many for it.

    Parameters
    ----------
    before, after : Featured
        Beliefs before the first and after the last of the rounds.
    parts : iterable of History
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
    theta, log_ratio = np.empty((n, k, d)), np.empty((k, n))
    for i in order:
        root = np.linalg.cholesky(end.spread[i])
        stretch = np.sqrt(_DF / rng.chisquare(_DF, n))
        z = rng.standard_normal((n, d)) * stretch[:, None]
        theta[:, i] = end.mean[i] + z @ root.T
        log_t = -0.5 * (_DF + d) * np.log1p((z * z).sum(axis=1) / _DF)
        away = np.linalg.solve(np.linalg.cholesky(first.spread[i]), (theta[:, i] - first.mean[i]).T)
        log_ratio[i] = -0.5 * (away * away).sum(axis=0) - log_t
    old = first.pending_row, first.pending_arm, first.pending_reward
    _add(after.model, *old, theta, log_ratio)
    for part in parts:
        assert part.context is not None
        seen = ~np.isnan(part.reward)
        rows = after.design.rows(part.context)[seen]
        _add(after.model, rows, part.arm[seen], part.reward[seen], theta, log_ratio)
    weights, khat = zip(*(psis_weights(one) for one in log_ratio), strict=True)
    weight = np.stack(weights, axis=1)
    return Exact(theta, weight, np.array(khat), 1 / (weight * weight).sum(axis=0))


def _add(
    model: str,
    rows: Floats,
    arm: NDArray[np.int32],
    reward: Floats,
    theta: Floats,
    log_ratio: Floats,
) -> None:
    """Add the log chance of rewards under every draw."""
    for i in range(len(log_ratio)):
        mine = arm == i
        log_chances(model, rows[mine], reward[mine], theta[:, i], log_ratio[i])
