"""A log against beliefs given its context: what is kept of each, and of the log without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.accumulators import Moments, Pairs, Sums, merged_by_key
from bayesfair.audit.log.cells import Cells
from bayesfair.audit.log.context_tables import (
    Believed,
    ContextTables,
    iter_cells,
    numbered,
    shared_beliefs,
)
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.violations import Violations
from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.kernels.log.guards import RewardMoments, joined_moments, moments_into, moments_table
from bayesfair.kernels.log.log_pass import LogPass
from bayesfair.kernels.log.pairs import PAIR_TIE
from bayesfair.kernels.log.part_result import PairSums, PartResult, PartRounds, RoundSums
from bayesfair.kernels.log.rows import fixed, in_order
from bayesfair.rewards import Bernoulli, StudentT
from bayesfair.typing import Floats, Ints

__all__ = [
    "Seen", "Without", "given_context", "seen_in", "within_contexts",
    "without_context",
]  # fmt: skip


class Seen(NamedTuple):
    """What is kept of the rounds with one context; mergeable.

    Attributes
    ----------
    label : str
        The context.
    sums : Sums
    pairs : Pairs
        Rounds count from the start of the log; which of them may violate is kept of the whole log.
    regret : Moments
        Terms of the fairness regret.
    moments : RewardMoments
        Of rewards and logged probabilities.
    cells : dict
        Of the rounds, by the arms on offer.
    """

    label: str
    sums: Sums
    pairs: Pairs
    regret: Moments
    moments: RewardMoments
    cells: Cells

    def merged(self, later: Seen) -> Seen:
        """Return what is kept of this part followed by ``later``."""
        return Seen(
            self.label,
            self.sums.merged(later.sums),
            self.pairs.merged(later.pairs),
            self.regret.merged(later.regret),
            joined_moments(self.moments, later.moments),
            merged_by_key(self.cells, later.cells),
        )


class Without(NamedTuple):
    """What the log amounts to against beliefs that know no context.

    Attributes
    ----------
    frontier : (E,) array
        Smallest eps2 at each eps1.
    regret : Moments
        Terms of the fairness regret.
    """

    frontier: Floats
    regret: Moments

    def merged(self, later: Without) -> Without:
        """Return those of this part followed by ``later``."""
        return Without(np.maximum(self.frontier, later.frontier), self.regret.merged(later.regret))


def given_context(
    part: History,
    state: AuditState,
    find: Callable[[History, AuditState, Believed | None], PartResult],
) -> PartResult:
    """Return what a part amounts to against beliefs given its context.

    What holds of the log is the largest excess of all contexts, and the sum of their regrets.

    Parameters
    ----------
    part : History
        The rounds.
    state : AuditState
        Before them, with `ContextTables`.
    find : callable
        Returns what rounds amount to against one table of beliefs, or what is believed of them.
    """
    tables: ContextTables = state.beliefs
    codes, labels = numbered(part, tables)
    rule = FAMILIES[state.family].rule
    every, ends, shared, believed = [], [], None, None
    if tables.shared is not None:
        believed, shared, fresh = shared_beliefs(part, codes, tables, len(labels))
    cells = iter_cells(part, codes, len(labels), tables, rule)
    for i, (rounds, own, table) in enumerate(cells):
        if not len(rounds):
            ends.append(table)
            continue
        here = None if believed is None else believed.at(rounds)
        found = find(own, state.with_beliefs(table), here)
        if here is not None and tables.featured is not None:
            assert isinstance(here.rewards, (Bernoulli, StudentT))
            expected = here.rewards.mean[np.arange(len(rounds)), own.arm]
            found = found._replace(expected=expected)
        ends.append(found.end)
        every.append((i, rounds, own, found._replace(pairs=_in_part(found.pairs, rounds))))
    if believed is not None:
        ends = [table._replace(changed=bool(x)) for table, x in zip(ends, fresh, strict=True)]
    without = find(part, state.with_beliefs(tables.without), None)
    end = tables._replace(labels=labels, tables=tuple(ends), without=without.end, shared=shared)
    if not every:
        return without._replace(end=end, without=without)
    return PartResult(
        end,
        _pairs([found.pairs for *_, found in every]),
        RoundSums(*(sum(x) for x in zip(*(found.sums for *_, found in every), strict=True))),
        _rounds([found.rounds for *_, found in every], codes, len(labels)),
        None,
        tuple(every),
        without,
    )


def _in_part(pairs: PairSums, rounds: Ints) -> PairSums:
    """Return pairs with the rounds of a context counted in the whole part."""

    def placed(at: Ints) -> Ints:
        return np.where(at < 0, -1, rounds[at])

    worst = pairs.worst_round
    return pairs._replace(
        worst_round=int(rounds[worst]) if worst >= 0 else -1,
        first_violating=placed(pairs.first_violating),
        last_violating=placed(pairs.last_violating),
    )


def _pairs(every: list[PairSums]) -> PairSums:
    """Return the pairs of all contexts: of the worst ones the earliest."""
    most = max(pairs.worst_excess for pairs in every)
    worst = min(
        (p for p in every if p.worst_excess + PAIR_TIE >= most), key=lambda p: p.worst_round
    )
    violating = Violations(worst.n_violating * 0, worst.first_violating * 0 - 1,
                           worst.last_violating * 0 - 1)  # fmt: skip
    for p in every:
        here = Violations(p.n_violating, p.first_violating, p.last_violating)
        violating = violating.merged(here)
    return worst._replace(
        frontier=np.maximum.reduce([pairs.frontier for pairs in every]),
        n_violating=np.asarray(violating.n, np.int64),
        first_violating=violating.first,
        last_violating=violating.last,
    )


def _rounds(every: list[PartRounds], codes: NDArray[np.int32], n_cells: int) -> PartRounds:
    """Return the numbers of every round, in the order of the log."""
    ends = np.cumsum(np.bincount(codes, minlength=n_cells))
    found = {}
    for name in PartRounds._fields:
        values = [getattr(of, name) for of in every]
        kept = values[0] is not None and any(len(of) for of in values)
        found[name] = in_order(np.concatenate(values), codes, ends) if kept else values[0]
    return PartRounds(**found)


def seen_in(
    part: History,
    result: PartResult,
    start: int,
    labels: tuple[str, ...],
    cells_of: Callable[[History], Cells],
) -> dict[str, Seen]:
    """Return what is kept of each context in a part, which ``start`` rounds of the log precede."""
    found, known = {}, part.selection != "none"
    for i, rounds, own, of in result.cells:
        k = part.n_arms
        p = np.full(len(rounds), np.nan)
        if own.selection_probability is not None:
            p = own.selection_probability[np.arange(len(rounds)), own.arm]
        elif own.propensity is not None:
            p = own.propensity
        gone = np.isnan(own.reward)
        moments = moments_table((k,))
        if known:
            # within a bin features differ: what counts is what they leave of a reward
            left = own.reward if of.expected is None else own.reward - of.expected
            moments_into(fixed(own.arm), fixed(left), fixed(p), moments)
        sums = Sums(
            n_rounds=own.n_rounds,
            n_unobserved=np.bincount(own.arm[gone], minlength=k),
            reward_total=np.bincount(own.arm, np.where(gone, 0.0, own.reward), k),
            concentration=float(p.sum()) if known else 0.0,
            **of.sums._asdict(),
        )
        terms = of.rounds.regret
        if part.selection == "chosen":
            terms = np.maximum(1 - of.rounds.p_best_chosen / p, 0.0)
        regret = Moments.of(len(terms), _sums_of(terms))
        pairs = Pairs.kept(part, of.pairs, start)
        found[labels[i]] = Seen(
            labels[i], sums, pairs, regret, RewardMoments(*moments), cells_of(own)
        )
    return found


def without_context(part: History, result: PartResult, rows: LogPass) -> Without:
    """Return what a part amounts to without its context."""
    of = result.without
    assert of is not None
    terms = of.rounds.regret
    if part.selection == "chosen":
        terms = np.maximum(1 - of.rounds.p_best_chosen / rows.p, 0.0)
    return Without(of.pairs.frontier, Moments.of(len(terms), _sums_of(terms)))


def _sums_of(terms: Floats) -> Floats:
    return np.array([[terms.sum(), (terms * terms).sum(), terms.max(initial=-np.inf)]])


def within_contexts(every: list[RewardMoments]) -> RewardMoments:
    """Return moments of rewards and probabilities around the means of each context.

    The extremes are those of what lies around the means: an arm that is chosen more in the context
    where it pays more shows no association within one.
    """
    n = np.sum([m.n for m in every], axis=0)
    seen = np.array([m.n > 0 for m in every])

    def mean(values: list[Floats]) -> Floats:
        total = sum(m.n * x for m, x in zip(every, values, strict=True))
        return np.asarray(total / np.maximum(n, 1))

    def furthest(away: list[Floats]) -> Floats:
        return np.asarray(np.where(seen, away, 0.0).max(axis=0))

    rewards, chances = [m.origin + m.reward for m in every], [m.probability for m in every]
    reward, chance = mean(rewards), mean(chances)
    sums = {
        name: np.sum([getattr(m, name) for m in every], axis=0)
        for name in ("reward_squares", "probability_squares", "products")
    }
    pairs = list(zip(every, rewards, strict=True))
    return RewardMoments(
        n, reward, np.zeros_like(reward), chance, **sums,
        reward_low=reward - furthest([x - m.reward_low for m, x in pairs]),
        reward_high=reward + furthest([m.reward_high - x for m, x in pairs]),
        probability_low=chance - furthest([m.probability - m.probability_low for m in every]),
        probability_high=chance + furthest([m.probability_high - m.probability for m in every]),
    )  # fmt: skip
