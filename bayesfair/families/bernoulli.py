"""Rewards 0 and 1, with Beta beliefs on their probability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.families.base import TINY, Family, Reads, Tail
from bayesfair.kernels.laws.best_mean import beta_best_mean
from bayesfair.kernels.laws.beta_atoms import beta_atoms
from bayesfair.kernels.laws.prior_tails import beta_binomial_tail
from bayesfair.rewards import Bernoulli, Rewards
from bayesfair.typing import Floats

__all__ = ["BernoulliFamily"]

_BELOW_ONE = 1 - 2.0**-53
"""A draw that rounds to 1 would exclude a failure for good."""


class BernoulliFamily(Family):
    """A reward x adds (x, 1 - x) to Beta(alpha, beta)."""

    name = compiled = "bernoulli"
    parameters = ("alpha", "beta")
    default = (0.5, 0.5)
    law = "theta ~ Beta({})"
    reads = ("theta",)
    model = "bernoulli_independent"
    containers = ("alpha", "beta")
    allowed = "0 or 1"
    binary = True
    constant = 1.0

    def holds(self, reward: Floats, support: Floats) -> NDArray[np.bool_]:
        """Return which rewards are 0 or 1."""
        return np.asarray((reward == 0) | (reward == 1))

    def added(self, coded: Floats) -> Floats:
        """Return (x, 1 - x) for each reward x."""
        return np.stack([coded, 1 - coded], axis=1)

    def predictive(self, table: Floats, support: Floats, arms: Sequence[str]) -> Rewards:
        """Return Bernoulli laws at the mean of theta."""
        total = table.sum(axis=-1)
        return Bernoulli(table[..., 0] / total, table[..., 1] / total, arms=tuple(arms))

    def best_mean(self, table: Floats, support: Floats) -> Floats:
        """Return P(theta_i is the largest)."""
        return beta_best_mean(table[:, 0], table[:, 1])

    def atoms(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return values with the same first 63 moments as Beta(alpha, beta)."""
        return beta_atoms(float(parameters[0]), float(parameters[1]), 32)

    def draws(
        self, table: Floats, shape: tuple[int, ...], rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Return draws of theta."""
        return {"theta": rng.beta(table[:, 0], table[:, 1], size=(*shape, len(table)))}

    def truth(self, reads: Reads, arms: Sequence[str], level: Floats | None) -> Rewards:
        """Return Bernoulli laws at drawn theta."""
        return Bernoulli(np.clip(reads["theta"], 0.0, 1.0), arms=tuple(arms))

    def log_likelihood(
        self,
        reads: Reads,
        arm: NDArray[np.int64],
        reward: Floats,
        time_bin: NDArray[np.int64],
        level: Floats | None,
    ) -> Floats:
        """Return log theta or log(1 - theta)."""
        theta = reads["theta"][..., time_bin, arm]
        success = np.log(np.maximum(theta, TINY))
        failure = np.log1p(-np.minimum(theta, _BELOW_ONE))
        return np.where(reward == 1, success, failure)

    def log_prior(self, reads: Reads, prior: Floats) -> Floats:
        """Return the log density of the Beta laws, summed over arms."""
        theta, (a, b) = np.clip(reads["theta"], TINY, _BELOW_ONE), prior.T
        # as scipy.stats.beta.logpdf has it
        log = special.xlog1py(b - 1.0, -theta) + special.xlogy(a - 1.0, theta)
        return np.asarray((log - special.betaln(a, b)).sum(axis=-1))

    def cells(
        self, ends: Sequence[Reads], level: Floats | None, reward: Floats
    ) -> tuple[Floats, Floats]:
        """Return the one cell that matters: rewards of 1."""
        return np.array([1.0]), np.array([1.0])

    def mass(self, reads: Reads, edge: Floats) -> Floats:
        """Return theta."""
        return reads["theta"][..., None]

    def of_mass(self, mass: Floats, level: Floats, arms: Sequence[str]) -> Rewards:
        """Return Bernoulli laws."""
        return Bernoulli(np.clip(mass[..., 0], 0.0, 1.0), arms=tuple(arms))

    def tails(
        self, prior: Floats, posterior: Floats, support: Floats, level: float, *, learned: bool
    ) -> Iterator[Tail]:
        """Yield the tails of the successes: beta-binomial."""
        counts = np.rint(posterior - prior)
        n_tests = int((counts.sum(axis=1) > 0).sum())
        for i, (won, lost) in enumerate(counts.tolist()):
            if won + lost > 0:
                p = beta_binomial_tail(won, won + lost, *prior[i], level / n_tests)
                yield Tail(p, i, f"{won:.0f} successes of {won + lost:.0f}")

    def n_values(self, n_levels: int) -> int | None:
        """Two."""
        return 2
