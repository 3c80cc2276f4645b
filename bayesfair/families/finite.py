"""Rewards of finitely many values, such as ratings, with Dirichlet beliefs on their shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.checks import listed
from bayesfair.errors import OptionError
from bayesfair.families.base import TINY, Family, Reads, Tail
from bayesfair.kernels.laws.dirichlet_mean import dirichlet_best_mean
from bayesfair.kernels.laws.finite_arms import finite_best_arm
from bayesfair.kernels.laws.prior_tails import beta_binomial_tail
from bayesfair.rewards import Finite, Rewards
from bayesfair.typing import Floats

__all__ = ["FiniteFamily", "check_support", "seen_levels"]


def seen_levels(reward: Floats) -> Floats:
    """Return the values seen, ascending, which stand for all that can be; 0 and 1 go together."""
    levels = np.unique(reward[~np.isnan(reward)])
    return np.array([0.0, 1.0]) if np.isin(levels, (0.0, 1.0)).all() else levels


def check_support(support: ArrayLike) -> Floats:
    """Return the values that a finite reward can take, ascending.

    Raises
    ------
    OptionError
        Unless they are distinct finite numbers.
    """
    try:
        levels = np.sort(np.asarray(support, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        levels = np.empty(0)
    if not levels.size or not np.isfinite(levels).all() or np.any(np.diff(levels) == 0):
        raise OptionError(
            f"support={support!r} must be distinct finite numbers, at least one.",
            kind="option_value",
            column="support",
            value=support,
        )
    return levels


class FiniteFamily(Family):
    """A reward adds 1 to the concentration of its level."""

    name = compiled = "finite"
    parameters = ("concentration",)
    default = (0.5,)
    law = "probability ~ Dirichlet({})"
    reads = ("probability",)
    model = "finite_independent"
    containers = ("concentration",)
    allowed = "finitely many values"
    has_levels = True
    cost_of_law, cost_of_pair = 180.0, 10.0

    @property
    def remedy(self) -> str:
        """What a log with other rewards needs."""
        return "List all values that a reward can take: support=."

    def levels(self, support: ArrayLike | None, reward: Floats) -> Floats:
        """Return the levels given, or those seen."""
        return seen_levels(reward) if support is None else check_support(support)

    def holds(self, reward: Floats, support: Floats) -> NDArray[np.bool_]:
        """Return which rewards are levels."""
        return np.asarray(support[self._place(reward, support)] == reward)

    def allows(self, support: Floats) -> str:
        """Return the levels in words."""
        return f"one of the values {listed([f'{value:g}' for value in support])}"

    def code(self, reward: Floats, support: Floats) -> Floats:
        """Return the position of each reward among the levels."""
        place = self._place(reward, support).astype(np.float64)
        return np.where(np.isnan(reward), np.nan, place)

    @staticmethod
    def _place(reward: Floats, support: Floats) -> NDArray[np.int64]:
        return np.minimum(np.searchsorted(support, reward), len(support) - 1)

    def added(self, coded: Floats) -> Floats:
        """Return 1 at the level of each reward, up to the highest among them."""
        return np.asarray(coded[:, None] == np.arange(coded.max(initial=-1.0) + 1), np.float64)

    def sums(self, arm: NDArray[np.int32], coded: Floats, shape: tuple[int, int]) -> Floats:
        """Return how often each arm paid each level."""
        cell = arm.astype(np.int64) * shape[1] + coded.astype(np.int64)
        return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)

    def predictive(self, table: Floats, support: Floats, arms: Sequence[str]) -> Rewards:
        """Return the expected shares of the levels."""
        return Finite(support, table / table.sum(axis=-1, keepdims=True), arms=tuple(arms))

    def mean(self, table: Floats, support: Floats) -> Floats:
        """Return the expected mean reward."""
        return np.asarray(table @ support / table.sum(axis=-1))

    def best_mean(self, table: Floats, support: Floats) -> Floats:
        """Return P(the arm's mean is the largest) under Dirichlet laws."""
        return dirichlet_best_mean(table, support)

    def best_of_laws(self, rewards: Rewards, n_arms: NDArray[np.int64]) -> Floats:
        """Return P* of an arm of each law."""
        assert isinstance(rewards, Finite)
        return finite_best_arm(rewards.pmf, n_arms)

    def draws(
        self, table: Floats, shape: tuple[int, ...], rng: np.random.Generator
    ) -> dict[str, Floats]:
        """Return draws of the shares, ``(*shape, k, L)``."""
        weights = rng.standard_gamma(table, size=(*shape, *table.shape))
        total = weights.sum(axis=-1, keepdims=True)
        # concentrations far below 1 can underflow every weight: the mass then sits on one level
        share = np.divide(weights, total, out=np.full_like(weights, np.nan), where=total > 0)
        bad = ~(total[..., 0] > 0)
        if bad.any():
            i = np.nonzero(bad)[-1]
            cumulative = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)[i]
            pick = (rng.random(len(i))[:, None] > cumulative[:, :-1]).sum(axis=1)
            share[bad] = np.eye(table.shape[1])[pick]
        return {"probability": share}

    def truth(self, reads: Reads, arms: Sequence[str], level: Floats | None) -> Rewards:
        """Return the laws at drawn shares; samplers leave a rounding error in their sum."""
        mass = np.maximum(reads["probability"], 0.0)
        assert level is not None
        return Finite(level, mass / mass.sum(axis=-1, keepdims=True), arms=tuple(arms))

    def log_likelihood(
        self,
        reads: Reads,
        arm: NDArray[np.int64],
        reward: Floats,
        time_bin: NDArray[np.int64],
        level: Floats | None,
    ) -> Floats:
        """Return the log share of the reward's level."""
        assert level is not None
        mass = reads["probability"][..., time_bin, arm, self._place(reward, level)]
        return np.asarray(np.log(np.maximum(mass, TINY)))

    def log_prior(self, reads: Reads, prior: Floats) -> Floats:
        """Return the log density of the Dirichlet laws, up to a constant."""
        mass = np.maximum(reads["probability"], TINY)
        return np.asarray(((prior - 1) * np.log(mass)).sum(axis=(-2, -1)))

    def cells(
        self, ends: Sequence[Reads], level: Floats | None, reward: Floats
    ) -> tuple[Floats, Floats]:
        """Return the levels."""
        assert level is not None
        return level, level

    def mass(self, reads: Reads, edge: Floats) -> Floats:
        """Return the shares."""
        return reads["probability"]

    def tails(
        self, prior: Floats, posterior: Floats, support: Floats, level: float, *, learned: bool
    ) -> Iterator[Tail]:
        """Yield the tails of the count of each level: beta-binomial."""
        counts = np.rint(posterior - prior)
        n_levels = prior.shape[1]
        n_tests = int((counts.sum(axis=1) > 0).sum()) * n_levels
        for i, row in enumerate(counts if n_levels > 1 else ()):
            n, total = float(row.sum()), float(prior[i].sum())
            for j in range(n_levels if n else 0):
                a = float(prior[i, j])
                p = beta_binomial_tail(row[j], n, a, total - a, level / n_tests)
                yield Tail(p, i, f"{support[j]:g} in {row[j]:.0f} of {n:.0f}")

    def n_values(self, n_levels: int) -> int | None:
        """As many as levels."""
        return n_levels
