"""Audit of duels whose probabilities were not logged: shares in windows stand for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion, worst_verdict
from bayesfair.audit.duel_beliefs import beliefs_at
from bayesfair.audit.duel_bounds import (
    frontier_of,
    gaps,
    needed_of,
    regret_of,
    regret_per_draw,
    shares,
    smallest,
    verdict_of,
    worst_of,
    worst_pair,
)  # fmt: skip
from bayesfair.audit.duel_log import DuelRounds, Windows
from bayesfair.audit.duel_result import DuelAudit, Truth, named, slot_notices
from bayesfair.errors import DataError
from bayesfair.kernels.races import race_total_variation
from bayesfair.notices import Notice

__all__ = ["audit_windows"]

FloatArray = NDArray[np.float64]


def audit_windows(
    rounds: DuelRounds, criterion: Criterion, truth: Truth, windows: Windows, whole: Windows
) -> DuelAudit:
    """Return the audit of a log from its windows; see `audit_comparisons`.

    `whole` has windows as long as possible: a mean over more rounds bounds the largest gap and the
    mean regret from below as well, with less noise. Beliefs change, so they get the short ones.
    """
    eps1, at = np.array(criterion.grid), criterion.grid_index
    limit = criterion.eps2 + criterion.tolerance
    notices = list(slot_notices(rounds))
    pairs = (~np.isnan(windows.share)).sum(axis=1).max(initial=0)
    if pairs < 2:
        raise DataError(
            "no two items were on offer throughout a window. Give a smaller window=, or offered=."
        )
    low_gap, high_gap = _limit_gaps(windows)
    low_gap = np.maximum(low_gap, _limit_gaps(whole)[0])
    plug = gaps(windows.share)
    needed = smallest(plug, truth.log_worth, eps1)
    least = smallest(low_gap, truth.log_worth, eps1)
    most = smallest(high_gap, truth.log_worth, eps1)
    fair_low = float((most[:, at] <= limit).mean())
    fair_high = float((least[:, at] <= limit).mean())
    verdict = verdict_of(fair_low, fair_high, criterion)
    length = (windows.stop - windows.start).astype(np.float64)
    totals, p_best = regret_per_draw(_renormalised(windows.share), length, truth.log_worth)
    lower = np.maximum(
        _regret_limit(windows, length, truth.log_worth),
        _regret_limit(whole, (whole.stop - whole.start).astype(np.float64), truth.log_worth),
    )
    beliefs = beliefs_at(rounds, windows.start, truth.beliefs)
    believed = np.zeros(rounds.n_items)
    subjective_low, subjective_high = np.zeros(len(eps1)), np.zeros(len(eps1))
    worst: tuple[float, int, int, int] = (-1.0, 0, 0, 0)
    regret, believed_lower, violating = 0.0, 0.0, 0
    for w in range(len(length)):
        one = slice(w, w + 1)
        part = Windows(*(getattr(windows, name)[one] for name in
                         ("start", "stop", "share", "lower", "upper")))  # fmt: skip
        low, high = _limit_gaps(part)
        at_least = smallest(low, beliefs[one], eps1)[0]
        subjective_low = np.maximum(subjective_low, at_least)
        subjective_high = np.maximum(subjective_high, smallest(high, beliefs[one], eps1)[0])
        violating += int(length[w]) if at_least[at] > limit else 0
        i, j = worst_pair(low, beliefs[w], criterion.eps1)
        excess = float(low[i, j]) - criterion.eps1 * float(
            race_total_variation(beliefs[w, i] - beliefs[w, j])
        )
        if excess > worst[0]:
            i, j = (i, j) if part.share[0, i] >= part.share[0, j] else (j, i)
            worst = (excess, int(windows.start[w]), i, j)
        total, mass = regret_per_draw(_renormalised(part.share), length[one], beliefs[one])
        regret += float(total[0])
        believed += mass * length[w]
        believed_lower += float(_regret_limit(part, length[one], beliefs[one])[0]) * length[w]
    subjective_verdict = verdict_of(
        float(subjective_high[at] <= limit), float(subjective_low[at] <= limit), criterion
    )
    notices.append(
        f"The law of the slot was not given: shares of the slot in {len(length)} windows of "
        f"about {int(np.median(length))} duels stand for them. They can show unfairness; 'fair' "
        "would speak of the windows' means, not of each round. Limits are simultaneous 95 % "
        "(Clopper-Pearson)."
    )
    regret_mean = float(totals.mean()) / rounds.n_rounds
    notices.append(
        Notice(
            "Regret from shares is that of the windows' means: sampling noise raises it, variation "
            "within windows lowers it. lower is a lower limit of the mean regret; there is no "
            "upper.",
            kind="regret_from_shares",
        )
    )
    share = np.array([rounds.taken(slice(None))]).sum(axis=0) / rounds.n_rounds
    return DuelAudit.make(
        rounds,
        criterion,
        truth,
        verdict=worst_verdict(subjective_verdict, verdict),
        subjective={
            "smallest_eps2": float(subjective_low[at]),
            "worst": named(rounds, worst) if worst[0] > 0 else None,
            "n_violating_rounds": violating,
            "verdict": subjective_verdict,
        },
        objective={
            "probability_fair": None,
            "probability_fair_lower": fair_low,
            "probability_fair_upper": fair_high,
            "smallest_eps2": needed_of(least, needed, most, at),
            "worst": worst_of(
                rounds.items, low_gap, plug, truth.log_worth.mean(axis=0), criterion.eps1
            ),
            "verdict": verdict,
        },
        calibration={
            "subjective": regret_of(
                regret, regret / rounds.n_rounds, believed_lower / rounds.n_rounds, None, False
            ),
            "objective": regret_of(
                regret_mean * rounds.n_rounds,
                regret_mean,
                float(np.quantile(lower, 0.025)),
                None,
                False,
            ),
        },
        p_best=p_best,
        believed=believed / rounds.n_rounds,
        selection_mean=share * (1.0 if rounds.slot == "first" else 0.5),
        frontier=frontier_of(eps1, subjective_low, least, needed, most),
        windows=windows,
        notices=notices,
    )


def _limit_gaps(windows: Windows) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper limits of the largest |pi(i) - pi(j)| over windows, ``(k, k)``."""
    k = windows.share.shape[1]
    low, high = np.zeros((k, k)), np.zeros((k, k))
    for lower, upper in zip(windows.lower, windows.upper, strict=True):
        ahead = lower[:, None] - upper
        low = np.fmax(low, np.fmax(ahead, ahead.T))
        reach = upper[:, None] - lower
        high = np.fmax(high, np.fmax(reach, reach.T))
    np.fill_diagonal(low, 0.0)
    np.fill_diagonal(high, 0.0)
    return np.maximum(low, 0.0), np.maximum(high, 0.0)


def _renormalised(share: FloatArray) -> FloatArray:
    """Return shares among the items on offer throughout the window."""
    total = np.nansum(share, axis=1, keepdims=True)
    return np.where(np.isnan(share), np.nan, share / np.where(total > 0, total, 1.0))


def _regret_limit(windows: Windows, length: FloatArray, log_worth: FloatArray) -> FloatArray:
    """Return a lower limit of the mean regret per draw: shortfalls below P* that are certain."""
    total = np.zeros(len(log_worth))
    for upper, n in zip(windows.upper, length, strict=True):
        on = ~np.isnan(upper)
        # the slot is shared with items that came or went: compare within those on offer
        if not on.any() or not on.all():
            continue
        total += n * np.maximum(shares(log_worth, on) - upper[on], 0.0).sum(axis=1)
    return np.asarray(total / length.sum())
