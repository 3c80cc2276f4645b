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

from bayesfair.audit.brief import brief_record
from bayesfair.audit.criterion import believed_verdict, top_verdict, verdict_of
from bayesfair.audit.log.cells import EXACT_ROUNDS
from bayesfair.audit.log.intervals import certain_noise, mean_limits, share_distances
from bayesfair.audit.log.many_checks import Weights, steady_arms, unusual
from bayesfair.audit.log.start import start_of
from bayesfair.audit.log.state import AuditState
from bayesfair.audit.log.violations import exact_rounds
from bayesfair.audit.numbers import calibration_numbers
from bayesfair.audit.question import Question
from bayesfair.audit.record import Record
from bayesfair.base.checks import as_generator
from bayesfair.base.notices import Notice
from bayesfair.base.progress import Steps
from bayesfair.families import FAMILIES
from bayesfair.families.conflict import prior_conflicts
from bayesfair.history.logs import Logs, Together
from bayesfair.kernels.log.many import ManyResults, fair_shares, stream_many
from bayesfair.typing import Flags, Floats, Ints

__all__ = ["Audits", "Pass", "pass_over"]


_KEPT = 64
"""Audits of single logs that are kept in memory."""
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
    smallest_eps2 : (G,) array
        At the asked eps1, under the beliefs; NaN where that cannot be audited.
    regret : (G, 3) array
        Fairness regret per round under the beliefs, its lower and upper limit; NaN = not known.
    tolerance, probability_fair : (G,) array
        Beside eps2, as used; under the true rewards, NaN without that part.
    effective_size : (G,) array or None
        Of the weights P*_a/pi_a, where only the chosen arms' probabilities were logged.
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
    effective_size: Floats | None
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
        known, selection = like.objective is not None, whole.rounds.selection
        full = selection == "full"
        order = "time" if like.summary.facts.by_time else "rows"
        silent = np.isnan(whole.rounds.reward).astype(np.int64)
        unobserved = np.add.reduceat(silent, whole.bounds[:-1])
        columns = (
            self.n_rounds, unobserved, self.smallest_eps2, self.regret, self.tolerance,
            self.probability_fair, self.consistent,
        )  # fmt: skip
        lists = (_plain(column) for column in columns)
        found = {}
        for label, n, gone, needed, regret, tolerance, p, consistent in zip(
            self.logs, *lists, strict=True
        ):
            believed = believed_verdict(needed, criterion.eps2 + tolerance)
            true = None
            if known:
                true = "not_auditable" if p is None else verdict_of(p, criterion.delta)
            top = top_verdict(believed, true, judge=criterion.judge)
            found[label] = brief_record(
                (top, believed, true), needed, p, consistent, tolerance, (*regret, full),
                (self.logs.source_of(label), n, n, gone, 0, selection, order),
            )  # fmt: skip
        if self.effective_size is not None:
            for record, size in zip(found.values(), _plain(self.effective_size), strict=True):
                record["calibration"]["effective_sample_size"] = size
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
        With whole decision rules, the chosen arms' probabilities, or none.
    question : Question
        What is asked of each.
    audits : mapping of str to Record
        Gives the audit of a single log, for those that need a closer look.
    rounds : Steps
        Told of those that are done.
    """
    whole, criterion = logs.together, question.criterion
    log, reward, full = whole.rounds, whole.rounds.reward, whole.written is not None
    if not _can(logs, question, full=full):
        return None
    start, _ = start_of(logs.one, "bernoulli", question.prior, logs.one)
    if not ((reward == 0) | (reward == 1) | np.isnan(reward)).all():
        return None
    alpha, beta = (np.ascontiguousarray(column) for column in start.beliefs.parameters.T)
    found = stream_many(
        whole.bounds, log.arm, reward, log.selection_probability, log.propensity,
        alpha=alpha, beta=beta, eps1_grid=np.array(criterion.grid),
        eps1_index=criterion.grid_index, eps2=criterion.counting_eps2,
    )  # fmt: skip
    n, n_logs = whole.n_rounds, len(logs)
    units, n_values = whole.units()
    weights = None if log.propensity is None else Weights.of(whole, found)
    regret = _regret(whole, found, weights)
    tolerance = criterion.tolerances(units)
    allowed = criterion.eps2 + tolerance
    counts, which = whole.counts()
    posterior = start.beliefs.parameters + counts
    probability = np.full(n_logs, np.nan)
    close = whole.told | unusual(whole, found, start, weights)
    close |= (n >= _TIES[0]) & (regret[:, 0] >= _TIES[1])
    close |= n > (exact_rounds(logs.n_arms) if full else EXACT_ROUNDS)
    done = _Done(np.where(close, 0, n), rounds)
    kinds = {
        "missing_rewards": whole.gone,
        "no_reward": (found.moments.n == 0).any(axis=1),
        "prior_conflict": _conflicts(start, posterior, logs)[which],
    }
    smallest = np.full(n_logs, np.nan)
    if full:
        smallest = found.frontier[:, criterion.grid_index].copy()
        kinds |= {
            "rescaled": _rescaled(whole),
            "context": found.moved > 0,
            "constant_rule": steady_arms(found).all(axis=1) & (n > 1) & (n_values <= logs.n_arms),
            "resolution": tolerance != criterion.tolerance,
            "cannot_fail": found.frontier[:, criterion.grid.index(0.0)] <= allowed,
        }
    if weights is not None:
        kinds["hardly_chosen"] = weights.hardly_chosen
    if question.objective and full:
        _fair(found, posterior, which, question, start.arms, allowed, probability, done)
    else:
        done.add(slice(None))
    labels = tuple(logs)
    consistent = np.ones(n_logs, bool)
    for g in np.flatnonzero(close).tolist():
        audit = audits[labels[g]]
        consistent[g], believed = audit.consistent, calibration_numbers(audit)["subjective"]
        regret[g] = [_known(believed[key]) for key in ("regret_per_round", "lower", "upper")]
        smallest[g], probability[g] = _known(audit.smallest_eps2), _known(audit.probability_fair)
        tolerance[g] = audit.criterion.tolerance
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
                None if weights is None else weights.effective_size,
                {kind: where for kind, where in kinds.items() if where.any()}, close,
                consistent)  # fmt: skip


def _can(logs: Logs, question: Question, *, full: bool) -> bool:
    """Whether the question is one that the pass answers."""
    criterion = question.criterion
    models = question.model, question.fit, question.beliefs_model, question.truth
    return (
        logs.n_arms >= 2
        and question.family == "bernoulli"
        and all(model is None for model in models)
        and (criterion.is_total_variation or not full)
        and criterion.from_round == 0
        and criterion.propensity_draws is None
        and criterion.judge != "objective"
        and question.earlier is None
    )


def _regret(whole: Together, found: ManyResults, weights: Weights | None) -> Floats:
    """Return the regret of each log under the beliefs, as `regret_of`, or its lower bound."""
    n, starts = whole.n_rounds, whole.bounds[:-1]
    if whole.written is not None:
        return np.repeat(np.add.reduceat(found.regret, starts)[:, None] / n[:, None], 3, axis=1)
    if weights is not None:
        return mean_limits(n, weights.shortfall, weights.shortfall_squares).T
    distance, noise = share_distances(found.sums[:, 0] / n[:, None], found.tallies[:, 0])
    lower, unknown = np.maximum(distance - (noise + certain_noise(n)), 0.0), np.full(len(n), np.nan)
    return np.stack([unknown, lower, unknown], axis=1)


def _known(value: float | None) -> float:
    return np.nan if value is None else value


def _plain(column: Any) -> Any:
    """Return an array as lists, with None for NaN."""
    if column.dtype.kind != "f" or not np.isnan(column).any():
        return column.tolist()
    nothing = np.array(None, dtype=object)
    return np.where(np.isnan(column), nothing, column.astype(object)).tolist()


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


def _conflicts(start: AuditState, posterior: Floats, logs: Logs) -> Flags:
    """Return which posteriors lie far from their prior."""
    family, arms, none = FAMILIES["bernoulli"], logs.together.rounds.arms, np.empty(0)
    return np.array([bool(prior_conflicts(start.prior, p, family, arms, none)) for p in posterior])
