"""Hundreds of logs audited in one pass: what a table of them says, and which need a closer look.

The pass runs the kernels of a single log over all logs at once. It gives the numbers by which logs
are sorted and counted, and tells of each whether its own audit would say anything that has to be
worded. That audit is made when it is asked for, as if the log were the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from bayesfair.audit.brief import brief_record
from bayesfair.audit.criterion import believed_verdict, top_verdict, verdict_of
from bayesfair.audit.log.checks import LEVEL
from bayesfair.audit.log.start import start_of
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.violations import exact_rounds
from bayesfair.audit.question import Question
from bayesfair.audit.record import Record
from bayesfair.base.checks import as_generator
from bayesfair.base.notices import Notice
from bayesfair.base.progress import Steps
from bayesfair.families import FAMILIES
from bayesfair.families.conflict import prior_conflicts
from bayesfair.history.logs import Logs, Together
from bayesfair.kernels.log.guards import RuleSums, row_prints, window_prints
from bayesfair.kernels.log.many import ManyResults, fair_shares, stream_many
from bayesfair.kernels.log.stream_narrow import MOST_ARMS
from bayesfair.typing import Flags, Floats, Ints

__all__ = ["Audits", "Pass", "pass_over"]


_KEPT = 64
"""Audits of single logs that are kept in memory."""
_MARGIN = 1.01  # what rounding may do to a probability near the level of a test
_TIES = 100, 0.199  # rounds and regret from which ties are looked for


class Audits(Mapping[str, Record]):
    """Audits by the label of their log; each is made when it is asked for, the last few are kept.

    Parameters
    ----------
    logs : Logs
        The logs.
    make : callable
        Returns the audit of a label.
    """

    def __init__(self, logs: Logs, make: Callable[[str], Record]) -> None:
        self._logs = logs
        self._make = make
        self._made: dict[str, Record] = {}

    def __getitem__(self, label: str) -> Record:
        found = self._made.pop(label, None)
        if found is None:
            if label not in self._logs:
                raise KeyError(label)
            found = self._make(label)
            if len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
        self._made[label] = found
        return found

    def shown_as(self, wrap: Callable[[Record], Record]) -> Audits:
        """Return the same audits, each wrapped when it is asked for."""
        return Audits(self._logs, lambda label: wrap(self[label]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._logs)

    def __len__(self) -> int:
        return len(self._logs)

    def __contains__(self, label: object) -> bool:
        return label in self._logs


@dataclass(frozen=True, eq=False)
class Pass:
    """What one pass over G logs found.

    Attributes
    ----------
    logs : Logs
        The logs.
    n_rounds : (G,) array of int
        Rounds of each.
    smallest_eps2, regret : (G,) array
        Smallest eps2 at the asked eps1; fairness regret per round, under the beliefs.
    tolerance, probability_fair : (G,) array
        Beside eps2, as used; under the true rewards, NaN without that part.
    kinds : dict of str to (G,) array of bool
        In which logs there is a notice of a kind.
    close : (G,) array of bool
        Logs whose own audit had to be made to know their notices.
    consistent : (G,) array of bool
        Whether no test found the log to contradict itself.
    """

    logs: Logs
    n_rounds: Ints
    smallest_eps2: Floats
    regret: Floats
    tolerance: Floats
    probability_fair: Floats
    kinds: dict[str, Flags]
    close: Flags
    consistent: Flags

    def brief(self, like: Record) -> dict[str, dict[str, Any]]:
        """Return the short record of each log.

        Parameters
        ----------
        like : Record
            The audit of one of the logs, for what all of them have in common.
        """
        criterion, whole = like.criterion, self.logs.together
        known = like.objective is not None
        order = "time" if like.summary.facts.by_time else "rows"
        silent = np.isnan(whole.rounds.reward).astype(np.int64)
        unobserved = np.add.reduceat(silent, whole.bounds[:-1])
        columns = (
            self.n_rounds, unobserved, self.smallest_eps2, self.regret, self.tolerance,
            self.probability_fair, self.consistent,
        )  # fmt: skip
        lists = (column.tolist() for column in columns)
        found = {}
        for label, n, gone, needed, regret, tolerance, p, consistent in zip(
            self.logs, *lists, strict=True
        ):
            believed = believed_verdict(needed, criterion.eps2 + tolerance)
            true = verdict_of(p, criterion.delta) if known else None
            top = top_verdict(believed, true, judge=criterion.judge)
            found[label] = brief_record(
                (top, believed, true), needed, p, consistent, tolerance,
                (regret, regret, regret, True),
                (self.logs.source_of(label), n, n, gone, 0, "full", order),
            )  # fmt: skip
        return found


def pass_over(
    logs: Logs,
    question: Question,
    audits: Mapping[str, Record],
    rounds: Steps,
) -> Pass | None:
    """Return what one pass finds in all logs; None where each has to be audited by itself.

    Parameters
    ----------
    logs : Logs
        With whole decision rules.
    question : Question
        What is asked of each.
    audits : mapping of str to Record
        Gives the audit of a single log, for those that need a closer look.
    rounds : Steps
        Told of those that are done.
    """
    if question.criterion.propensity_draws is not None or not _can(logs, question):
        return None
    whole, criterion = logs.together, question.criterion
    start, _ = start_of(logs.one, "bernoulli", question.prior, logs.one)
    reward = whole.rounds.reward
    if not ((reward == 0) | (reward == 1) | np.isnan(reward)).all():
        return None
    pi = whole.rounds.selection_probability
    assert pi is not None
    alpha, beta = (np.ascontiguousarray(column) for column in start.beliefs.parameters.T)
    found = stream_many(
        whole.bounds, whole.rounds.arm, reward, np.ascontiguousarray(pi),
        alpha=alpha, beta=beta, eps1_grid=np.array(criterion.grid),
        eps1_index=criterion.grid_index, eps2=criterion.counting_eps2,
    )  # fmt: skip
    n, n_logs = whole.n_rounds, len(logs)
    units, n_values = whole.units()
    regret = np.add.reduceat(found.regret, whole.bounds[:-1]) / n
    tolerance = criterion.tolerances(units)
    allowed = criterion.eps2 + tolerance
    counts, which = whole.counts()
    posterior = start.beliefs.parameters + counts
    probability = np.full(n_logs, np.nan)
    close = whole.told | ~np.isfinite(found.sums[:, 1]).all(axis=1) | _unusual(whole, found, start)
    close |= (n >= _TIES[0]) & (regret >= _TIES[1]) | (n > exact_rounds(logs.n_arms))
    done = _Done(np.where(close, 0, n), rounds)
    if question.objective:
        _fair(found, posterior, which, question, start.arms, allowed, probability, done)
    else:
        done.add(slice(None))
    kinds = {
        "rescaled": _rescaled(whole),
        "context": found.moved > 0,
        "constant_rule": _steady(found).all(axis=1) & (n > 1) & (n_values <= logs.n_arms),
        "no_reward": (found.moments.n == 0).any(axis=1),
        "resolution": tolerance != criterion.tolerance,
        "cannot_fail": found.frontier[:, criterion.grid.index(0.0)] <= allowed,
        "prior_conflict": _conflicts(start, posterior, logs)[which],
    }  # fmt: skip
    labels = tuple(logs)
    consistent = np.ones(n_logs, bool)
    smallest = found.frontier[:, criterion.grid_index].copy()
    for g in np.flatnonzero(close).tolist():
        audit = audits[labels[g]]
        consistent[g] = audit.consistent
        assert audit.smallest_eps2 is not None and audit.regret is not None  # whole rules
        smallest[g], regret[g] = audit.smallest_eps2, audit.regret.value
        tolerance[g] = audit.criterion.tolerance
        if audit.probability_fair is not None:
            probability[g] = audit.probability_fair
        here = {Notice.of(finding).kind for finding in audit.findings}
        for kind in {*here, *kinds}:
            kinds.setdefault(kind, np.zeros(n_logs, bool))[g] = kind in here
        done.add(g, int(n[g]))
    plain = np.flatnonzero(~close)
    if plain.size:  # what one of the others says beside, all of them say
        alike = {Notice.of(note).kind for note in audits[labels[plain[0]]].findings}
        for kind in alike - {kind for kind, where in kinds.items() if where[plain].any()}:
            kinds.setdefault(kind, np.zeros(n_logs, bool))[plain] = True
    return Pass(logs, n, smallest, regret, tolerance, probability,
                {kind: where for kind, where in kinds.items() if where.any()}, close,
                consistent)  # fmt: skip


def _can(logs: Logs, question: Question) -> bool:
    """Whether the question is one that the pass answers."""
    criterion = question.criterion
    models = question.model, question.beliefs_model, question.truth
    return (
        logs.together.written is not None
        and 2 <= logs.n_arms <= MOST_ARMS
        and question.family == "bernoulli"
        and all(model is None for model in models)
        and criterion.is_total_variation
        and criterion.from_round == 0
        and criterion.judge != "objective"
        and question.earlier is None
    )


class _Done:
    """Rounds of logs whose audit is complete, told as they become more."""

    def __init__(self, n_rounds: Ints, rounds: Steps) -> None:
        self._n_rounds, self._rounds = n_rounds, rounds

    def add(self, which: Any, n: int | None = None) -> None:
        """Count some logs, or one with ``n`` rounds."""
        self._rounds.add(int(self._n_rounds[which].sum()) if n is None else n)


def _fair(
    found: ManyResults, posterior: Floats, which: Ints, question: Question,
    arms: tuple[str, ...], allowed: Floats, shares: Floats, done: _Done,
) -> None:  # fmt: skip
    """Write the probability that each log is fair, under the very draws of its own audit."""
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(posterior)))
    for logs, table in zip(np.split(order, ends[:-1]), posterior, strict=True):
        rng = as_generator(question.seed)
        means = FAMILIES["bernoulli"].draw(table, (question.draws,), rng, arms)["theta"]
        fair_shares(logs, found.maxima, means, question.criterion.eps1, allowed, shares)
        done.add(logs)


def _rescaled(whole: Together) -> Flags:
    assert whole.written is not None
    off = np.abs(np.nansum(whole.written, axis=1) - 1)
    return np.asarray(np.maximum.reduceat(off, whole.bounds[:-1]) > 1e-9)


def _steady(found: ManyResults) -> Flags:
    """Return whether an arm had one probability throughout, as `checks.is_steady`, (G, k)."""
    n = np.maximum(found.tallies[:, 1], 1)
    mean = found.sums[:, 1] / n
    off = np.abs(found.sums[:, 2] - n * mean * (1 - mean))
    return np.asarray(off <= 1e-9 * np.maximum(found.sums[:, 2], 1e-300))


def _conflicts(start: AuditState, posterior: Floats, logs: Logs) -> Flags:
    """Return which posteriors lie far from their prior."""
    family, arms, none = FAMILIES["bernoulli"], logs.together.rounds.arms, np.empty(0)
    return np.array([bool(prior_conflicts(start.prior, p, family, arms, none)) for p in posterior])


# -- tests that a log may fail: never fewer than `checks` finds ------------------------------------


def _unusual(whole: Together, found: ManyResults, start: AuditState) -> Flags:
    """Return which logs may fail a test of `bayesfair.audit.log.checks`."""
    rule, k = dict(zip(RuleSums._fields, found.rule.T, strict=True)), found.sums.shape[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = 2 * _least(np.abs(rule["slope"]), rule["slope_variance"], rule["slope_step"])
        sticky = 2 * _least(np.abs(rule["same"]), rule["same_variance"], np.ones(len(found.rule)))
        context = k * _context(found)
        # the bound on how far P* moves by what was learned, as `checks.best_moved`
        before = start.beliefs.parameters.sum(axis=1)
        learned = special.digamma(before + found.moments.n + 1) - special.digamma(before + 1)
        far = rule["moved"] > 9.9 * learned.sum(axis=1)
    bad = np.where(rule["slope_variance"] > 1e-9, strength, 1) < LEVEL * _MARGIN
    bad |= np.where(rule["same_variance"] > 1e-9, sticky, 1) < LEVEL * _MARGIN
    bad |= (context < LEVEL * _MARGIN) | (_choices(found) < LEVEL * _MARGIN)
    bad |= far & (rule["n_steps"] > 0)
    return np.asarray(bad | _repeats(whole))


def _least(excess: Floats, variance: Floats, step: Floats) -> Floats:
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
    p = np.where(_steady(found), 2 * np.minimum(below, above), p)
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
    assert rounds.selection_probability is not None
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
