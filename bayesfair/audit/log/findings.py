"""What the log says about itself, in sentences for readers."""

from __future__ import annotations

import numpy as np

from bayesfair.audit.log.check_words import check_findings, unused_findings
from bayesfair.audit.log.checks import is_steady
from bayesfair.audit.log.summary import Summary
from bayesfair.audit.truth.objective import evaluate, parts_from_cells
from bayesfair.base.checks import counted, listed
from bayesfair.base.notices import Notice
from bayesfair.families import FAMILIES
from bayesfair.rewards import Bernoulli

__all__ = ["log_findings"]

_MANY_TIES = 0.5
_LARGE_REGRET = 0.2
_ENOUGH_ROUNDS = 100
_MOSTLY = 0.5  # of the regret


def log_findings(summary: Summary) -> list[Notice]:
    """Return the notices that follow from an audited log, most important first."""
    found = [*_selection_findings(summary), *check_findings(summary), *_belief_findings(summary)]
    tie = _tie_sentence(summary)
    return [*found, *([tie] if tie else []), *_gaps(summary), *unused_findings(summary)]


def _gaps(summary: Summary) -> list[Notice]:
    """Give the reason of values that cannot be had."""
    sums, arms, found = summary.sums, summary.arms, []
    if summary.selection == "full" and len(arms) > 1 and sums.n_rounds and _no_pair(summary):
        found.append(Notice(
            "In no round were two arms on offer: there is no pair to compare, and smooth fairness "
            "holds for want of one.",
            kind="no_pair", n=sums.n_rounds,
        ))  # fmt: skip
    unseen = np.flatnonzero(sums.plays - sums.n_unobserved == 0)
    if unseen.size:
        what = f"{counted(unseen.size, 'arm')} ({listed([arms[i] for i in unseen], 3)})"
        found.append(Notice(
            f"No reward was observed of {what}: the mean reward is not known, and P* rests on the "
            "prior."
            if summary.n_rounds == sums.n_rounds else
            f"In the rounds that are judged no reward was observed of {what}: the mean reward "
            "there is not known.",
            kind="no_reward", n=int(unseen.size),
        ))  # fmt: skip
    return found


def _no_pair(summary: Summary) -> bool:
    """Whether no round had two arms on offer, by the sets of arms on offer."""
    return bool(summary.offers) and all(
        key != b"" and np.frombuffer(key, dtype=bool).sum() < 2 for key in summary.offers
    )


def _selection_findings(summary: Summary) -> list[Notice]:
    sums = summary.sums
    if summary.selection == "chosen":
        return [Notice(
            "Only the chosen arm's probability was logged: smooth fairness compares pairs of arms "
            "within a round and cannot be audited; fairness regret is estimated, without bias if "
            "the choices were drawn with these probabilities.",
            kind="chosen_only",
        )]  # fmt: skip
    if summary.selection == "none":
        distance, noise = summary.share_distance()
        if not sums.n_rounds:
            return []
        return [
            Notice(
                "No selection probabilities were logged, or none were read. What follows tests the "
                "frequencies of the choices, not the rule that made them; no inverse-probability "
                "estimate is possible.",
                kind="no_probabilities",
            ),
            Notice(
                f"The shares of the choices lie at total variation {distance:.4f} from mean P*. By "
                "convexity this bounds the mean fairness regret from below, up to sampling noise; "
                f"at 95 % confidence the bound is {max(distance - noise, 0.0):.4f}.",
                kind="share_distance",
                value=distance,
            ),
        ]
    return []


def _belief_findings(summary: Summary) -> list[Notice]:
    sums = summary.sums
    found: list[Notice] = []
    if summary.selection == "full" and sums.n_moved:
        uses, tested = "a context or", "fairness given the context is not tested"
        if summary.contexts:
            uses = "more than the context that was read, or"
            tested = "fairness given what else it used is not tested"
        found.append(Notice(
            f"In {sums.n_moved} of {sums.n_still} rounds without new information the selection "
            f"probabilities changed all the same: the rule uses {uses} the time, learns from "
            "something else, or computes them with noise. Each round is still held against the "
            f"beliefs from the logged rewards; {tested}.",
            kind="context", n=sums.n_moved,
        ))  # fmt: skip
    several = len(summary.arms) > 1 and sums.n_rounds > 1 and not _no_pair(summary)
    if summary.selection == "full" and several and summary.facts.resolution.values:
        if is_steady(summary).all() and len(summary.facts.resolution.values) <= len(summary.arms):
            found.append(Notice(
                "The selection probabilities never change: in this log the rule does not learn "
                "from rewards. Its smooth fairness is tested against beliefs that it does not use.",
                kind="constant_rule",
            ))  # fmt: skip
    return found


def _tie_sentence(summary: Summary) -> Notice | None:
    """Say that most rounds are ties where that is why the regret is large, and how far.

    Whether it is why is asked of the log: the regret of the same rule, were the observed mean
    rewards the true ones. Beliefs are optimistic about arms that were hardly tried; what the regret
    owes to that is not owed to ties.
    """
    sums, regret = summary.sums, summary.terms.regret.total / max(summary.sums.n_rounds, 1)
    n, k = sums.n_rounds, len(summary.arms)
    observed = sums.plays - sums.n_unobserved
    if (
        summary.contexts
        or summary.selection == "none"
        or n < _ENOUGH_ROUNDS
        or k < 2
        or not observed.any()
    ):
        return None
    if not FAMILIES[summary.start.family].binary or regret < _LARGE_REGRET:
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
    return Notice(
        f"Most rounds are ties: at the observed mean rewards all arms would pay 0 in "
        f"{100 * ties:.0f} % of the rounds ({100 * believed:.0f} % under the beliefs, on average). "
        f"A tie is split evenly, which keeps P* spread over all {k} arms, while the rule "
        f"concentrates (the chosen arm's mean probability is {focus:.3f}, as with {1 / focus:.1f} "
        f"equal arms). Were the observed means the true ones, the same choices would have a "
        f"fairness regret of {found[0]:.2f} per round (under the beliefs {regret:.2f}){beliefs}.",
        kind="ties",
        value=ties,
        n=n,
    )
