"""Counts, with Gamma beliefs on their rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.families.base import TINY, Family, Reads, Tail
from bayesfair.kernels.laws.best_mean import gamma_best_mean
from bayesfair.kernels.laws.count_laws import count_best_arm
from bayesfair.rewards import NegativeBinomial, Poisson, Rewards
from bayesfair.typing import Floats

__all__ = ["PoissonFamily"]

_MAX_COUNT = 400
"""Counts up to here have a cell of their own."""


class PoissonFamily(Family):
    """A reward x adds (x, 1) to Gamma(shape, rate)."""

    name = compiled = "poisson"
    parameters = ("shape", "rate")
    default = (0.5, 0.5)
    law = "rate ~ Gamma(shape, rate = {})"
    reads = ("rate",)
    model = "poisson_independent"
    containers = ("shape", "inverse_scale")
    allowed = "whole numbers from 0 up"
    cost_of_law, cost_of_pair = 550.0, 60.0

    def holds(self, reward: Floats, support: Floats) -> NDArray[np.bool_]:
        """Return which rewards are counts."""
        return np.asarray((reward >= 0) & (reward == np.rint(reward)))

    def added(self, coded: Floats) -> Floats:
        """Return (x, 1) for each reward x."""
        return np.stack([coded, np.ones_like(coded)], axis=1)

    def predictive(self, table: Floats, support: Floats, arms: Sequence[str]) -> Rewards:
        """Return negative binomial laws."""
        shape, rate = table[..., 0], table[..., 1]
        return NegativeBinomial(shape, rate / (rate + 1), arms=tuple(arms))

    def mean(self, table: Floats, support: Floats) -> Floats:
        """Return the expected rate."""
        return np.asarray(table[..., 0] / table[..., 1])

    def best_mean(self, table: Floats, support: Floats) -> Floats:
        """Return P(the rate is the largest)."""
        return gamma_best_mean(table[:, 0], table[:, 1])

    def best_of_laws(self, rewards: Rewards, n_arms: NDArray[np.int64]) -> Floats:
        """Return P* of an arm of each law."""
        assert isinstance(rewards, NegativeBinomial)
        return count_best_arm(rewards.mean, rewards.n, n_arms)

    def draws(
        self, table: Floats, shape: tuple[int, ...], rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Return draws of the rate."""
        return {"rate": rng.gamma(table[:, 0], 1 / table[:, 1], size=(*shape, len(table)))}

    def truth(self, reads: Reads, arms: Sequence[str], level: Floats | None) -> Rewards:
        """Return Poisson laws at drawn rates."""
        return Poisson(reads["rate"], arms=tuple(arms))

    def log_likelihood(
        self,
        reads: Reads,
        arm: NDArray[np.int64],
        reward: Floats,
        time_bin: NDArray[np.int64],
        level: Floats | None,
    ) -> Floats:
        """Return the log mass at the count."""
        rate = np.maximum(reads["rate"][..., time_bin, arm], TINY)
        return np.asarray(reward * np.log(rate) - rate - special.gammaln(reward + 1))

    def log_prior(self, reads: Reads, prior: Floats) -> Floats:
        """Return the log density of the Gamma laws, summed over arms."""
        rate, (a, b) = np.maximum(reads["rate"], TINY), prior.T
        log = special.xlogy(a - 1.0, b * rate) - b * rate - special.gammaln(a) + np.log(b)
        return np.asarray(log.sum(axis=-1))

    def cells(
        self, ends: Sequence[Reads], level: Floats | None, reward: Floats
    ) -> tuple[Floats, Floats]:
        """Return cells of equal width from 0 up, each known by its first count."""
        rate = max(float(np.quantile(reads["rate"], 0.999)) for reads in ends)
        top = int(max(rate + 8 * np.sqrt(rate) + 10, np.nanmax(reward, initial=0)))
        step = -(-(top + 1) // _MAX_COUNT)
        edge = np.arange(0, top + step, step, dtype=float)
        return edge + (step - 1) / 2, edge

    def mass(self, reads: Reads, edge: Floats) -> Floats:
        """Return P(count in each cell): P(count < edge) = Q(edge, rate); the last has the tail."""
        rate = reads["rate"][..., None]
        below = np.where(edge > 0, special.gammaincc(np.maximum(edge, 1), rate), 0.0)
        return np.diff(below, axis=-1, append=1.0)

    def tails(
        self, prior: Floats, posterior: Floats, support: Floats, level: float, *, learned: bool
    ) -> Iterator[Tail]:
        """Yield the tails of the sum of counts: negative binomial."""
        for i, (total, n) in enumerate(np.rint(posterior - prior).tolist()):
            if n > 0:
                shape, rate = prior[i].tolist()
                low = special.betainc(shape, total + 1, rate / (rate + n))
                high = special.betainc(total, shape, n / (rate + n)) if total > 0 else 1.0
                yield Tail(float(2 * min(low, high)), i, f"mean {total / n:.4g} of {n:.0f}")
