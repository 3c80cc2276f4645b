"""Does the log agree with itself? Tests of what it says of its choices, each at level .001.

Every test asks whether something could have come about by chance if the log says the truth. Tails
are normal where the normal approximation is good, exact where the law is known, and Freedman's
bound else. `Check.p_value` has paid for the arms that were looked at.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bayesfair.audit.criterion import finite_or_text
from bayesfair.audit.log.contexts import within_contexts
from bayesfair.audit.log.intervals import (
    binomial_probability,
    excess_probability,
    mean_above_one,
)
from bayesfair.audit.log.summary import Summary
from bayesfair.families import FAMILIES
from bayesfair.kernels.log.conjugate import BeliefTable
from bayesfair.kernels.log.guards import RewardMoments

__all__ = [
    "CONTRADICTIONS",
    "LEVEL",
    "Check",
    "arm_checks",
    "best_moved",
    "context_scores",
    "contradictions",
    "is_steady",
    "log_checks",
]

LEVEL = 0.001
CONTRADICTIONS = (
    "choices", "strength", "propensities", "sticky", "sticky_users", "repeated_rows",
    "repeated_keys",
)  # fmt: skip
"""Checks that no true log fails but by chance."""

_GOOD_VARIANCE = 100.0
"""Of a count, from which its tails are taken as normal: those of both sides together are."""
_FINE = 0.2
"""Largest product over the standard deviation of their sum, for z of rewards on probabilities."""
_FAR = 10.0
_MOVES = 0.01
_EXACT = {
    "full": ("strength", "movement"),
    "chosen": ("choices", "propensities", "sticky", "sticky_users"),
    "none": (),
}
"""Checks whose sums Monte Carlo error of the probabilities moves, by what was logged."""
_SHARES = "It needs exact probabilities, and these are shares of draws (propensity_draws=)."
_NO_P = "No probabilities were logged."
_CERTAIN = "Every choice was certain, as logged."


class Check(NamedTuple):
    """One test of the log.

    Attributes
    ----------
    passed : bool or None
        None where there was nothing to test.
    statistic : float or None
        z, or how many.
    p_value : float or None
        Probability of this much by chance, at most.
    threshold : float
        Below this the test fails.
    method : str
        ``"normal"``, ``"student"``, ``"exact"``, ``"bound"`` or ``"count"``.
    arm : str or None
        The arm that it is about.
    n : int or None
        Plays, rows or rounds that it is about.
    row : int or None
        Round at which it begins (0-based).
    reason : str or None
        Why nothing was tested.
    """

    passed: bool | None = None
    statistic: float | None = None
    p_value: float | None = None
    threshold: float = LEVEL
    method: str | None = None
    arm: str | None = None
    n: int | None = None
    row: int | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values: the outcome, and what is known of the rest."""
        if self.passed is None:
            return {"passed": None, "reason": self.reason}
        found: dict[str, Any] = {
            "passed": self.passed,
            "statistic": finite_or_text(self.statistic),
            "p_value": finite_or_text(self.p_value),
            "threshold": self.threshold,
            "method": self.method,
            "arm": self.arm,
            "n": self.n,
            "round": self.row,
        }
        return {name: value for name, value in found.items() if value is not None}


def _untested(reason: str) -> Check:
    return Check(reason=reason)


def _judged(statistic: float, p: float, method: str, **more: Any) -> Check:
    p = min(p, 1.0)
    return Check(p >= LEVEL, statistic, p, LEVEL, method, **more)


def log_checks(summary: Summary) -> dict[str, Check]:
    """Return every test of a log by its name; a summary never changes, and is tested once."""
    known: dict[str, Check] | None = vars(summary).get("_checks")
    if known is not None:
        return known
    found = {
        "choices": _choices(summary),
        "strength": _strength(summary),
        "propensities": _propensities(summary),
        "sticky": _sticky(summary),
        "sticky_users": _sticky_users(summary),
        "repeated_rows": _repeated_rows(summary),
        "repeated_keys": _repeated_keys(summary),
        "context": _context(summary),
        "movement": _movement(summary),
    }
    if summary.criterion.propensity_draws is not None:
        found |= dict.fromkeys(_EXACT[summary.selection], _untested(_SHARES))
    object.__setattr__(summary, "_checks", found)
    return found


def contradictions(checks: dict[str, Check]) -> list[str]:
    """Return the names of the tests by which a log contradicts itself."""
    return [name for name in CONTRADICTIONS if checks[name].passed is False]


def _z(excess: float, variance: float) -> float:
    if variance > 0:
        return excess / math.sqrt(variance)
    return 0.0 if excess == 0 else math.copysign(math.inf, excess)


# -- choices against probabilities ---------------------------------------------------------------


def arm_checks(summary: Summary) -> list[Check]:
    """Return the test of each arm's choices, the most surprising first; p without correction."""
    found = _full_arms(summary) if summary.selection == "full" else _chosen_arms(summary)
    # rounding must not choose between two arms that mirror each other: too often comes first
    return sorted(found, key=lambda c: (float(f"{c.p_value or 0.0:.9e}"), -(c.statistic or 0.0)))


def _choices(summary: Summary) -> Check:
    found = arm_checks(summary)
    if not found:
        return _untested(_NO_P if summary.selection == "none" else _CERTAIN)
    # of two arms one is chosen as often too much as the other too little
    looks = 1 if summary.selection == "full" and len(found) == 2 else len(found)
    worst = found[0]
    assert worst.p_value is not None and worst.statistic is not None and worst.method is not None
    return _judged(worst.statistic, worst.p_value * looks, worst.method, arm=worst.arm, n=worst.n)


def _full_arms(summary: Summary) -> list[Check]:
    """Hold plays against the sum of the probabilities, on both sides."""
    sums, found = summary.sums, []
    steady = is_steady(summary)
    for i, arm in enumerate(summary.arms):
        n, expected = int(sums.plays[i]), float(sums.selection[i])
        variance, rounds = float(sums.selection_variance[i]), int(sums.n_offered[i])
        if (n_draws := summary.criterion.propensity_draws) is not None:
            variance *= (n_draws + 1) / (n_draws - 1)  # choices around shares around chances
        if variance <= 1e-9 and abs(n - expected) < 0.5:
            continue  # chosen always, or never, as logged
        z = _z(n - expected, variance)
        if variance >= _GOOD_VARIANCE:
            p, method = 2 * float(special.ndtr(-abs(z))), "normal"
        elif steady[i] and n_draws is None:
            share = min(max(expected / rounds, 0.0), 1.0)
            p, method = 2 * min(binomial_probability(n, rounds, share)), "exact"
        else:
            p, method = 2 * excess_probability(abs(n - expected), variance, 1.0)[0], "bound"
        found.append(Check(None, z, min(p, 1.0), LEVEL, method, arm, n))
    return found


def is_steady(summary: Summary) -> NDArray[np.bool_]:
    """Whether an arm had one probability in all rounds in which it was on offer."""
    sums = summary.sums
    n = np.maximum(sums.n_offered, 1)
    mean = sums.selection / n
    constant = n * mean * (1 - mean)
    off = np.abs(sums.selection_variance - constant)
    return np.asarray(off <= 1e-9 * np.maximum(sums.selection_variance, 1e-300))


def _chosen_arms(summary: Summary) -> list[Check]:
    """Ask whether an arm was chosen more often than its propensities allow.

    A deficit is no evidence: there may be rounds in which the arm had no chance.
    """
    sums, checks, found = summary.sums, summary.terms.chosen, []
    if checks is None:
        return []
    for i in np.flatnonzero(sums.plays).tolist():
        plays, n = int(sums.plays[i]), int(sums.n_offered[i])
        low, high = float(checks.lowest[i]), float(checks.highest[i])
        if high - low <= 1e-9 and high < 1:  # one constant probability: binomial
            variance = n * high * (1 - high)
            z = _z(plays - n * high, variance)
            p, method = binomial_probability(plays, n, high)[1], "exact"
        elif checks.variance[i] > 0:
            # each round adds 1/p if the arm is chosen: on average 1, if p is right
            excess, variance = float(checks.inverse[i]) - n, float(checks.variance[i])
            z = _z(excess, variance)
            p, method = excess_probability(excess, variance, 1 / low)
        else:
            continue
        found.append(Check(None, z, p, LEVEL, method, summary.arms[i], plays))
    return found


def _strength(summary: Summary) -> Check:
    """Test that arms are chosen more often in the rounds that give them more, as much as said."""
    rule = summary.guards.rule
    if summary.selection != "full":
        return _untested("It needs the probabilities of all arms.")
    if rule.slope_variance <= 1e-9:
        return _untested("In no round did some arms have a higher chance than others.")
    z = _z(rule.slope, rule.slope_variance)
    p, method = excess_probability(abs(rule.slope), rule.slope_variance, rule.slope_step)
    return _judged(z, 2 * p, method, n=summary.sums.n_rounds)


def _propensities(summary: Summary) -> Check:
    """Test that the mean of P*_a/pi_a, the P* mass on arms with a chance, is no more than 1."""
    w = summary.terms.weights
    if summary.selection != "chosen":
        return _untested(
            _NO_P
            if summary.selection == "none"
            else "The whole rule was logged: the choices test it."
        )
    t, p = (float(x) for x in mean_above_one(w.n, w.total, w.squares))
    if math.isnan(t):
        return _untested("P*_a/pi_a is the same in every round.")
    return _judged(t, p, "student", n=w.n)


def _sticky(summary: Summary) -> Check:
    """Test that a choice depends on the one before no further than its probability says."""
    rule, guards = summary.guards.rule, summary.guards
    if summary.selection == "none":
        return _untested(_NO_P)
    if rule.same_variance <= 1e-9:
        return _untested("In no round was the arm of the round before open to chance.")
    z = _z(rule.same, rule.same_variance)
    if summary.selection == "full":
        p, method = excess_probability(abs(rule.same), rule.same_variance, 1.0)
        return _judged(z, 2 * p, method, n=rule.n_pairs)
    p, method = excess_probability(rule.same, rule.same_variance, 1 / guards.lowest)
    return _judged(z, p, method, n=rule.n_pairs)


def _sticky_users(summary: Summary) -> Check:
    """Test that a user's choice depends on the same user's last no further than logged."""
    users = summary.guards.users
    if users is None:
        return _untested("No column of users was named (user=).")
    if summary.selection == "none":
        return _untested(_NO_P)
    seen = users.again
    if seen.variance <= 1e-9:
        return _untested("No user came back while the arm of the time before was open to chance.")
    z = _z(seen.excess, seen.variance)
    if summary.selection == "chosen":
        p, method = excess_probability(seen.excess, seen.variance, 1 / summary.guards.lowest)
    elif seen.high - seen.low <= 1e-9:  # one chance each time: binomial
        p, method = 2 * min(binomial_probability(seen.n_same, seen.n_pairs, seen.high)), "exact"
    else:
        p, method = excess_probability(abs(seen.excess), seen.variance, 1.0)
        p *= 2
    return _judged(z, p, method, n=seen.n_pairs)


# -- rows that stand there twice -----------------------------------------------------------------


def _repeated_rows(summary: Summary) -> Check:
    """Test that no block of rows comes back, nor rows of one time stamp, but by chance."""
    n, guards = summary.end.n_rounds, summary.guards
    ties, found = guards.ties.whole(), []
    repeat = guards.blocks.longest(_same_reward(summary))
    if repeat is not None:
        surprise = repeat.choices + repeat.n_seen * _same_reward(summary)
        p = math.exp(min(0.0, 2 * math.log(max(n, 1)) - surprise))
        found.append(_judged(
            surprise, 2 * p, "bound", n=repeat.n_rows, row=repeat.first
        ))  # fmt: skip
    if ties.n_alike and summary.selection != "none":
        p, method = excess_probability(ties.n_alike - ties.expected, ties.variance, 1.0)
        z = _z(ties.n_alike - ties.expected, ties.variance)
        found.append(_judged(z, 2 * p, method, n=ties.n_rows))
    if not found:
        if summary.selection == "none" and _same_reward(summary) <= 0:
            return _untested("Neither probabilities nor rewards tell one row from another.")
        return Check(True, 0.0, 1.0, LEVEL, "bound", n=0)
    return min(found, key=lambda check: check.p_value or 0.0)


def _same_reward(summary: Summary) -> float:
    """Return -ln of the probability that two rewards of an arm are both zero or both not."""
    seen = summary.sums.plays - summary.sums.n_unobserved
    total = seen.sum()
    if not total:
        return 0.0
    zero = summary.guards.n_zero / np.maximum(seen, 1)
    return -math.log(float(((zero**2 + (1 - zero) ** 2) * seen).sum() / total))


def _repeated_keys(summary: Summary) -> Check:
    keys = summary.guards.keys
    if keys is None:
        return _untested("No column of keys was named (unique=).")
    row = None if keys.row < 0 else keys.row
    return Check(
        keys.n_repeated == 0, float(keys.n_repeated), None, 0.0, "count", n=keys.n_repeated,
        row=row,
    )  # fmt: skip


# -- what the audit does not see -----------------------------------------------------------------


def reward_moments(summary: Summary) -> RewardMoments:
    """Return moments of rewards and probabilities; given a context those within each."""
    if not summary.contexts:
        return summary.guards.moments
    return within_contexts([seen.moments for seen in summary.contexts.values()])


def context_scores(summary: Summary) -> NDArray[np.float64]:
    """Return z of rewards on logged probabilities by arm; NaN where either never varies.

    z_i = sum (r - rbar)(p - pbar) / sqrt(var(r) sum (p - pbar)^2) over the arm's own plays.
    """
    m = reward_moments(summary)
    scale = np.sqrt(m.reward_squares / np.maximum(m.n, 1) * m.probability_squares)
    varies = (m.probability_high - m.probability_low > 1e-12) & (m.reward_high > m.reward_low)
    return np.where(varies, m.products / np.where(varies, scale, 1.0), np.nan)


def _context(summary: Summary) -> Check:
    """Test that no arm is chosen more when it pays more; learning pulls the other way."""
    if summary.selection == "none":
        return _untested(_NO_P)
    z, m, k = context_scores(summary), reward_moments(summary), len(summary.arms)
    known = np.flatnonzero(~np.isnan(z))
    if not known.size or k < 2:
        return _untested("There is no arm whose rewards and probabilities both vary.")
    found = []
    for i in known.tolist():
        mean, p_mean = m.origin[i] + m.reward[i], m.probability[i]
        step = max(m.reward_high[i] - mean, mean - m.reward_low[i]) * max(
            m.probability_high[i] - p_mean, p_mean - m.probability_low[i]
        )
        scale = math.sqrt(m.reward_squares[i] / m.n[i] * m.probability_squares[i])
        p, method = float(special.ndtr(-z[i])), "normal"
        if step > _FINE * scale:  # few plays carry the sum
            p, method = excess_probability(float(z[i]), 1.0, step / scale)
        found.append(_judged(
            float(z[i]), k * p, method, arm=summary.arms[i], n=int(m.n[i])
        ))  # fmt: skip
    return min(found, key=lambda c: (c.p_value or 0.0, -(c.statistic or 0.0)))


def _movement(summary: Summary) -> Check:
    """Compare how far the rule moves with how far P* can under the beliefs."""
    rule, moved = summary.guards.rule, best_moved(summary)
    if summary.selection != "full":
        return _untested("It needs the probabilities of all arms.")
    if rule.n_steps < 1:
        return _untested("No two rounds in a row had the same arms on offer.")
    if math.isnan(moved):
        return _untested("How far P* moves was not traced.")
    ratio = rule.moved / moved if moved > 0 else math.inf if rule.moved > 0 else 0.0
    far = ratio > _FAR and rule.moved / rule.n_steps > _MOVES
    return Check(not far, ratio, None, _FAR, "count", n=rule.n_steps)


def best_moved(summary: Summary) -> float:
    """Return by how much P* moved in all (total variation), or could at most.

    Where P* was not traced: one reward moves the law of its arm's next reward by at most
    1/(prior weight + rewards seen), and P* by no more, since it follows from the laws of all arms.
    """
    if not math.isnan(summary.guards.best_moved):
        return summary.guards.best_moved
    beliefs = summary.start.beliefs
    if not isinstance(beliefs, BeliefTable) or not FAMILIES[summary.start.family].binary:
        return math.nan
    before = beliefs.parameters.sum(axis=1)
    seen = (
        summary.sums.plays
        - summary.sums.n_unobserved
        + np.bincount(np.asarray(beliefs.pending_arm, dtype=np.int64), minlength=len(before))
    )
    return float((special.digamma(before + seen + 1) - special.digamma(before + 1)).sum())
