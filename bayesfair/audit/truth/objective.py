"""The objective audit: what the log owes to the true rewards, under draws of the truth.

Everything here works on the summaries of `cells`; its cost is rounds once, plus draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.cells import Cells, ChosenCell, FullCell
from bayesfair.audit.log.intervals import Estimate
from bayesfair.audit.log.violations import JudgedRounds, Violations, draws_used, violations_under
from bayesfair.base.estimates import interval
from bayesfair.kernels.log.propensities import smallest_allowance
from bayesfair.rewards import Bernoulli, Rewards

__all__ = [
    "CellFound",
    "Certificate",
    "Objective",
    "Part",
    "evaluate",
    "interval",
    "parts_from_cells",
    "sampling_sd",
    "with_draw_axis",
    "with_violations",
]


_OF_MEANS = ("total_variation", "wasserstein")
"""For Bernoulli rewards both are the difference of the means."""

_PAIRS_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Part:
    """Rounds with the same arms on offer and the same true rewards.

    Attributes
    ----------
    cell : FullCell, ChosenCell or None
        Their summary; None where no probabilities were logged.
    n_rounds : int
        How many.
    rewards : Rewards
        Draws of the true reward laws, batch shape (draw,).
    offered : (k,) array of bool or None
        Arms on offer; None = all.
    shares : (k,) array or None
        Shares of the choices, for logs without probabilities.
    """

    cell: FullCell | ChosenCell | None
    n_rounds: int
    rewards: Rewards
    offered: NDArray[np.bool_] | None = None
    shares: NDArray[np.float64] | None = None


class CellFound(NamedTuple):
    """What is said of the rounds with one context under the true rewards.

    Attributes
    ----------
    label : str
        The context.
    probability_fair : float or None
        Share of draws in which all of them are fair; None where that cannot be audited.
    regret : Estimate or None
        Fairness regret per round.
    """

    label: str
    probability_fair: float | None
    regret: Estimate | None


class Certificate(NamedTuple):
    """How far beliefs by moment matching are from the posterior, after some rounds of a log.

    Attributes
    ----------
    n_rounds : int
        How many.
    khat, ess : (k,) array
        Pareto k-hat and effective draws of the importance weights of each arm.
    refitted : (k,) array of int
        1 where the weights are those of draws around the mode, since they failed around the filter.
    difference : float
        Largest difference of an arm's chance, over rounds so far that are spread evenly.
    share : float
        Of these rounds with a difference above 0.02.
    """

    n_rounds: int
    khat: NDArray[np.float64]
    ess: NDArray[np.float64]
    refitted: NDArray[np.int64]
    difference: float
    share: float


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective audit per draw of the truth.

    Attributes
    ----------
    smallest_eps2 : (draw, E) array or None
        For each eps1 of the grid; None where smooth fairness cannot be audited.
    regret : (draw,) array or None
        Fairness regret per round (for ``"none"`` logs None).
    regret_sampling_sd : (draw,) array
        Sampling error of `regret`, 0 where the whole rule is logged.
    lower_bound : (draw,) array or None
        For ``"none"`` logs: TV between P* and the shares of choices.
    p_best : (draw, k) array or None
        P* of the truth, mean over rounds (an arm counts only where it is on offer); None where
        arms were drawn together.
    error : float
        Bound on the error of the regret per round from binning.
    violations : Violations or None
        Violating rounds, (draw,) each, of all draws or evenly spaced ones; None where smooth
        fairness cannot be audited.
    counted : bool
        Whether they were counted; False: estimated from a share of the rounds.
    best_mean : (k,) array or None
        Mean of P* over the draws where `p_best` is not kept.
    cells : dict of str to CellFound
        By context, where beliefs are given one.
    certificates : tuple of Certificate
        Of beliefs by moment matching.
    """

    smallest_eps2: NDArray[np.float64] | None
    regret: NDArray[np.float64] | None
    regret_sampling_sd: NDArray[np.float64]
    lower_bound: NDArray[np.float64] | None
    p_best: NDArray[np.float64] | None
    error: float
    violations: Violations | None = None
    counted: bool = True
    best_mean: NDArray[np.float64] | None = None
    cells: dict[str, CellFound] = field(default_factory=dict)
    certificates: tuple[Certificate, ...] = ()

    @property
    def p_best_mean(self) -> NDArray[np.float64]:
        """P* of every arm, mean over rounds and draws, ``(k,)``."""
        if self.best_mean is not None:
            return self.best_mean
        assert self.p_best is not None
        return np.asarray(self.p_best.mean(axis=0))

    @property
    def probability_fair(self) -> float | None:
        """Of all contexts, independent of each other; None without contexts, or pairs."""
        found = [cell.probability_fair for cell in self.cells.values()]
        shares = [share for share in found if share is not None]
        return math.prod(shares) if shares and len(shares) == len(found) else None

    def regret_estimate(self, rng: np.random.Generator, *, exact: bool) -> Estimate | None:
        """Return the mean with the equal-tailed 95 % interval of truth and sampling together."""
        if self.regret is None:
            return None
        draws = self.regret
        if np.any(self.regret_sampling_sd > 0):
            reps = max(1, -(-4000 // len(draws)))
            sd = np.tile(self.regret_sampling_sd, reps)
            draws = np.clip(np.tile(draws, reps) + sd * rng.standard_normal(sd.size), 0, 1)
            exact = False
        lower, upper = interval(draws)
        return Estimate(float(self.regret.mean()), lower, upper, exact and self.error == 0)


def evaluate(
    parts: list[Part],
    criterion: Criterion,
    judged: Iterable[tuple[JudgedRounds, Rewards]] = (),
) -> Objective:
    """Audit the parts against every draw of the truth.

    Parameters
    ----------
    parts : list of Part
        All with the same number of draws.
    criterion : Criterion
        What is asked.
    judged : iterable of (JudgedRounds, Rewards)
        Rounds in order, with the draws of their true rewards: in which of them a pair violates.
    """
    n_draws = parts[0].rewards.batch_shape[0]
    k = parts[0].rewards.n_arms
    n_rounds = sum(p.n_rounds for p in parts)
    grid = np.array(criterion.grid)
    smallest: NDArray[np.float64] | None = None
    first, second = np.zeros(n_draws), np.zeros(n_draws)
    p_best_sum = np.zeros((n_draws, k))
    lower = None
    error, sampled = 0.0, False
    for part in parts:
        p_best = np.nan_to_num(part.rewards.best_arm_probability(offered=part.offered), nan=0.0)
        p_best_sum += p_best * part.n_rounds
        if isinstance(part.cell, FullCell):
            needed = _needed(part, criterion, grid)
            smallest = needed if smallest is None else np.maximum(smallest, needed)
            value, bound = part.cell.shortfall(p_best)
            first, error = first + value, error + bound
        elif isinstance(part.cell, ChosenCell):
            s1, s2, bound = part.cell.moments(p_best)
            first, second, error, sampled = first + s1, second + s2, error + bound, True
        elif part.shares is not None:
            lower = np.maximum(p_best - part.shares, 0).sum(axis=-1)
    logged = any(p.cell is not None for p in parts)
    n = max(n_rounds, 1)
    mean = first / n
    sd = sampling_sd(mean, second, n) if sampled else np.zeros(n_draws)
    found = Objective(smallest, mean if logged else None, sd, lower, p_best_sum / n, error / n)
    return with_violations(found, judged, criterion)


def sampling_sd(
    mean: NDArray[np.float64], second: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    """Return the sampling error of means over ``n`` rounds, from the sums of squares."""
    if n < 2:
        return np.zeros(len(mean))
    return np.asarray(np.sqrt(np.maximum(second / n - mean**2, 0) / (n - 1)))


def with_violations(
    found: Objective,
    judged: Iterable[tuple[JudgedRounds, Rewards]],
    criterion: Criterion,
    whole: JudgedRounds | None = None,
) -> Objective:
    """Return the audit with its violating rounds per draw.

    ``whole``: all rounds, where those to look at come in parts of one log; default the first ones.
    """
    total: Violations | None = None
    counted, used = True, slice(None)
    for rounds, rewards in judged:
        if total is None:  # the same draws for all rounds
            used = draws_used(whole or rounds, rewards.batch_shape[0])
        here = violations_under(rounds, rewards[used], criterion)
        total, counted = here if total is None else total.merged(here), counted and rounds.exact
    if total is None or found.smallest_eps2 is None:
        return found
    if not counted:
        # where the rounds that were looked at all keep to the criterion, one of the others does not
        unfair = found.smallest_eps2[used, criterion.grid_index] > criterion.certain
        total = total._replace(n=np.where(unfair, np.maximum(total.n, 1.0), 0.0))
    return replace(found, violations=total, counted=counted)


def _needed(part: Part, criterion: Criterion, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smallest eps2 per draw and eps1, in batches of draws that fit in memory."""
    assert isinstance(part.cell, FullCell)
    rewards, maxima = part.rewards, part.cell.maxima
    symmetric = np.array_equal(maxima, maxima.T)
    if isinstance(rewards, Bernoulli) and criterion.reward_divergence in _OF_MEANS and symmetric:
        return smallest_allowance(maxima, rewards.mean, grid)
    n, size = rewards.batch_shape[0], max(1, _PAIRS_AT_ONCE // rewards.n_arms**2)
    found = [
        smallest_allowance(
            maxima, rewards[a : a + size].divergence(criterion.reward_divergence), grid
        )
        for a in range(0, n, size)
    ]
    return np.concatenate(found)


def parts_from_cells(cells: Cells, rewards: Rewards, k: int) -> list[Part]:
    """Return one part per set of arms on offer; where no round is judged, one without rounds."""
    if not cells:
        return [Part(None, 0, rewards)]
    return [
        Part(
            cell,
            cell.n_rounds,
            rewards,
            None if key == b"" else np.frombuffer(key, dtype=bool, count=k),
        )
        for key, cell in cells.items()
    ]


def with_draw_axis(rewards: Rewards) -> Rewards:
    """Return rewards with a leading draw axis of length 1 where they have no batch."""
    if rewards.batch_shape:
        return rewards
    new = object.__new__(type(rewards))
    for name in rewards.__dataclass_fields__:
        value = getattr(rewards, name)
        if name in rewards._parameters and value is not None:
            value = value[None]
        object.__setattr__(new, name, value)
    return new
