"""Beliefs on the coefficients of 0/1 arms by weighted draws, where a normal law is too far off.

Draws of an arm are carried from reward to reward: each multiplies the weights by its chance under
the draw, which is at most 1, so the tail of the weights is never heavier than when they were drawn,
and how many are effective tells the rest. Below half of those at first, or `FEWEST`, they are drawn
anew around the mode of the posterior, and their Pareto k-hat is looked at. What is drawn depends on
the arm's own rewards alone: parts of a log give the numbers of the whole.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy import special

from bayesfair.families.featured import Featured
from bayesfair.history import History
from bayesfair.history.design import Design
from bayesfair.inference.coefficients import FEWEST, KHAT, ArmPosterior
from bayesfair.inference.reweight import psis_weights
from bayesfair.kernels.log.coefficients import in_order_of_news
from bayesfair.rewards import Bernoulli
from bayesfair.typing import Floats, Ints

__all__ = ["MOST_CARRIED", "Carried"]

MOST_CARRIED = 1_000_000
"""Rounds times arms for which draws are carried: a minute or two."""

_DRAWS = 4000
_SEED = 20


class Carried(NamedTuple):
    """Beliefs before the next round: weighted draws, and the filter that they stand in for.

    Attributes
    ----------
    featured : Featured
        The filter: features, and rewards that are not known yet.
    mean, spread : (k, d) and (k, d, d) arrays
        Normal law of the coefficients before the first reward.
    told_arm, told_reward, told_row : (m,), (m,) and (m, d) arrays
        Known rewards in the order of their coming.
    theta : (k, D, d) array
        Draws; none before the first part.
    log_ratio : (k, D) array
        Log of the posterior over the density that they were drawn from.
    enough : (k,) array
        Effective draws below which they are drawn anew.
    khat, fewest, error : float
        Over all rounds so far: the largest Pareto k-hat and the fewest effective draws right after
        drawing, the largest standard error of a chance.
    """

    featured: Featured
    mean: Floats
    spread: Floats
    told_arm: Ints
    told_reward: Floats
    told_row: Floats
    theta: Floats
    log_ratio: Floats
    enough: Floats
    khat: float = -np.inf
    fewest: float = np.inf
    error: float = 0.0

    @classmethod
    def start(cls, featured: Featured) -> Self:
        """Return what the filter believes before a log, as draws to come."""
        beliefs = featured.beliefs
        k, d = beliefs.mean.shape
        nothing = np.empty(0, np.int64), np.empty(0), np.empty((0, d))
        draws = np.empty((k, 0, d)), np.empty((k, 0)), np.full(k, _DRAWS / 2)
        return cls(featured, beliefs.mean, beliefs.spread, *nothing, *draws)

    @property
    def design(self) -> Design:
        """Features of a round."""
        return self.featured.design

    @property
    def holds(self) -> bool:
        """Whether all weights could be relied on."""
        return self.khat <= KHAT and self.fewest >= FEWEST

    def over(self, part: History, *, laws: bool = True) -> tuple[Bernoulli | None, Self]:
        """Return the laws believed before each round of a part, and what is believed after it."""
        assert part.context is not None
        after = self.featured.over(part, laws=False)[1]
        d = len(after.design.names)
        wide, n = self._widened(d), part.n_rounds
        rows = after.design.rows(part.context)
        before = self.featured.beliefs.widened(d)
        at, place, arm, reward, every = in_order_of_news(
            before, rows, part.arm, part.reward, part.known_at
        )
        known = at <= n
        arm, reward, row, at = arm[known], reward[known], every[place[known]], at[known].clip(0, n)
        rows = rows if laws else rows[:0]
        out = np.empty((len(rows), len(self.mean)))
        arms = []
        for i in range(len(self.mean)):
            one = _Arm(wide, i)
            begin = 0
            for e in np.flatnonzero(arm == i):
                out[begin : at[e], i] = one.chances(rows[begin : at[e]])
                begin = max(begin, int(at[e]))
                one.learn(row[e], reward[e])
            out[begin:, i] = one.chances(rows[begin:])
            arms.append(one)
        return Bernoulli(out, arms=part.arms) if laws else None, wide._replace(
            featured=after,
            told_arm=np.concatenate([wide.told_arm, arm]),
            told_reward=np.concatenate([wide.told_reward, reward]),
            told_row=np.concatenate([wide.told_row, row]),
            theta=np.stack([one.theta for one in arms]),
            log_ratio=np.stack([one.log_ratio for one in arms]),
            enough=np.array([one.enough for one in arms]),
            khat=max(one.khat for one in arms),
            fewest=min(one.fewest for one in arms),
            error=max(one.error for one in arms),
        )

    def _widened(self, d: int) -> Self:
        """Return the beliefs with more features, none of which came in a round so far."""
        more, (k, n, old) = d - self.mean.shape[1], self.theta.shape
        start = self
        if more:
            wide = self.featured.beliefs._replace(mean=self.mean, spread=self.spread).widened(d)
            row = np.pad(self.told_row, ((0, 0), (0, more)))
            start = self._replace(mean=wide.mean, spread=wide.spread, told_row=row)
        if n and not more:
            return start
        # of the prior itself, in pairs around its mean; all arms have the same standard draws
        z = np.random.default_rng([_SEED, 0, d]).standard_normal((_DRAWS // 2, d))
        root = np.linalg.cholesky(start.spread)
        fresh = start.mean[:, None] + np.einsum("kab,sb->ksa", root, np.concatenate([z, -z]))
        if n:
            fresh[:, :, :old] = self.theta
        return start._replace(theta=fresh, log_ratio=self.log_ratio if n else np.zeros((k, _DRAWS)))


class _Arm:
    """Draws of one arm, while its rewards come."""

    def __init__(self, of: Carried, i: int) -> None:
        mine = of.told_arm == i
        self.model, self.of = of.featured.model, of.featured
        self.prior = of.mean[i], of.spread[i]
        self.rows, self.rewards = list(of.told_row[mine]), list(of.told_reward[mine])
        self.theta, self.log_ratio, self.enough = of.theta[i], of.log_ratio[i].copy(), of.enough[i]
        self.khat, self.fewest, self.error = of.khat, of.fewest, of.error
        self.weigh()

    def weigh(self) -> float:
        """Write the weights; return how many draws are effective."""
        self.weight = special.softmax(self.log_ratio)
        return float(1 / (self.weight @ self.weight))

    def chances(self, rows: Floats) -> Floats:
        """Return the probability of a reward of 1 in each round, (n,)."""
        found = np.empty(len(rows))
        for a in range(0, len(rows), 256):
            p = self.of.chance(rows[a : a + 256] @ self.theta.T)
            found[a : a + 256] = mean = p @ self.weight
            p -= mean[:, None]
            error = np.sqrt(np.square(p, out=p) @ np.square(self.weight))
            self.error = max(self.error, float(error.max()))
        return found.clip(0.0, 1.0)

    def learn(self, row: Floats, reward: float) -> None:
        """Weigh the draws by the chance of a reward; draw anew where too few are effective."""
        self.rows.append(row)
        self.rewards.append(reward)
        posterior = ArmPosterior(self.model, row[None], np.array([reward]), *self.prior)
        posterior.weigh(self.theta, self.log_ratio)
        if self.weigh() < self.enough:
            self._draw()

    def _draw(self) -> None:
        rows, rewards = np.array(self.rows), np.array(self.rewards)
        posterior = ArmPosterior(self.model, rows, rewards, *self.prior)
        around = posterior.mode(self.weight @ self.theta)
        for again in (1, 2):
            rng = np.random.default_rng([_SEED, again, len(rewards)])
            self.theta, self.log_ratio = posterior.drawn(*around, _DRAWS, rng)
            smoothed, khat = psis_weights(self.log_ratio)
            ess = self.weigh()
            if khat <= KHAT and ess >= FEWEST:
                break
            mean = smoothed @ self.theta
            away = self.theta - mean
            around = mean, (away.T * smoothed) @ away
        self.khat, self.fewest = max(self.khat, khat), min(self.fewest, ess)
        self.enough = max(ess / 2, FEWEST) if ess >= FEWEST else ess / 2
