"""Every round of a log against the beliefs before it: part by part, each from the one before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.log.best_sums import BestSums
from bayesfair.audit.log.context_tables import Believed
from bayesfair.audit.log.contexts import given_context
from bayesfair.audit.log.pairs import divergences_of_worst, find_pairs
from bayesfair.audit.log.shared_laws import Laws, laws_of
from bayesfair.audit.log.state import AuditState, judged_part, parts_of, require_fitting
from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.inference.beliefs import iter_beliefs
from bayesfair.kernels.log.conjugate import BeliefTable
from bayesfair.kernels.log.part_result import BestPath, PairSums, PartResult, PartRounds, RoundSums
from bayesfair.kernels.log.stream import stream_bernoulli
from bayesfair.kernels.team import usable_cores
from bayesfair.rewards import Rewards

_CHUNK_VALUES = 2_000_000

__all__ = ["gathered", "iter_results", "pairs_by_chunks", "results"]

type Pairs = tuple[PairSums, NDArray[np.float64], NDArray[np.int64]]


def iter_results(
    data: Any,
    start: AuditState,
    criterion: Criterion,
    *,
    want_rounds: bool = False,
    threads: int | None = None,
) -> Iterator[tuple[History, PartResult, AuditState]]:
    """Yield the judged rounds of each part, what was found in them, and where they start.

    With `want_rounds` rounds that are not judged are among them.
    """
    state = start
    for whole in parts_of(data):
        scanned = not isinstance(data, History)
        require_fitting(whole, state, goes_on=start.n_rounds > 0, scanned=scanned)
        part = whole
        if not want_rounds:
            part, state = judged_part(whole, state, criterion.from_round)
        found = results(part, state, criterion, want_rounds=want_rounds, threads=threads)
        yield part, found, state
        state = replace(state, n_rounds=state.n_rounds + part.n_rounds, beliefs=found.end)


def results(
    part: History,
    state: AuditState,
    criterion: Criterion,
    *,
    want_rounds: bool = False,
    threads: int | None = None,
) -> PartResult:
    """Return what a part amounts to, from the beliefs before it."""
    if state.given_context:

        def find(own: History, before: AuditState, of: Believed | None) -> PartResult:
            if of is not None:
                return _by_chunks(own, before, criterion, want_rounds=want_rounds, believed=of)
            return results(own, before, criterion, want_rounds=want_rounds, threads=threads)

        return given_context(part, state, criterion, find, want_rounds=want_rounds)
    if not FAMILIES[state.family].binary:
        return _by_chunks(part, state, criterion, want_rounds=want_rounds)
    streamed = stream_bernoulli(
        part.arm,
        part.reward,
        part.selection_probability,
        state=state.beliefs,
        eps1_grid=np.array(criterion.grid),
        eps1_index=criterion.grid_index,
        eps2=criterion.counting_eps2,
        offered=part.offered if part.selection_probability is None else None,
        known_at=part.known_at,
        want_rounds=want_rounds,
        threads=threads or usable_cores(),
    )
    if criterion.is_total_variation or part.selection_probability is None:
        return streamed
    pairs, smallest, pair = pairs_by_chunks(part, state, criterion)
    rounds = streamed.rounds
    if want_rounds:
        rounds = rounds._replace(smallest_eps2=smallest, pair=pair)
    return streamed._replace(pairs=pairs, rounds=rounds)


def pairs_by_chunks(
    part: History, state: AuditState, criterion: Criterion, among: NDArray[np.bool_] | None = None
) -> Pairs:
    """Return the worst pairs under any divergence, `among` (k, k) of them if given."""
    assert part.selection_probability is not None

    def divergences() -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        for a, b, rewards, _, _ in iter_beliefs(part, FAMILIES[state.family], state.beliefs):
            found = rewards.divergence(criterion.reward_divergence)
            yield a, b, found if among is None else np.where(among, found, np.nan)

    return find_pairs(part.selection_probability, divergences(), criterion)


def _by_chunks(
    part: History,
    state: AuditState,
    criterion: Criterion,
    *,
    want_rounds: bool,
    believed: Believed | None = None,
) -> PartResult:
    """Audit a part against conjugate beliefs of any family, or those given, chunk by chunk."""
    table: BeliefTable = state.beliefs
    family = FAMILIES[state.family]
    laws = laws_of(part, table) if believed is None else Laws.apart(part.n_arms)
    best = BestSums(part, keep=want_rounds)
    changed = np.zeros(part.n_rounds, dtype=bool)
    pi = part.selection_probability
    floor = -np.inf if want_rounds else criterion.counting_eps2

    def chunks() -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        before = laws.table(table)
        every = (
            iter_beliefs(part, family, before, laws=laws.of, pairs=pi is not None)
            if believed is None
            else _iter_believed(believed)
        )
        for a, b, rewards, _, moved in every:
            offered = None if part.offered is None else part.offered[a:b]
            if believed is not None and believed.best is not None:
                best.add(a, b, believed.best[a:b])
            else:
                best.add(a, b, family.best_of_laws(rewards, laws.counts(offered)), laws)
            changed[a:b] = moved
            if pi is None:
                apart = np.empty(0)
            elif laws.shared:
                apart = rewards.divergence(criterion.reward_divergence)
            else:
                apart = divergences_of_worst(rewards, pi[a:b], criterion, floor)
            yield a, b, apart

    found = None
    if pi is None:
        for _ in chunks():
            pass
    else:
        found = find_pairs(pi, chunks(), criterion, laws)
    end = state.after(part).beliefs
    if believed is not None and part.n_rounds:
        table = table._replace(changed=bool(changed[0]))
    return gathered(part, best, found, changed, end, criterion, before=table)


def _iter_believed(believed: Believed) -> Iterator[tuple[int, int, Rewards, Any, Any]]:
    """Yield these laws in chunks, as `iter_beliefs`."""
    n, k = len(believed.changed), believed.rewards.n_arms
    size = max(1, _CHUNK_VALUES // (k * k))
    for a in range(0, n, size):
        b = min(a + size, n)
        yield a, b, believed.rewards[a:b], None, believed.changed[a:b]


def gathered(
    part: History,
    best: BestSums,
    found: Pairs | None,
    changed: NDArray[np.bool_],
    end: Any,
    criterion: Criterion,
    *,
    before: BeliefTable | None = None,
) -> PartResult:
    """Return the result of a part from what was found of P* and of pairs.

    Parameters
    ----------
    part : History
        The rounds.
    best : BestSums
        P* of all of them.
    found : tuple or None
        Of `find_pairs`; None where the rule was not logged.
    changed : (T,) array of bool
        Whether beliefs differ from those of the round before.
    end : BeliefTable
        Beliefs after the part.
    criterion : Criterion
        What is asked.
    before : BeliefTable, optional
        Beliefs before the part.
    """
    n, k = part.n_rounds, part.n_arms
    pi = part.selection_probability
    still = ~changed
    follows = before is not None and before.last_pi.size > 0
    still[:1] = before is not None and follows and not before.changed
    moved = 0
    if pi is not None and n:
        last = before.last_pi if before is not None and follows else pi[0]
        shift = np.nan_to_num(np.abs(np.diff(pi, axis=0, prepend=last[None]))).max(axis=1) > 1e-9
        moved = int((still & shift).sum())
    nothing = np.zeros(k)
    known = np.nan_to_num(pi) if pi is not None else None
    pairs, smallest, pair = found or (PairSums.empty(len(criterion.grid)), None, None)
    keep = best.rows is not None
    return PartResult(
        end=end,
        pairs=pairs,
        sums=RoundSums(
            p_best=best.total,
            selection=nothing if known is None else known.sum(axis=0),
            selection_variance=nothing if known is None else (known * (1 - known)).sum(axis=0),
            plays=np.bincount(part.arm, minlength=k),
            n_offered=np.full(k, n) if part.offered is None else part.offered.sum(axis=0),
            all_zero=0.0,
            n_still=int(still.sum()),
            n_moved=moved,
        ),
        rounds=PartRounds(
            regret=np.empty(0) if known is None else best.regret,
            p_best_chosen=best.chosen,
            smallest_eps2=smallest if keep else None,
            pair=pair if keep else None,
            p_best=best.rows,
        ),
        path=BestPath(best.moved, best.first, best.last),
    )
