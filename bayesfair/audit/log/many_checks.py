"""Tests that many logs may fail, on all of them at once: never fewer than `checks` finds in each.

A log that may fail one is audited by itself, which says whether it does, and in which words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from bayesfair.audit.log.checks import LEVEL
from bayesfair.audit.log.intervals import mean_above_one
from bayesfair.audit.log.state import AuditState
from bayesfair.history.logs import Together
from bayesfair.kernels.log.guards import RuleSums, row_prints, window_prints
from bayesfair.kernels.log.many import ManyResults
from bayesfair.typing import Flags, Floats, Ints

__all__ = ["Weights", "steady_arms", "unusual"]

_MARGIN = 1.01  # what rounding may do to a probability near the level of a test


class Weights(NamedTuple):
    """Sums over the weights w = P*_a/pi_a of the choices of each log, (G,) each.

    Attributes
    ----------
    shortfall, shortfall_squares : array
        Of max(1 - w, 0), the unbiased terms of the regret, and of its square.
    effective_size : array
        (sum w)^2 / sum w^2.
    too_small : array of bool
        Whether the mean of w may be significantly above 1.
    hardly_chosen : array of bool
        Whether it is significantly below 1.
    """

    shortfall: Floats
    shortfall_squares: Floats
    effective_size: Floats
    too_small: Flags
    hardly_chosen: Flags

    @classmethod
    def of(cls, whole: Together, found: ManyResults) -> Weights:
        """Return those of logs with the chosen arms' probabilities."""
        assert whole.rounds.propensity is not None
        w = found.best_chosen / whole.rounds.propensity
        lack = np.maximum(1.0 - w, 0.0)
        total, squares, short, short_squares = (
            np.add.reduceat(terms, whole.bounds[:-1]) for terms in (w, w * w, lack, lack * lack)
        )
        t, p = mean_above_one(whole.n_rounds, total, squares)
        size = np.divide(total**2, squares, out=np.full(len(t), np.nan),
                         where=squares > 0)  # fmt: skip
        return cls(short, short_squares, size, p < LEVEL * _MARGIN, (t < 0) & (1 - p < LEVEL))


def steady_arms(found: ManyResults) -> Flags:
    """Return whether an arm had one probability throughout, as `checks.is_steady`, (G, k)."""
    n = np.maximum(found.tallies[:, 1], 1)
    mean = found.sums[:, 1] / n
    off = np.abs(found.sums[:, 2] - n * mean * (1 - mean))
    return np.asarray(off <= 1e-9 * np.maximum(found.sums[:, 2], 1e-300))


@np.errstate(divide="ignore", invalid="ignore")
def unusual(
    whole: Together, found: ManyResults, start: AuditState, weights: Weights | None
) -> Flags:
    """Return which logs may fail a test of `bayesfair.audit.log.checks`.

    Parameters
    ----------
    whole : Together
        The logs.
    found : ManyResults
        Of them.
    start : AuditState
        Beliefs before each.
    weights : Weights or None
        Where only the chosen arms' probabilities were logged.
    """
    bad = _repeats(whole)
    if whole.rounds.selection == "none":
        return bad
    bad |= found.sums.shape[2] * _context(found) < LEVEL * _MARGIN
    if weights is not None:
        return bad | weights.too_small | _chosen_unusual(whole, found)
    rule = dict(zip(RuleSums._fields, found.rule.T, strict=True))
    strength = 2 * _least(np.abs(rule["slope"]), rule["slope_variance"], rule["slope_step"])
    sticky = 2 * _least(np.abs(rule["same"]), rule["same_variance"], np.ones(len(found.rule)))
    # the bound on how far P* moves by what was learned, as `checks.best_moved`
    before = start.beliefs.parameters.sum(axis=1)
    learned = special.digamma(before + found.moments.n + 1) - special.digamma(before + 1)
    far = rule["moved"] > 9.9 * learned.sum(axis=1)
    bad |= _choices(found) < LEVEL * _MARGIN
    bad |= np.where(rule["slope_variance"] > 1e-9, strength, 1) < LEVEL * _MARGIN
    bad |= np.where(rule["same_variance"] > 1e-9, sticky, 1) < LEVEL * _MARGIN
    return np.asarray(bad | far & (rule["n_steps"] > 0))


def _chosen_unusual(whole: Together, found: ManyResults) -> Flags:
    """Return which logs may fail a test of the chosen arms' probabilities alone."""
    p, arm, starts = whole.rounds.propensity, whole.rounds.arm, whole.bounds[:-1]
    assert p is not None
    plays, rounds = found.tallies[:, 0], found.tallies[:, 1]
    owner = np.repeat(np.arange(len(plays)), whole.n_rounds)
    place = owner * plays.shape[1] + arm
    lowest, highest = np.full(plays.size, np.inf), np.full(plays.size, -np.inf)
    np.minimum.at(lowest, place, p)
    np.maximum.at(highest, place, p)
    low, high = lowest.reshape(plays.shape), highest.reshape(plays.shape)
    inverse, variance = (
        np.bincount(place, weights=terms, minlength=plays.size).reshape(plays.shape)
        for terms in (1 / p, (1 - p) / p**2)
    )
    chosen = plays > 0
    steady = chosen & (high - low <= 1e-9) & (high < 1)
    tested = steady | (chosen & (variance > 0))
    exact = special.bdtrc(np.maximum(plays - 1, 0), rounds, np.where(steady, high, 0.5))
    step = np.where(chosen, 1 / low, 1.0)
    often = np.where(steady, exact, _least(inverse - rounds, variance, step))
    often = np.where(tested, often, 1.0).min(axis=1) * np.maximum(tested.sum(axis=1), 1)
    same = np.append(False, (owner[1:] == owner[:-1]) & (arm[1:] == arm[:-1]))
    excess = np.add.reduceat(same / p, starts) - (whole.n_rounds - 1)
    spread = np.add.reduceat(same * (1 - p) / p**2, starts)
    sticky = _least(excess, spread, 1 / np.minimum.reduceat(p, starts))
    bad = np.where(spread > 1e-9, sticky, 1.0) < LEVEL * _MARGIN
    return np.asarray(bad | (often < LEVEL * _MARGIN))


def _least(excess: Floats | Ints, variance: Floats, step: Floats) -> Floats:
    """Return no more than `excess_probability` does."""
    excess, safe = np.maximum(excess, 0.0), np.maximum(variance, 1e-300)
    bound = np.exp(-(excess**2) / (2 * (safe + step * excess / 3)))
    tail = special.ndtr(-excess / np.sqrt(safe))
    fine = step <= 0.1001 * np.sqrt(safe)
    return np.asarray(np.where(excess <= 0, 1.0, np.where(fine, np.minimum(bound, tail), bound)))


def _choices(found: ManyResults) -> Floats:
    """Return the smallest p-value over the arms of a log, times how many were looked at, (G,)."""
    plays, rounds = found.tallies[:, 0], found.tallies[:, 1]
    expected, variance = found.sums[:, 1], found.sums[:, 2]
    off = np.abs(plays - expected)
    share = np.clip(expected / np.maximum(rounds, 1), 0, 1)
    below = np.where(plays < rounds, special.bdtr(plays, rounds, share), 1.0)
    above = np.where(plays > 0, special.bdtrc(plays - 1, rounds, share), 1.0)
    p = 2 * _least(off, variance, np.ones_like(off))
    p = np.where(steady_arms(found), 2 * np.minimum(below, above), p)
    normal = 2 * special.ndtr(-off / np.sqrt(np.maximum(variance, 1e-300)))
    p = np.where(variance >= 99, np.minimum(p, normal), p)
    tested = ~((variance <= 1e-9) & (off < 0.5))
    looks = tested.sum(axis=1)
    p = np.where(tested, p, 1.0)
    return np.asarray(p.min(axis=1) * np.where(looks == 2, 1, np.maximum(looks, 1)))


def _context(found: ManyResults) -> Floats:
    """Return the smallest p-value over the arms of a log, (G,)."""
    m = found.moments
    scale = np.sqrt(m.reward_squares / np.maximum(m.n, 1) * m.probability_squares)
    varies = (m.probability_high - m.probability_low > 1e-12) & (m.reward_high > m.reward_low)
    z = np.where(varies, m.products / scale, 0.0)
    mean = m.origin + m.reward
    step = np.maximum(m.reward_high - mean, mean - m.reward_low) * np.maximum(
        m.probability_high - m.probability, m.probability - m.probability_low
    )
    fine = step <= 0.2001 * scale
    coarse = _least(z, np.ones_like(z), np.where(varies, step / scale, 1.0))
    p = np.where(fine, np.minimum(special.ndtr(-z), coarse), coarse)
    return np.asarray(np.where(varies & (z > 0), p, 1.0).min(axis=1))


def _repeats(whole: Together) -> Flags:
    """Return in which logs some window of rows stands twice."""
    rounds, n_logs = whole.rounds, len(whole.bounds) - 1
    chosen = rounds.propensity
    if rounds.selection_probability is not None:
        places = rounds.arm[:, None].astype(np.intp)
        chosen = np.take_along_axis(rounds.selection_probability, places, axis=1)[:, 0]
    prints = window_prints(row_prints(rounds.arm, rounds.reward, chosen))
    owner = np.repeat(np.arange(n_logs), whole.n_rounds)
    width = rounds.n_rounds - len(prints)
    within = owner[: len(prints)] == owner[width : width + len(prints)]
    prints, owner = prints[within], owner[: len(within)][within]
    order = np.lexsort((prints, owner))
    again = (np.diff(owner[order]) == 0) & (prints[order][1:] == prints[order][:-1])
    bad = np.zeros(n_logs, bool)
    bad[owner[order][1:][again]] = True
    return bad
