"""The objective audit where the true rewards are known and change from round to round."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.pairs import find_pairs
from bayesfair.audit.log.violations import Violations
from bayesfair.audit.truth.objective import Objective
from bayesfair.errors import DataError
from bayesfair.history import History
from bayesfair.rewards import Rewards

__all__ = ["objective_by_round"]

_PAIRS_AT_ONCE = 2_000_000


def objective_by_round(data: History, truth: Rewards, criterion: Criterion) -> Objective:
    """Audit every round against the true rewards of that round.

    Parameters
    ----------
    data : History
        The whole log.
    truth : Rewards
        Batch shape (n_rounds,): the true laws in each round.
    criterion : Criterion
        What is asked.

    Raises
    ------
    DataError
        If the truth has another batch shape, or `data` is a scan.
    """
    n_rounds = data.n_rounds if isinstance(data, History) else None
    if n_rounds is None or truth.batch_shape != (n_rounds,):
        asked = "a whole log (read_history)" if n_rounds is None else f"{n_rounds} rounds"
        raise DataError(
            f"truth holds a batch of shape {truth.batch_shape}: give one set of arms, or one for "
            f"each round of {asked}."
        )
    skipped = min(criterion.from_round, n_rounds)
    data, truth, n_rounds = data.rounds(skipped, n_rounds), truth[skipped:], n_rounds - skipped
    if not n_rounds:
        return Objective(None, None, np.zeros(1), None, np.zeros((1, truth.n_arms)), 0.0)
    best = np.nan_to_num(truth.best_arm_probability(offered=data.offered), nan=0.0)
    size = max(1, _PAIRS_AT_ONCE // truth.n_arms**2)

    def divergences() -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        for a in range(0, n_rounds, size):
            b = min(a + size, n_rounds)
            yield a, b, truth[a:b].divergence(criterion.reward_divergence)

    pi, propensity = data.selection_probability, data.propensity
    smallest = regret = lower = violations = None
    sampling = np.zeros(1)
    if pi is not None:
        found, _, _ = find_pairs(pi, divergences(), criterion)
        smallest = found.frontier[None]
        counts = (found.n_violating, found.first_violating, found.last_violating)
        violations = Violations(*(np.array([criterion.count_at(c)]) for c in counts))
        violations = violations.shifted(skipped)
        regret = np.maximum(best - np.nan_to_num(pi), 0.0).sum(axis=1).mean(keepdims=True)
    elif propensity is not None:
        # unbiased: both vectors sum to 1, so the shortfall is the mean of the excess over pi
        terms = np.maximum(1 - best[np.arange(n_rounds), data.arm] / propensity, 0.0)
        regret = terms.mean(keepdims=True)
        if n_rounds > 1:
            sampling = np.sqrt(terms.var(keepdims=True) / (n_rounds - 1))
    else:
        shares = np.bincount(data.arm, minlength=truth.n_arms) / n_rounds
        lower = np.maximum(best.mean(axis=0) - shares, 0.0).sum(keepdims=True)
    return Objective(
        smallest, regret, sampling, lower, best.mean(axis=0, keepdims=True), 0.0, violations
    )
