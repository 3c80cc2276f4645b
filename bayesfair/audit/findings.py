"""What the log says about itself: checks of the logged probabilities, and sentences for readers."""

from __future__ import annotations

import math

import numpy as np

from bayesfair.audit.calibration import freedman_bound, share_distance, z_threshold
from bayesfair.audit.objective import evaluate, parts_from_cells
from bayesfair.audit.summary import Summary
from bayesfair.checks import counted, listed
from bayesfair.rewards import Bernoulli

__all__ = ["log_findings"]

_MANY_TIES = 0.5
_LARGE_REGRET = 0.2
_ENOUGH_ROUNDS = 100
_MOSTLY = 0.5  # of the regret


def log_findings(summary: Summary) -> list[str]:
    """Return the notices that follow from an audited log, most important first."""
    found = [*_selection_findings(summary), *_play_findings(summary), *_belief_findings(summary)]
    tie = _tie_sentence(summary)
    return [*found, *([tie] if tie else []), *_gaps(summary)]


def _gaps(summary: Summary) -> list[str]:
    """Give the reason of values that cannot be had."""
    sums, arms, found = summary.sums, summary.arms, []
    if summary.selection == "full" and len(arms) > 1 and sums.n_rounds and _no_pair(summary):
        found.append(
            "In no round were two arms on offer: there is no pair to compare, and smooth fairness "
            "holds for want of one."
        )
    unseen = np.flatnonzero(sums.plays - sums.n_unobserved == 0)
    if unseen.size:
        found.append(
            f"No reward was observed of {counted(unseen.size, 'arm')} "
            f"({listed([arms[i] for i in unseen], 3)}): the mean reward is not known, and P* rests "
            "on the prior."
        )
    return found


def _no_pair(summary: Summary) -> bool:
    """Whether no round had two arms on offer, by the sets of arms on offer."""
    return bool(summary.cells) and all(
        key != b"" and np.frombuffer(key, dtype=bool).sum() < 2 for key in summary.cells
    )


def _selection_findings(summary: Summary) -> list[str]:
    sums = summary.sums
    if summary.selection == "chosen":
        return [
            "Only the chosen arm's probability was logged: smooth fairness compares pairs of arms "
            "within a round and cannot be audited; fairness regret is estimated, without bias."
        ]
    if summary.selection == "none":
        distance, noise = share_distance(sums.p_best / max(sums.n_rounds, 1), sums.plays)
        if not sums.n_rounds:
            return []
        return [
            "No selection probabilities were logged. What follows tests the frequencies of the "
            "choices, not the rule that made them; no inverse-probability estimate is possible.",
            f"The shares of the choices lie at total variation {distance:.4f} from mean P*. By "
            "convexity this bounds the mean fairness regret from below, up to sampling noise; at "
            f"95 % confidence the bound is {max(distance - noise, 0.0):.4f}.",
        ]
    return []


def _play_findings(summary: Summary) -> list[str]:
    """Compare the choices with the logged probabilities, arm by arm."""
    sums, arms = summary.sums, summary.arms
    level = 0.001 / max(len(arms), 1)
    found = []
    if summary.selection == "full":
        for i in range(len(arms)):
            plays, expected = int(sums.plays[i]), float(sums.selection[i])
            variance = float(sums.selection_variance[i])
            if 2 * freedman_bound(abs(plays - expected), variance, 1.0) < level:
                z = (plays - expected) / math.sqrt(variance) if variance > 0 else math.inf
                found.append(_mismatch(arms[i], plays, expected, z))
    elif summary.chosen is not None:
        checks = summary.chosen
        for i in np.flatnonzero(sums.plays).tolist():
            # An excess of plays over what the propensities allow is evidence against them; a
            # deficit may also be rounds in which the arm had no chance.
            plays, n = int(sums.plays[i]), int(sums.n_offered[i])
            low, high = float(checks.lowest[i]), float(checks.highest[i])
            if high - low <= 1e-9 and high < 1:  # one constant probability: binomial
                expected, variance = n * high, n * high * (1 - high)
                if freedman_bound(plays - expected, variance, 1.0) < level:
                    found.append(
                        _mismatch(
                            arms[i], plays, expected, (plays - expected) / math.sqrt(variance)
                        )
                    )
            elif checks.variance[i] > 0:
                # each round adds 1/p if the arm is chosen: on average 1, if p is right
                excess, variance = float(checks.inverse[i]) - n, float(checks.variance[i])
                if freedman_bound(excess, variance, 1 / low) < level:
                    found.append(
                        f"Propensities of arm {arms[i]!r} look too small: its {plays} plays stand "
                        f"for {checks.inverse[i]:.0f} rounds of {n} "
                        f"(z = {excess / math.sqrt(variance):.1f})."
                    )
        if sums.n_rounds > 1:
            return found[:3] + _weight_findings(summary)
    return found[:3]


def _mismatch(arm: str, plays: int, expected: float, z: float) -> str:
    return (
        f"The choices do not fit the logged probabilities: arm {arm!r} was chosen {plays} times, "
        f"the probabilities add up to {expected:.1f} (z = {z:.1f}). Distrust every number that "
        "uses them."
    )


def _weight_findings(summary: Summary) -> list[str]:
    """Judge mean(P*_a/pi_a), which estimates the P* mass on arms with support, hence at most 1."""
    w = summary.weights
    mean = w.total / w.n
    error = math.sqrt(max(w.squares / w.n - mean * mean, 0.0) / (w.n - 1))
    if error > 0 and (mean - 1) / error > z_threshold(0.002):
        return [
            f"The mean of P*_a/pi_a is {mean:.4f}, significantly above 1, which no true "
            "propensities allow: the logged propensities are too small."
        ]
    if error > 0 and (1 - mean) / error > z_threshold(0.002):
        return [
            f"The mean of P*_a/pi_a is {mean:.4f}, below 1: some arms with a chance to be best are "
            "never or hardly ever chosen, or the propensities are too large."
        ]
    return []


def _belief_findings(summary: Summary) -> list[str]:
    sums, found = summary.sums, []
    if summary.selection == "full" and sums.n_moved:
        found.append(
            f"In {sums.n_moved} of {sums.n_still} rounds without new information the selection "
            "probabilities changed all the same: the rule uses a context or the time, or learns "
            "from something else. Each round is still held against the beliefs from the logged "
            "rewards; fairness given the context is not tested."
        )
    several = len(summary.arms) > 1 and sums.n_rounds > 1 and not _no_pair(summary)
    if summary.selection == "full" and several and summary.resolution.values:
        flat = np.abs(sums.selection_variance - _constant_variance(summary)) <= 1e-9 * np.maximum(
            sums.selection_variance, 1e-300
        )
        if flat.all() and len(summary.resolution.values) <= len(summary.arms):
            found.append(
                "The selection probabilities never change: the rule does not learn from rewards. "
                "Its smooth fairness is tested against beliefs that it does not use."
            )
    return found


def _constant_variance(summary: Summary) -> np.ndarray:
    """Sum of pi (1 - pi) if pi were its own mean in every round: equal only if it never moves."""
    sums = summary.sums
    n = np.maximum(sums.n_offered, 1)
    mean = sums.selection / n
    return np.asarray(n * mean * (1 - mean))


def _tie_sentence(summary: Summary) -> str | None:
    """Say that most rounds are ties where that is why the regret is large, and how far.

    Whether it is why is asked of the log: the regret of the same rule, were the observed mean
    rewards the true ones. Beliefs are optimistic about arms that were hardly tried; what the regret
    owes to that is not owed to ties.
    """
    sums, regret = summary.sums, summary.regret.total / max(summary.sums.n_rounds, 1)
    n, k = sums.n_rounds, len(summary.arms)
    observed = sums.plays - sums.n_unobserved
    if summary.selection == "none" or n < _ENOUGH_ROUNDS or k < 2 or not observed.any():
        return None
    if summary.start.family != "bernoulli" or regret < _LARGE_REGRET:
        return None
    common = sums.reward_total.sum() / observed.sum()  # for arms without an observed reward
    means = np.where(observed > 0, sums.reward_total / np.maximum(observed, 1), common)
    parts = parts_from_cells(summary.cells, Bernoulli(np.clip(means, 0, 1)[None]), k)
    shares = [p.n_rounds * np.prod(1 - means[slice(None) if p.offered is None else p.offered])
              for p in parts]  # fmt: skip
    ties, believed, focus = float(sum(shares)) / n, sums.all_zero / n, sums.concentration / n
    if ties < _MANY_TIES or focus < 2 / k:
        return None
    found = evaluate(parts, summary.criterion).regret
    if found is None or found[0] < _MOSTLY * regret:
        return None
    rest = regret - found[0]
    beliefs = (
        f"; the other {rest:.2f} comes from the beliefs, in which arms that were hardly tried keep "
        "a high P* under the prior"
        if rest >= 0.005
        else ""
    )
    return (
        f"Most rounds are ties: at the observed mean rewards all arms would pay 0 in "
        f"{100 * ties:.0f} % of the rounds ({100 * believed:.0f} % under the beliefs, on average). "
        f"A tie is split evenly, which keeps P* spread over all {k} arms, while the rule "
        f"concentrates (the chosen arm's mean probability is {focus:.3f}, as with {1 / focus:.1f} "
        f"equal arms). Were the observed means the true ones, the same choices would have a "
        f"fairness regret of {found[0]:.2f} per round (under the beliefs {regret:.2f}){beliefs}."
    )
