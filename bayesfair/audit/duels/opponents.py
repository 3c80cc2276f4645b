"""Whom items met: what the slot's law leaves open, compared between items of like worth."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.duels.law import Windows
from bayesfair.audit.duels.truth import Truth
from bayesfair.base.notices import Notice
from bayesfair.comparisons import DuelLog
from bayesfair.kernels.laws.races import race_total_variation
from bayesfair.typing import Floats

__all__ = ["opponent_distances", "opponent_findings"]


_ALPHA = 0.05  # chance that any pair of items is accused by sampling noise
_TOLD_APART = 0.95  # probability of an order from which two items count as told apart
_MOST = 1 << 29  # comparisons of rounds with items that are looked at


def opponent_findings(
    log: DuelLog, law: Windows, truth: Truth, criterion: Criterion
) -> list[Notice]:
    """Return a notice if items of like worth met others by laws further apart than eps2.

    Only noise is allowed for: where the laws of the pairs were not logged, a lower limit of the
    largest distance counts that holds for all pairs of items together with probability 95 %.
    """
    distance, lower = opponent_distances(log, law)
    i, j = np.triu_indices(log.n_items, 1)
    alike = _alike(truth, criterion)[i, j] & ~np.isnan(distance[i, j])
    i, j = i[alike], j[alike]
    if not i.size or np.max(lower[i, j]) <= criterion.allowed:
        return []
    p = int(np.argmax(lower[i, j]))
    a, b = log.items[i[p]], log.items[j[p]]
    apart, least = float(distance[i[p], j[p]]), float(lower[i[p], j[p]])
    seen = (
        "" if log.pair_probability is not None else f", at least {least:.2g} beyond sampling noise"
    )
    n = int((lower[i, j] > criterion.allowed).sum())
    return [
        Notice(
            f"{a!r} and {b!r}, whose worths cannot be told apart, met different opponents: the "
            f"laws of whom they met besides each other are {apart:.2g} apart in total variation"
            f"{seen} (1: nobody in common). The verdict is about how often an item fills the slot "
            f"and does not look at opponents; {n} of {i.size} such pairs of items are more than "
            f"eps2 = {criterion.eps2:g} apart.",
            kind="opponents",
            value=apart,
            n=n,
        )
    ]


def _alike(truth: Truth, criterion: Criterion) -> NDArray[np.bool_]:
    """Return which items cannot be told apart, ``(k, k)``."""
    worth = truth.log_worth
    if truth.known:
        distance = race_total_variation(worth[0][:, None] - worth[0])
        return np.asarray(criterion.eps1 * distance <= criterion.allowed)
    won: list[Floats] = [np.mean(worth[:, [i]] > worth, axis=0) for i in range(worth.shape[1])]
    better = np.stack(won)
    return np.asarray((better < _TOLD_APART) & (better.T < _TOLD_APART))


def opponent_distances(log: DuelLog, law: Windows) -> tuple[Floats, Floats]:
    """Return total variations of opponents' laws between items, and lower limits, ``(k, k)``.

    Item i's opponents and j's are compared over the rounds in which both were on offer, without
    the duels of i with j. NaN = one of them met nobody else then.

    Notes
    -----
    A distance of shares exceeds that of the laws in expectation by at most half the sum of their
    standard deviations; beyond that bounded differences (McDiarmid) allow for chance. Both hold for
    laws that change from round to round.
    """
    k = log.n_items
    met = _met(log, law)
    distance, lower = np.full((2, k, k), np.nan)
    n_pairs = k * (k - 1) / 2
    for i in range(k):
        others = np.arange(k) != i
        for j in range(i):
            third = others & (np.arange(k) != j)
            one, other = met[i][j, third], met[j][i, third]
            n = np.array([one.sum(), other.sum()])
            if not n.all():
                continue
            p, q = one / n[0], other / n[1]
            distance[i, j] = distance[j, i] = apart = np.abs(p - q).sum() / 2
            noise = 0.0
            if log.pair_probability is None:
                spread = sum(
                    np.sqrt(share * (1 - share) / size).sum()
                    for share, size in ((p, n[0]), (q, n[1]))
                )
                chance = math.sqrt(math.log(n_pairs / _ALPHA) * (1 / n).sum() / 2)
                noise = spread / 2 + chance
            lower[i, j] = lower[j, i] = max(apart - noise, 0.0)
    return distance, lower


def _met(log: DuelLog, law: Windows) -> list[Floats]:
    """Return for each item i how often it met o while j was on offer: entry [j, o]."""
    on = ~np.isnan(law.share)
    if log.pair_probability is not None:
        return _met_by_law(log.pair_probability, law, on)
    begin, k = int(law.start[0]), log.n_items
    left, right = log.left[begin:], log.right[begin:]
    window = np.repeat(np.arange(len(on)), law.stop - law.start)
    # of huge logs only items that never came or went
    steady = bool(on.all()) or left.size * k > _MOST
    found = []
    for i in range(k):
        at_left, at_right = left == i, right == i
        opponent = np.concatenate([right[at_left], left[at_right]])
        table = np.zeros((k, k))
        if steady:
            always = on.all(axis=0)
            table[always] = np.bincount(opponent, minlength=k) * always[i]
        elif opponent.size:
            order = np.argsort(opponent, kind="stable")
            where = np.concatenate([window[at_left], window[at_right]])[order]
            met, first = np.unique(opponent[order], return_index=True)
            both = (on[where] & on[where, i][:, None]).astype(np.float64)
            table[:, met] = np.add.reduceat(both, first, axis=0).T
        found.append(table)
    return found


def _met_by_law(pairs: Floats, law: Windows, on: NDArray[np.bool_]) -> list[Floats]:
    """Return what `_met` does, expected from the probabilities of pairs."""
    known = np.nan_to_num(pairs)
    both = known + known.swapaxes(-1, -2)
    if pairs.ndim == 2:
        sums = law.length[:, None, None] * both
    else:
        sums = np.add.reduceat(both, law.start, axis=0)
    seen = on.astype(np.float64)
    return [(seen * seen[:, [i]]).T @ sums[:, i] for i in range(law.n_items)]
