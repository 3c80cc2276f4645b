"""Regret of a slot's law against P*: of the law itself, of shares in windows, or estimated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayesfair.audit.duels.beliefs import Path
from bayesfair.audit.duels.law import Law, Windows
from bayesfair.audit.duels.truth import Truth
from bayesfair.audit.log.intervals import Estimate, mean_interval
from bayesfair.base.checks import as_generator
from bayesfair.base.estimates import interval
from bayesfair.comparisons import DuelLog
from bayesfair.errors import DataError
from bayesfair.typing import Flags, Floats, Ints

__all__ = ["Regrets", "Weights", "regret_per_draw", "regrets", "shares"]


@dataclass(frozen=True)
class Weights:
    """Weights P*/probability of the items on the left; their mean is at most 1.

    Attributes
    ----------
    n : int
    mean, sd, largest : float
    effective_size : float
    """

    n: int
    mean: float
    sd: float
    largest: float
    effective_size: float


@dataclass(frozen=True, eq=False)
class Regrets:
    """Mean regret per duel, and what P* was.

    Attributes
    ----------
    subjective, objective : Estimate
        Upper limits are NaN where there is none.
    believed, true : (k,) arrays
        P* of each item, mean over the judged duels (and draws).
    of_shares : float
        Under the beliefs, of the law's shares, whatever else is known.
    weights : Weights or None
        Where single probabilities were logged.
    """

    subjective: Estimate
    objective: Estimate
    believed: Floats
    true: Floats
    of_shares: float
    weights: Weights | None = None


def regrets(log: DuelLog, law: Law, path: Path, truth: Truth) -> Regrets:
    """Return the regret under the beliefs of each duel, and under the true worths.

    The mean law of a window bounds the mean regret from below; so does that of the whole log, with
    less noise. Where the probability of the item on the left is known, an estimate takes its place.
    """
    windows, draws = law.windows, truth.log_worth
    total, believed, share = 0.0, np.zeros(log.n_items), _on_offer(windows)
    for a, b, ends in path.stretches():
        rows, length = windows.overlapping(a, b)
        found, held = regret_per_draw(share[rows], length, ends[:1])
        total += float(found[0])
        believed += held * length.sum()
    n = path.end - int(path.start[0])
    per_draw, true = regret_per_draw(share, windows.length, draws)
    per_draw = per_draw / windows.length.sum()
    mean, of_shares, weights = float(per_draw.mean()), total / n, None
    if law.propensity is not None:
        subjective, objective, weights = _estimated(log, law.propensity, path, truth)
    elif law.logged:
        subjective = Estimate(of_shares, of_shares, of_shares, True)
        objective = Estimate(mean, mean, mean, True)
        if not truth.known:
            objective = Estimate(mean, *interval(per_draw), False)
    else:
        bounds = [_shortfall(part, draws) for part in (windows, law.whole) if part is not None]
        lower = interval(np.maximum.reduce(bounds))[0]
        subjective = Estimate(of_shares, _believed_shortfall(windows, path), np.nan, False)
        objective = Estimate(mean, lower, np.nan, False)
    return Regrets(subjective, objective, believed / n, true, of_shares, weights)


def shares(log_worth: Floats, on: Flags) -> Floats:
    """Return worths among the items on offer, ``(n, sum(on))``."""
    part = log_worth[:, on]
    worth = np.exp(part - part.max(axis=1, keepdims=True))
    return np.asarray(worth / worth.sum(axis=1, keepdims=True))


# -- of shares -------------------------------------------------------------------------------------


def regret_per_draw(rows: Floats, length: Floats, log_worth: Floats) -> tuple[Floats, Floats]:
    """Return the total regret per draw, and the P* mass of each item averaged over rounds.

    The sum over rounds of max(p - pi, 0) is convex and piecewise linear in p: one sort per item and
    set of items on offer, then a search per draw.
    """
    total = np.zeros(len(log_worth))
    mass = np.zeros(rows.shape[1])
    on_offer, which = np.unique(~np.isnan(rows), axis=0, return_inverse=True)
    for s, on in enumerate(on_offer):
        if not on.any():
            continue
        at = which.ravel() == s
        share = shares(log_worth, on)
        mass[on] += share.mean(axis=0) * length[at].sum()
        for p, item in zip(share.T, np.flatnonzero(on), strict=True):
            order = np.argsort(rows[at, item])
            pi, weight = rows[at, item][order], length[at][order]
            below = np.concatenate([[0.0], np.cumsum(weight)])
            area = np.concatenate([[0.0], np.cumsum(weight * pi)])
            n = np.searchsorted(pi, p, side="right")
            total += p * below[n] - area[n]
    return np.maximum(total, 0.0), mass / length.sum()


def _on_offer(law: Windows) -> Floats:
    """Return shares among the items on offer throughout a window."""
    if law.logged:
        return law.share
    total = np.nansum(law.share, axis=1, keepdims=True)
    return np.asarray(law.share / np.where(total > 0, total, 1.0))


def _shortfall(law: Windows, log_worth: Floats) -> Floats:
    """Return a lower limit of the mean regret per draw: shortfalls below P* that are certain."""
    total = np.zeros(len(log_worth))
    for upper, n in zip(law.upper, law.length, strict=True):
        if not np.isnan(upper).any():  # else the slot is shared with items that came or went
            every = np.ones(len(upper), bool)
            total += n * np.maximum(shares(log_worth, every) - upper, 0.0).sum(axis=1)
    return np.asarray(total / law.length.sum())


def _believed_shortfall(law: Windows, path: Path) -> float:
    """Return a lower limit of the mean regret: shortfalls from the mean P* that are certain."""
    total, every = 0.0, np.ones(law.n_items, bool)
    for begin, end, upper in zip(law.start, law.stop, law.upper, strict=True):
        if np.isnan(upper).any():
            continue  # the slot is shared with items that came or went
        least = np.zeros(law.n_items)
        for a, b, ends in path.stretches():
            n = max(min(b, end) - max(a, begin), 0)
            least += n * shares(ends, every).min(axis=0)
        total += float(np.maximum(least - (end - begin) * upper, 0.0).sum())
    return total / float(law.length.sum())


# -- estimated -------------------------------------------------------------------------------------


def _estimated(
    log: DuelLog, propensity: Floats, path: Path, truth: Truth
) -> tuple[Estimate, Estimate, Weights]:
    r"""Return both regrets and the weights, from the probabilities of the items on the left.

    With :math:`\pi` the law of the item on the left, :math:`\sum_i \max(P^*_i - \pi_i, 0) =
    E_{i \sim \pi} \max(1 - P^*_i / \pi_i, 0)`: an unbiased mean of terms in [0, 1]. Probabilities
    of whole pairs do not serve: :math:`\pi_i` is a sum over opponents, of whom one was seen.
    """
    first = int(path.start[0])
    n = log.n_rounds - first
    total, squares = np.zeros((2, len(truth.log_worth)))
    for part, on in _parts(log, path.start[:1]):
        found = _sums(log.left[part], propensity[part], shares(truth.log_worth, on), on)
        total += found[0]
        squares += found[1]
    if truth.known:  # only sampling varies
        objective = mean_interval(n, float(total[0]), float(squares[0]))
    else:  # the posterior of the worths and the sampling of duels together
        means = total / n
        spread = np.sqrt(np.maximum(squares / n - means**2, 0.0) / max(n - 1, 1))
        noise = as_generator(truth.seed).standard_normal(len(means))
        low, high = np.clip(interval(means + spread * noise), 0.0, 1.0)
        objective = Estimate(float(means.mean()), float(low), float(high), False)
    weight = np.empty(log.n_rounds)
    for part, on in _parts(log, path.start):
        g = int(np.searchsorted(path.start, part.start, side="right")) - 1
        p_best = np.zeros(log.n_items)
        p_best[on] = shares(path.log_worth[g : g + 1], on)[0]
        weight[part] = p_best[log.left[part]] / propensity[part]
    weight = weight[first:]
    terms = np.maximum(1.0 - weight, 0.0)
    subjective = mean_interval(n, float(terms.sum()), float((terms**2).sum()))
    size = float(weight.sum() ** 2 / (weight**2).sum())
    held = Weights(n, float(weight.mean()), float(weight.std()), float(weight.max()), size)
    return subjective, objective, held


def _parts(log: DuelLog, cuts: Ints) -> Iterator[tuple[slice, Flags]]:
    """Yield stretches of rounds from the first of `cuts` on, and which items are on offer there.

    They end at the `cuts`, too. Without `offered`, items that came or went count from their first
    to their last duel.
    """
    n = log.n_rounds
    if log.offered is not None:
        there = log.offered[np.arange(n), log.left]
        if not there.all():
            t = int(np.argmin(there))
            item = log.items[log.left[t]]
            raise DataError(
                f"round {t}: {item!r} was compared, but offered= says that it was not on offer. "
                "Correct offered=.",
                kind="not_offered",
                column="offered",
                value=item,
            )
        moves = np.flatnonzero((log.offered[1:] != log.offered[:-1]).any(axis=1)) + 1
    else:
        first, last = log.seen()
        first = np.where(first > n / 20, first, 0)
        last = np.where((last >= 0) & (last < 0.95 * n), last, n - 1)
        moves = np.concatenate([first, last + 1])
    starts = np.union1d(cuts, moves[(moves > cuts[0]) & (moves < n)]).astype(np.int64)
    for a, b in zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True):
        on = (first <= a) & (last >= a) if log.offered is None else log.offered[a]
        yield slice(a, b), on


def _sums(left: Ints, propensity: Floats, share: Floats, on: Flags) -> tuple[Floats, Floats]:
    """Return the sums of max(1 - p / pi, 0) and of its squares over rounds, per draw of p.

    One sort per item and a search per draw: cost is rounds + draws.
    """
    total, squares = np.zeros((2, len(share)))
    for p, item in zip(share.T, np.flatnonzero(on), strict=True):
        inverse = np.sort(1.0 / propensity[left == item])
        if not inverse.size:
            continue
        once = np.concatenate([[0.0], np.cumsum(inverse)])
        twice = np.concatenate([[0.0], np.cumsum(inverse**2)])
        m = np.searchsorted(inverse, 1.0 / np.maximum(p, 1e-300))
        total += m - p * once[m]
        squares += m - 2 * p * once[m] + p**2 * twice[m]
    return total, squares
