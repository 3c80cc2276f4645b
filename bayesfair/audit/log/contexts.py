"""A log against beliefs given its context: what is kept of each, and of the log without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.accumulators import Moments, merged_by_key
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
from bayesfair.kernels.log.conjugate import BeliefTable
from bayesfair.kernels.log.guards import RewardMoments, joined_moments, moments_into, moments_table
from bayesfair.kernels.log.pairs import PAIR_TIE
from bayesfair.kernels.log.part_result import (
    CellResult,
    PairSums,
    PartResult,
    PartRounds,
    RoundSums,
)
from bayesfair.kernels.log.row_terms import terms_into
from bayesfair.kernels.log.rows import fixed, in_order
from bayesfair.kernels.log.stream_cells import CellStart, stream_cells
from bayesfair.kernels.log.stream_narrow import MOST_ARMS
from bayesfair.rewards import Bernoulli, StudentT
from bayesfair.typing import Floats, Ints

__all__ = [
    "Seen", "Without", "given_context", "seen_in", "within_contexts",
]  # fmt: skip


class Seen(NamedTuple):
    """What is kept of the rounds with one context; mergeable.

    Attributes
    ----------
    label : str
        The context.
    n_rounds : int
    plays, p_best : (k,) array
        Rounds in which an arm was chosen; sum of P*, where the whole rule was not logged.
    needed : float
        Smallest eps2 at the asked eps1.
    n_violating : (tolerance,) array of int
        Rounds above each tolerance of the ladder.
    regret : Moments
        Terms of the fairness regret.
    moments : RewardMoments
        Of rewards and logged probabilities.
    cells : dict
        Of the rounds, by the arms on offer.
    """

    label: str
    n_rounds: int
    plays: Ints
    p_best: Floats
    needed: float
    n_violating: Ints
    regret: Moments
    moments: RewardMoments
    cells: Cells

    def merged(self, later: Seen) -> Seen:
        """Return what is kept of this part followed by ``later``."""
        return Seen(
            self.label,
            self.n_rounds + later.n_rounds,
            self.plays + later.plays,
            self.p_best + later.p_best,
            max(self.needed, later.needed),
            self.n_violating + later.n_violating,
            self.regret.merged(later.regret),
            joined_moments(self.moments, later.moments),
            merged_by_key(self.cells, later.cells),
        )


class Without(NamedTuple):
    """What the log amounts to against beliefs that know no context.

    Attributes
    ----------
    needed : float
        Smallest eps2 at the asked eps1.
    regret : float
        Sum of the fairness regret.
    """

    needed: float
    regret: float

    def merged(self, later: Without) -> Without:
        """Return those of this part followed by ``later``."""
        return Without(max(self.needed, later.needed), self.regret + later.regret)


def given_context(
    part: History,
    state: AuditState,
    criterion: Criterion,
    find: Callable[[History, AuditState, Believed | None], PartResult],
    *,
    want_rounds: bool = False,
) -> PartResult:
    """Return what a part amounts to against beliefs given its context.

    What holds of the log is the largest excess of all contexts, and the sum of their regrets.

    Parameters
    ----------
    part : History
        The rounds.
    state : AuditState
        Before them, with `ContextTables`.
    criterion : Criterion
        What is asked.
    find : callable
        Returns what rounds amount to against one table of beliefs, or what is believed of them.
    want_rounds : bool
        Whether the numbers of every round are asked for.
    """
    tables: ContextTables = state.beliefs
    codes, labels = numbered(part, tables)
    shared = believed = fresh = None
    if tables.shared is not None:
        believed, shared, fresh = shared_beliefs(part, codes, tables, len(labels))
    expected = None
    if believed is not None and tables.featured is not None:
        assert isinstance(believed.rewards, (Bernoulli, StudentT))
        expected = believed.rewards.mean[np.arange(part.n_rounds), part.arm]
    if part.n_rounds and not want_rounds and _streams(part, state, criterion, believed):
        found, ends, blind = _in_one_pass(part, state, criterion, codes, len(labels), believed)
    else:
        found, ends, blind = _one_by_one(part, state, criterion, find, codes, len(labels), believed)
    if fresh is not None:
        ends = [table._replace(changed=bool(x)) for table, x in zip(ends, fresh, strict=True)]
    end = tables._replace(labels=labels, tables=tuple(ends), without=blind, shared=shared)
    return found._replace(end=end, codes=codes, expected=expected)


def _streams(
    part: History, state: AuditState, criterion: Criterion, believed: Believed | None
) -> bool:
    """Whether a part runs in its own order: 0/1 rewards, a whole rule, few arms, all on offer."""
    known = believed is None or (believed.best is None and isinstance(believed.rewards, Bernoulli))
    return (
        FAMILIES[state.family].binary and known and criterion.is_total_variation
        and part.selection_probability is not None and part.offered is None
        and part.n_arms <= MOST_ARMS
    )  # fmt: skip


def _in_one_pass(
    part: History, state: AuditState, criterion: Criterion, codes: NDArray[np.int32], n_cells: int,
    believed: Believed | None,
) -> tuple[PartResult, list[BeliefTable], BeliefTable]:  # fmt: skip
    """Return what a part amounts to, and the beliefs after it, of each context and without."""
    tables: ContextTables = state.beliefs
    pi, grid, n = part.selection_probability, np.array(criterion.grid), part.n_rounds
    assert pi is not None
    means = None
    if believed is not None:
        assert isinstance(believed.rewards, Bernoulli)
        means = believed.rewards.mean
    old = [*tables.tables, *[tables.fresh] * (n_cells - len(tables.tables))]
    prior = tables.fresh.parameters
    known = np.array([table.parameters for table in (*old, tables.without)]) - prior
    unknown = np.full(part.n_arms, np.nan)
    start = CellStart(
        counts=np.stack([known[:, :, 0], known.sum(axis=2)]), prior=prior,
        fresh=np.array([*(table.changed for table in old), False]),
        rows=np.array([table.last_pi if table.last_pi.size else unknown for table in old]),
        waiting=tables.pending,
    )  # fmt: skip
    found, waiting = stream_cells(
        codes, part.arm, part.reward, pi, start=start, known_at=part.known_at,
        eps1_grid=grid, eps1_index=criterion.grid_index, eps2=criterion.counting_eps2,
        means=means, changed=None if believed is None else believed.changed,
    )  # fmt: skip

    def after(c: int, table: BeliefTable, last: int, mine: Any) -> BeliefTable:
        won, seen = found.won[c], found.seen[c]
        return table._replace(
            parameters=prior + np.stack([won, seen - won], axis=1), pending_at=waiting.at[mine],
            pending_arm=waiting.arm[mine], pending_reward=waiting.reward[mine],
            last_pi=table.last_pi if last < 0 else np.array(pi[last]),
            changed=bool(found.fresh[c]),
        )  # fmt: skip

    ends = [
        after(c, table, last, waiting.cell == c)
        for c, (table, last) in enumerate(zip(old, found.last.tolist(), strict=True))
    ]
    none, over = np.zeros(part.n_arms), found.n_violating
    cells = tuple(
        CellResult(c, found.plays[c], none, float(found.needed[c]), over[c])
        for c in np.flatnonzero(found.plays.any(axis=1)).tolist()
    )
    pairs = found.pairs(pi, criterion.eps1)
    rounds, without = PartRounds(found.regret, found.p_chosen), Without(*found.without.tolist())
    whole = PartResult((), pairs, found.sums, rounds, cells=cells, without=without)
    return whole, ends, after(-1, tables.without, n - 1, ...)


def _one_by_one(
    part: History,
    state: AuditState,
    criterion: Criterion,
    find: Callable[[History, AuditState, Believed | None], PartResult],
    codes: NDArray[np.int32],
    n_cells: int,
    believed: Believed | None,
) -> tuple[PartResult, list[BeliefTable], BeliefTable]:
    """Return the same, the rounds of one context after those of the other."""
    tables: ContextTables = state.beliefs
    cells, pairs, each, sums, ends = [], [], [], [], []
    asked = criterion.grid_index
    rule = FAMILIES[state.family].rule
    for i, (rounds, own, table) in enumerate(iter_cells(part, codes, n_cells, tables, rule)):
        if not len(rounds):
            ends.append(table)
            continue
        here = None if believed is None else believed.at(rounds)
        found = find(own, state.with_beliefs(table), here)
        ends.append(found.end)
        each.append(found.rounds)
        sums.append(found.sums)
        pairs.append(_in_part(found.pairs, rounds))
        best = found.sums.p_best * (part.selection_probability is None)
        needed = float(found.pairs.frontier[asked])
        n_violating = found.pairs.n_violating
        cells.append(CellResult(i, found.sums.plays, best, needed, n_violating, own))
    blind = find(part, state.with_beliefs(tables.without), None)
    terms = _terms_of(part, blind.rounds)
    without = Without(float(blind.pairs.frontier[asked]), float(terms.sum()))
    if not cells:
        return blind._replace(without=without), ends, blind.end
    whole = RoundSums(*(sum(x) for x in zip(*sums, strict=True)))
    result = PartResult(
        (), _pairs(pairs), whole, _rounds(each, codes, n_cells), cells=tuple(cells), without=without
    )
    return result, ends, blind.end


def _terms_of(part: History, rounds: PartRounds) -> Floats:
    """Return the terms of the fairness regret, (T,)."""
    if part.selection != "chosen":
        return rounds.regret
    assert part.propensity is not None
    return np.maximum(1 - rounds.p_best_chosen / part.propensity, 0.0)


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
    p: Floats,
    cells_of: Callable[[CellResult], Cells],
) -> dict[str, Seen]:
    """Return what is kept of each context in a part.

    Parameters
    ----------
    part : History
    result : PartResult
        With its contexts.
    p : (T,) array
        Probabilities of the choices; empty where none was logged.
    cells_of : callable
        Returns what the objective audit keeps of the rounds of a context.
    """
    codes, labels, k = result.codes, result.end.labels, part.n_arms
    assert codes is not None
    c = len(labels)
    place = codes * np.int32(k) + part.arm  # context and arm at once
    moments = moments_table((c * k,))
    if len(p):
        # within a bin features differ: what counts is what they leave of a reward
        left = part.reward if result.expected is None else part.reward - result.expected
        moments_into(fixed(place), fixed(left), fixed(p), moments)
    terms = np.zeros((c, 3))
    terms[:, 2] = -np.inf
    terms_into(fixed(codes), fixed(_terms_of(part, result.rounds)), terms)
    found = {}
    for cell in result.cells:
        i, n = cell.number, cell.n_rounds
        found[labels[i]] = Seen(
            labels[i],
            n,
            cell.plays,
            cell.p_best,
            cell.needed,
            cell.n_violating,
            Moments.of(n if part.selection != "none" else 0, terms[[i]]),
            RewardMoments(*moments[:, i * k : i * k + k].copy()),
            cells_of(cell),
        )
    return found


def within_contexts(every: list[RewardMoments]) -> RewardMoments:
    """Return moments of rewards and probabilities around the means of each context.

    The extremes are those of what lies around the means: an arm that is chosen more in the context
    where it pays more shows no association within one.
    """
    m = RewardMoments(*(np.array(values) for values in zip(*every, strict=True)))  # (C, k) each
    n, seen, rewards = m.n.sum(axis=0), m.n > 0, m.origin + m.reward

    def mean(values: Floats) -> Floats:
        return np.asarray((m.n * values).sum(axis=0) / np.maximum(n, 1))

    def furthest(away: Floats) -> Floats:
        return np.asarray(np.where(seen, away, 0.0).max(axis=0))

    reward, chance = mean(rewards), mean(m.probability)
    return RewardMoments(
        n, reward, np.zeros_like(reward), chance,
        reward_squares=m.reward_squares.sum(axis=0),
        probability_squares=m.probability_squares.sum(axis=0),
        products=m.products.sum(axis=0),
        reward_low=reward - furthest(rewards - m.reward_low),
        reward_high=reward + furthest(m.reward_high - rewards),
        probability_low=chance - furthest(m.probability - m.probability_low),
        probability_high=chance + furthest(m.probability_high - m.probability),
    )  # fmt: skip
