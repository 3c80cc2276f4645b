"""What has to be known beside the numbers of an audit of duels."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.duels.judge import Judged
from bayesfair.audit.duels.law import Law, Windows
from bayesfair.audit.duels.regret import Weights
from bayesfair.audit.log.checks import LEVEL, Check
from bayesfair.audit.log.intervals import excess_probability
from bayesfair.base.checks import counted, listed
from bayesfair.base.notices import Notice
from bayesfair.comparisons import DuelLog

__all__ = ["choices_check", "duel_findings", "propensities_check", "sides_unknown"]


def duel_findings(log: DuelLog, law: Law, judged: Judged, criterion: Criterion) -> list[Notice]:
    """Return the notices of a log and of its verdict."""
    found = _slot(log)
    found += _never_shown(log, law.windows)
    if not law.logged:
        found += [*(_came_or_went(log) if len(law.windows.start) > 1 else []), *_windows(law)]
    return [*found, *_not_judged(log, criterion), *_cannot_fail(law.windows, judged, criterion)]


def _slot(log: DuelLog) -> list[Notice]:
    """Say what the choice of slot implies."""
    if log.slot != "mean" or (log.left == log.right).any():
        return []
    return [
        Notice(
            "slot 'mean': a duel has two different items, so no item can have more than 1/2; "
            "regret stays positive if a worth exceeds that.",
            kind="mean_slot",
            column="slot",
        )
    ]


def sides_unknown(log: DuelLog) -> Notice:
    """Say why duels of winner and loser are judged by who took part."""
    given = "" if log.selection_probability is None else (
        " The probabilities of the log are taken to be such halves, too."
    )  # fmt: skip
    return Notice(
        "Winner and loser do not say who stood on the left, so that the law of the item there "
        "cannot be judged: slot 'mean' was taken, half the probability of taking part. With "
        f"columns left, right and winner slot 'first' can be judged.{given}",
        kind="sides_unknown",
        column="slot",
        value=log.slot,
    )


def choices_check(log: DuelLog) -> tuple[Check, list[Notice]]:
    """Compare how often each item filled the slot with the sum of its probabilities."""
    if log.selection_probability is None:
        return Check(reason="The law of the slot was not logged."), []
    if log.slot == "mean" and (log.left == log.right).any():
        return Check(reason="Items were compared with themselves."), []
    scale = 1 if log.slot == "first" else 2
    p = np.clip(np.nan_to_num(log.selection_probability) * scale, 0.0, 1.0)
    expected, variance = p.sum(axis=0), (p * (1 - p)).sum(axis=0)
    taken = log.taken(slice(None))
    excess = taken - expected
    certain = (variance <= 1e-9) & (np.abs(excess) < 0.5)
    at = np.flatnonzero(~certain)
    if not at.size:
        return Check(reason="Every choice was certain, as logged."), []
    # of two items one is chosen as often too much as the other too little
    looks = 1 if log.n_items == 2 else at.size
    found = [excess_probability(abs(float(excess[i])), float(variance[i]), 1.0) for i in at]
    by_chance = np.minimum([2 * probability * looks for probability, _ in found], 1.0)
    worst = int(np.argmin([probability for probability, _ in found]))
    i = int(at[worst])
    z = float(excess[i] / np.sqrt(max(float(variance[i]), 1e-12)))
    least = float(by_chance[worst])
    check = Check(least >= LEVEL, z, least, LEVEL, found[worst][1], log.items[i], int(taken[i]))
    if check.passed:
        return check, []
    n_bad = int((by_chance < LEVEL).sum())
    return check, [
        Notice(
            f"the logged probabilities do not match the duels: {log.items[i]!r} filled the slot "
            f"{int(taken[i])} times, expected {expected[i]:.1f} (z = {z:.1f}; {n_bad} of "
            f"{log.n_items} items below p = {LEVEL:g}). Check sides, missing rows and logging.",
            kind="choices",
            value=z,
            n=int(taken[i]),
        )
    ]


def propensities_check(weights: Weights) -> tuple[Check, list[Notice]]:
    """Test whether the logged probabilities of the items on the left are too small."""
    mean = weights.mean
    excess = (mean - 1) / max(weights.sd / math.sqrt(weights.n), 1e-12)
    probability = float(ndtr(-excess))
    failed = probability < LEVEL and mean > 1 + 1e-9
    check = Check(not failed, float(excess), probability, LEVEL, "normal", None, weights.n)
    if not failed:
        return check, []
    return check, [
        Notice(
            f"the logged probabilities are too small: the mean of P*/probability is {mean:.3f}, at "
            f"most 1 is expected (z = {excess:.1f}). Check the column: it must be the probability "
            "of the left item, not of the pair.",
            kind="propensities",
            column="propensity",
            value=mean,
            n=weights.n,
        )
    ]


def _came_or_went(log: DuelLog) -> list[Notice]:
    """Say which items were not compared from the beginning to the end."""
    if log.offered is not None:
        return []
    first, last = log.seen()
    n = log.n_rounds
    moved = [
        log.items[i] for i in range(log.n_items) if first[i] > n / 20 or 0 <= last[i] < 0.95 * n
    ]
    if not moved:
        return []
    return [
        Notice(
            f"{counted(len(moved), 'item')} came or went: {listed(moved, 5)} (no duel in the first "
            "or the last twentieth of the log). They are held to the windows between their first "
            "and last duel; where it is known when they were on offer, a DuelLog takes that as "
            "offered.",
            kind="came_or_went",
            n=len(moved),
        )
    ]


def _never_shown(log: DuelLog, windows: Windows) -> list[Notice]:
    """Name the items of which the log says nothing: in no duel, and never known to be on offer."""
    absent = np.isnan(windows.share).all(axis=0) & (log.seen()[1] < 0)
    never = [log.items[i] for i in np.flatnonzero(absent)]
    if not never:
        return []
    return [
        Notice(
            f"{listed(never, 5)} took part in no duel of the log, and nothing says that "
            f"{'it was' if len(never) == 1 else 'they were'} on offer: the verdict and P* are "
            "about the other items. Where it could have been shown, columns of probabilities say "
            "so, and a DuelLog takes it as offered.",
            kind="never_shown",
            value=never[0],
            n=len(never),
        )
    ]


def _windows(law: Law) -> list[Notice]:
    """Say what shares in windows can show."""
    n, estimated = len(law.windows.start), law.propensity is not None
    found = [
        Notice(
            f"The law of the slot was not given: shares of the slot in {counted(n, 'window')} of "
            f"about {int(np.median(law.windows.length))} duels stand for it. Limits are "
            "simultaneous 95 % (Clopper-Pearson). A window is held against the mean of the bounds "
            "of its duels, which its mean law keeps to if every duel does: 'unfair' is shown for "
            "some duel, 'fair' speaks of the windows' means, not of each duel.",
            kind="windows",
            n=n,
        )
    ]
    if estimated:
        found.append(
            Notice(
                "Only the probability of the item on the left was logged: the regret is an "
                "unbiased estimate with a 95 % interval; smooth fairness compares items, so shares "
                "in windows stand for probabilities there.",
                kind="left_probability_only",
            )
        )
    else:
        found.append(
            Notice(
                "Regret from shares is that of the windows' means: sampling noise raises it, "
                "variation within windows lowers it. The lower limit is one of the mean regret; "
                "there is no upper one.",
                kind="regret_from_shares",
            )
        )
    return found


def _not_judged(log: DuelLog, criterion: Criterion) -> list[Notice]:
    """Say which duels served the beliefs alone."""
    first = criterion.from_round
    if not first:
        return []
    return [
        Notice(
            f"The {counted(first, 'duel')} before duel {first} served the beliefs alone "
            f"(from_round={first}): verdicts and regret are of the "
            f"{counted(log.n_rounds - first, 'duel')} from there on.",
            kind="from_round",
            column="from_round",
            value=first,
            n=first,
        )
    ]


def _cannot_fail(windows: Windows, judged: Judged, criterion: Criterion) -> list[Notice]:
    """Say that no pair of items differs by more than eps2 allows, whatever their worths."""
    largest = float(judged.believed.high[criterion.grid.index(0.0)])
    if windows.most_offered < 2 or largest > criterion.allowed:
        return []
    what = (
        f"in no duel do the slot's probabilities of two items on offer differ by more than "
        f"{largest:.4g}"
        if windows.logged
        else f"in no window can the mean probabilities of two items differ by more than "
        f"{largest:.4g}"
    )
    return [
        Notice(
            f"This criterion cannot fail here: {what}, and eps2 = {criterion.eps2:g} allows that "
            "even to items of the same worth. The verdict says nothing about how the chances "
            f"follow the worths; the fairness regret, {judged.regrets.of_shares:.4f} per duel, "
            "does.",
            kind="cannot_fail",
            column="eps2",
            value=largest,
            n=int(windows.length.sum()),
        )
    ]
