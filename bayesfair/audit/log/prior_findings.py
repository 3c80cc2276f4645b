"""What has to be known of the prior: where it was learned, and where rewards lie far outside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.summary import Summary
from bayesfair.base.notices import Notice
from bayesfair.families import FAMILIES
from bayesfair.families.conflict import prior_conflicts

__all__ = ["learned_numbers", "prior_findings"]


def prior_findings(summary: Summary, criterion: Criterion) -> list[Notice]:
    """Return the notices on the prior of conjugate beliefs."""
    end = summary.end
    prior, posterior, learned = end.prior_and_posterior()
    found = []
    rounds = _learning_rounds(summary, criterion)
    if learned is not None and rounds is not None:
        found.append(learned.notice(rounds, _violating(summary, criterion, rounds[1])))
    if learned is not None and learned.is_open and criterion.reward_divergence == "wasserstein":
        found.append(Notice(
            "No two rewards differ, so that nothing tells their unit: the prior stands in the unit "
            "1, and so do the Wasserstein distances of the true rewards and all that is held "
            "against them. Written in another unit the same log has other ones; prior= sets it.",
            kind="unit_assumed", n=int(learned.reward.size),
        ))  # fmt: skip
    support, family = getattr(end.beliefs, "support", np.empty(0)), FAMILIES[end.family]
    return found + prior_conflicts(
        prior, posterior, family, summary.arms, support, learned=learned is not None
    )


def learned_numbers(summary: Summary, criterion: Criterion) -> dict[str, Any] | None:
    """Return location and scale of a learned prior and the rounds before it, JSON-ready."""
    if not summary.end.prior_is_learned:
        return None
    _, _, learned = summary.end.prior_and_posterior()
    assert learned is not None
    first, last = _learning_rounds(summary, criterion) or (None, None)
    return {
        "location": learned.location if learned.reward.size else None,
        "scale": None if learned.is_open else learned.spread,
        "n_rewards": learned.reward.size,
        "settled": learned.settled,
        "first_round": first,
        "last_round": last,
    }


def _learning_rounds(summary: Summary, criterion: Criterion) -> tuple[int, int] | None:
    """Return first and last of the judged rounds before which the prior was still being learned."""
    first = max(criterion.from_round, summary.start.n_rounds)
    last = min(getattr(summary.end.beliefs, "n_learning", 0), summary.end.n_rounds) - 1
    return (first, last) if first <= last else None


def _violating(summary: Summary, criterion: Criterion, last: int) -> str:
    """Say how many of the violating rounds are among those up to the last one of learning."""
    if summary.selection != "full":
        return ""
    n, first_bad, last_bad = (criterion.count_at(values) for values in summary.pairs.violations)
    if not n or first_bad > last:
        where = "No round that violates under the beliefs is among them."
    elif last_bad <= last:
        where = "All rounds that violate under the beliefs are among them."
    else:
        where = "The first round that violates under the beliefs is among them."
    rest = f" from_round={last + 1} judges the rounds after them."
    return f" {where}{rest if last + 1 < summary.end.n_rounds else ''}"
