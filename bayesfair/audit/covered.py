r"""Smooth fairness of a rule that is known in part: pairs that are covered, bounds for the others.

In a round the probabilities of some arms are known, and the others share what these leave, r. Of a
pair of known arms the difference is known; of an arm i and one that shares it lies between
max(pi_i - r, 0) and max(pi_i, r - pi_i), of two that share between 0 and r: the ends are attained.
The lower ends prove violations, the upper ones that there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesfair.audit.criterion import DIFFERENCES, QUESTIONS, Criterion, finite_or_text
from bayesfair.audit.group import GroupRecord, with_each
from bayesfair.audit.record import Record, with_extra
from bayesfair.audit.truth.conjugate import posterior_rewards
from bayesfair.audit.truth.objective import with_draw_axis
from bayesfair.base.checks import as_generator
from bayesfair.base.estimates import interval
from bayesfair.base.notices import Notice
from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.history.logs import logs_in
from bayesfair.inference.beliefs import iter_beliefs
from bayesfair.rewards import Rewards
from bayesfair.typing import Floats, Ints

__all__ = ["with_covered_pairs"]

_AT_ONCE = 4_000_000


def with_covered_pairs(found: Record | GroupRecord, data: Any) -> Record | GroupRecord:
    """Return the audit, or each of several, with ``covered``: what is known of pairs of arms.

    Of logs whose rule is known in part; others stay as they are.
    """
    if all(getattr(log, "covered", None) is None for log in logs_in(data)):
        return found
    return with_each(found, data, _with_covered)


def _with_covered(found: Record, log: History) -> Record:
    if getattr(log, "covered", None) is None or found.unfinished is not None:
        return found
    if not found.summary.sums.n_rounds:
        return found
    if why := _why_not(found):
        note = Notice(
            "Pairs of arms whose probabilities are known (constant_within=) are not audited: "
            f"{why}",
            kind="covered_left_out", column="constant_within",
        )  # fmt: skip
        return replace(found, findings=(note, *found.findings))
    numbers = _numbers(found, log)
    others = tuple(n for n in found.findings if Notice.of(n).kind != "chosen_only")
    pairs, upper = numbers["pairs"], numbers["subjective"]["smallest_eps2"]["upper"]
    note = Notice(
        f"The rule is known in part: {pairs['known']} of {pairs['all']} pairs of arms, counted in "
        "every round, are audited exactly, and the others by bounds, between which the eps2 that "
        "the log needs and its violating rounds lie; fairness regret is estimated from the chosen "
        "arms' probabilities, without bias if the choices were drawn with them.",
        kind="covered_pairs", column="constant_within", n=pairs["known"], value=upper,
    )  # fmt: skip
    return replace(with_extra(found, "covered", numbers), findings=(note, *others))


def _why_not(found: Record) -> str | None:
    question = found.question
    if question.criterion.divergence not in DIFFERENCES:
        return (
            f"bounds are of differences of probabilities, not of {question.criterion.divergence}. "
            f"Take divergence={DIFFERENCES[0]!r}."
        )
    if question.beliefs_model is not None or found.summary.start.given_context:
        return (
            "they are held against conjugate beliefs that know no context. Leave beliefs_model= "
            "out, and give context_model='none' for a log with a context."
        )
    return None


@dataclass(frozen=True)
class _Gaps:
    """Least and largest difference of every pair, (s, k, k), for sets of probabilities in rounds.

    Attributes
    ----------
    low, high : (s, k, k) arrays
        -inf for pairs that are not on offer.
    of : (T,) array
        Which of them is that of a round.
    known, every : (s,) arrays
        Pairs that are known, and all of them.
    """

    low: Floats
    high: Floats
    of: Ints
    known: Ints
    every: Ints

    @classmethod
    def within(cls, log: History) -> _Gaps:
        """Return those of a log."""
        assert log.covered is not None
        table = log.covered if log.offered is None else np.where(log.offered, log.covered, -1.0)
        bits = np.ascontiguousarray(np.where(np.isnan(table), -2.0, table))
        keys = bits.view(f"V{bits.shape[1] * bits.itemsize}").ravel()
        _, first, of = np.unique(keys, return_index=True, return_inverse=True)
        rows = table[first]
        off, open_ = rows == -1, np.isnan(rows)
        known = ~off & ~open_
        p = np.where(known, rows, 0.0)
        rest = np.maximum(1 - p.sum(axis=1), 0.0)[:, None]
        least, most = p, np.where(open_, rest, p)  # of each arm by itself
        low = np.maximum(least[:, :, None] - most[:, None, :], 0.0)
        low = np.maximum(low, low.transpose(0, 2, 1))
        high = np.maximum(
            most[:, :, None] - least[:, None, :], most[:, None, :] - least[:, :, None]
        )
        alone = off[:, :, None] | off[:, None, :] | np.eye(rows.shape[1], dtype=bool)
        low, high = (np.where(alone, -np.inf, gap) for gap in (low, high))
        on, sure = (~off).sum(axis=1), known.sum(axis=1)
        return cls(low, high, of, sure * (sure - 1) // 2, on * (on - 1) // 2)


def _excess(gaps: Floats, distance: Floats, eps1: float) -> Floats:
    """Return the largest excess of the pairs, at least 0."""
    found = gaps - (eps1 * distance if eps1 else np.zeros_like(distance))
    return np.asarray(np.maximum(np.nan_to_num(found, nan=0.0).max(axis=(-2, -1)), 0.0))


def _numbers(audit: Record, log: History) -> dict[str, Any]:
    summary, question = audit.summary, audit.question
    criterion = question.criterion.at_resolution(summary.facts.resolution.unit)
    start = summary.start
    first = min(max(criterion.from_round - start.n_rounds, 0), log.n_rounds)
    gaps = _Gaps.within(log)
    low, high = np.zeros(log.n_rounds), np.zeros(log.n_rounds)
    for at, distance in _distances(audit, log):
        here = gaps.of[at]
        low[at] = _excess(gaps.low[here], distance, criterion.eps1)
        high[at] = _excess(gaps.high[here], distance, criterion.eps1)
    of, low, high = gaps.of[first:], low[first:], high[first:]
    judged = np.unique(of)
    violating = np.flatnonzero(low > criterion.certain) + first + start.n_rounds
    needs = float(low.max()), float(high.max())
    return {
        "pairs": {"known": int(gaps.known[of].sum()), "all": int(gaps.every[of].sum())},
        "n_rounds_known": int((gaps.known == gaps.every)[of].sum()),
        "tolerance": criterion.tolerance,
        "subjective": {
            "verdict": _verdict(criterion, *needs),
            "question": QUESTIONS["subjective"],
            "smallest_eps2": _between(*needs),
            "n_violating_rounds": {
                "at_least": len(violating),
                "at_most": int((high + criterion.band > criterion.allowed).sum()),
            },
            "first_violating_round": int(violating[0]) if len(violating) else None,
            "last_violating_round": int(violating[-1]) if len(violating) else None,
            "worst": _worst(audit, log, gaps, first, low),
        },
        "objective": _objective(
            audit, criterion, gaps.low[judged].max(axis=0), gaps.high[judged].max(axis=0)
        ),
    }


def _between(lower: float, upper: float) -> dict[str, Any]:
    return {"lower": finite_or_text(lower), "upper": finite_or_text(upper)}


def _verdict(criterion: Criterion, low: float, high: float) -> str:
    return criterion.believed(max(low - criterion.band, 0.0), high + criterion.band)


def _distances(audit: Record, log: History) -> Iterator[tuple[slice, Floats]]:
    """Yield rounds, and how different the rewards of two arms were believed to be before each."""
    start, k = audit.summary.start, log.n_arms
    step = max(1, _AT_ONCE // k**2)
    for a, b, rewards, _, _ in iter_beliefs(log, FAMILIES[start.family], start.beliefs):
        for s in range(a, b, step):
            stop = min(s + step, b)
            yield (
                slice(s, stop),
                rewards[s - a : stop - a].divergence(audit.criterion.reward_divergence),
            )


def _worst(
    audit: Record, log: History, gaps: _Gaps, first: int, low: Floats
) -> dict[str, Any] | None:
    """Return the round and the pair that need most for certain."""
    t = int(low.argmax())
    if not low[t] > 0:
        return None
    worst = t + first
    for at, distance in _distances(audit, log):
        if at.start <= worst < at.stop:
            excess = gaps.low[gaps.of[worst]] - audit.criterion.eps1 * distance[worst - at.start]
            pair = list(np.unravel_index(int(np.nan_to_num(excess, nan=-np.inf).argmax()),
                                         excess.shape))  # fmt: skip
            covered = log.covered
            assert covered is not None
            pair.sort(key=lambda i: -np.nan_to_num(covered[worst, i]))
            return {
                "round": worst + audit.summary.start.n_rounds,
                "row": None if log.row is None else int(log.row[worst]),
                "arm": log.arms[pair[0]],
                "arm_other": log.arms[pair[1]],
            }
    return None


def _objective(
    audit: Record, criterion: Criterion, low: Floats, high: Floats
) -> dict[str, Any] | None:
    """Return the same under draws of the true rewards, where they are conjugate or known."""
    question = audit.question
    if audit.objective is None or question.by_model:
        return None
    rewards: Rewards
    if question.truth is not None:
        if question.truth.batch_shape:
            return None
        rewards = with_draw_axis(question.truth.for_arms(audit.summary.arms))
    else:
        rng = as_generator(0 if question.seed is None else question.seed)
        rewards = posterior_rewards(audit.summary.end, question.draws, rng)
    n, step = rewards.batch_shape[0], max(1, _AT_ONCE // low.size)
    least, most = np.zeros(n), np.zeros(n)
    for a in range(0, n, step):
        distance = rewards[a : a + step].divergence(criterion.reward_divergence)
        least[a : a + step] = _excess(low, distance, criterion.eps1)
        most[a : a + step] = _excess(high, distance, criterion.eps1)
    fair = (
        float((most + criterion.band <= criterion.allowed).mean()),
        float((least - criterion.band <= criterion.allowed).mean()),
    )
    return {
        "verdict": criterion.verdict_of(*fair),
        "question": QUESTIONS["objective"],
        "probability_fair": _between(*fair),
        "smallest_eps2": _between(float(interval(least)[0]), float(interval(most)[1])),
    }
