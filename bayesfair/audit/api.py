"""`audit`: from a log to a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bayesfair.audit.conclusion import Question, conclude
from bayesfair.audit.criterion import Criterion, check_judge, eps2_options, finite_or_text
from bayesfair.audit.group import AuditGroup
from bayesfair.audit.log.arm_groups import with_arm_groups
from bayesfair.audit.log.common_rewards import common_rewards
from bayesfair.audit.log.limits import check_size, in_parts
from bayesfair.audit.log.model_beliefs import audit_with_beliefs_model
from bayesfair.audit.log.rounds import iter_results
from bayesfair.audit.log.start import most_offered, start_of
from bayesfair.audit.log.state import AuditState, check_log, parts_of
from bayesfair.audit.log.summary import Summary, summarise
from bayesfair.audit.log.unused import refuse_unused
from bayesfair.audit.result import Audit
from bayesfair.audit.saved.checkpoint import (
    as_at_first,
    begun,
    check_logs,
    check_question,
    checkpoint_for,
)
from bayesfair.audit.saved.unfinished import Followed
from bayesfair.audit.together import Audits, pass_over
from bayesfair.base.arguments import CALL, PLAIN, each, takes
from bayesfair.base.checks import check_in_range, did_you_mean, no_seed
from bayesfair.base.labels import by_label
from bayesfair.base.notices import Notice
from bayesfair.base.options import given
from bayesfair.errors import DataError, OptionError
from bayesfair.families.finite import check_support
from bayesfair.history import History
from bayesfair.history.logs import Logs, logs_in
from bayesfair.inference.contract import family_of_models
from bayesfair.kernels.team import usable_cores
from bayesfair.rewards import Rewards

__all__ = ["audit"]

_OPTIONS = (
    "eps1", "eps2", "delta", "divergence", "reward_divergence", "family", "prior", "support",
    "model", "beliefs_model", "truth", "objective", "tolerance", "draws", "seed", "from_round",
    "judge", "arm_groups", "partial",
)  # fmt: skip

_NO_FILE = ("memory", "data frame")
"""Sources that are no names of files."""


@takes(
    **each(PLAIN, "eps1", "family", "divergence", "reward_divergence", "objective", "judge"),
    progress=CALL,
)
def audit(
    data: Any,
    *,
    eps1: float = 2.0,
    eps2: float | None = None,
    delta: float = 0.05,
    divergence: str = "total_variation",
    reward_divergence: str | None = None,
    family: str = "auto",
    prior: Any = None,
    support: Any = None,
    model: Any = None,
    beliefs_model: Any = None,
    truth: Rewards | None = None,
    objective: bool = True,
    tolerance: float | None = None,
    draws: int = 4000,
    seed: Any = None,
    from_round: int = 0,
    judge: str = "both",
    arm_groups: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
    partial: Any = None,
    **model_options: Any,
) -> Audit | AuditGroup:
    r"""Audit a log for smooth fairness and calibration.

    Smooth fairness: :math:`D(\pi_t(i)\|\pi_t(j)) \le \epsilon_1 D(r_i\|r_j) + \epsilon_2` in every
    round and for every pair, *subjective* (against the beliefs before the round) and *objective*
    (against the true rewards). Calibration: the fairness regret
    :math:`\sum_i \max(P^*(i) - \pi_t(i), 0)`.

    Parameters
    ----------
    data : History, HistoryScan, or mapping of label to them
        What was logged. A mapping (``by=``) is audited group by group.
    eps1, eps2, delta : float
        The criterion. ``eps2=None`` means min(.05, 1/(2k)), where k is the most arms on offer in
        one round, the same for all groups; it is fixed where the log begins, and a later part with
        more arms on offer keeps it. ``delta`` concerns the objective verdict only: ``fair`` from a
        posterior probability 1 - delta on, ``unfair`` up to delta.
    divergence, reward_divergence : str
        D between decisions; D between rewards (default the same): total_variation, kl, hellinger,
        chi2, jensen_shannon, wasserstein.
    family : str
        ``"auto"``, ``"bernoulli"``, ``"finite"``, ``"poisson"``, ``"normal"``.
    prior : optional
        Parameters of the conjugate prior, for all arms, ``(k, p)``, or by label; Bernoulli:
        (alpha, beta), default Jeffreys (1/2, 1/2). That of measurements is by default centred and
        scaled by the first 20 known rewards and then frozen; in earlier rounds by those known then
        (a notice ``prior_learned`` says which rounds). Or an earlier audit (a loaded one, or its
        ``state``), to go on where it ended; of several logs for several logs. An audit that was
        interrupted goes on with its own log, from where it stopped.
    support : sequence of float, optional
        All values that a reward can take, for family ``"finite"`` (then the default); else those
        seen in the log (in all logs of a mapping), or in the first part of one scan.
    model : str or callable, optional
        Posterior of the true rewards from a PyMC model instead of the conjugate one: a name in
        `bayesfair.models` or a function ``build(history)``.
    beliefs_model : str or callable, optional
        Model of the beliefs before each round; default conjugate.
    truth : Rewards, optional
        Known true rewards: the objective part is exact. One set of arms, or one for each round
        (batch shape ``(n_rounds,)``). Excludes `model`.
    objective : bool
        False leaves the objective part out (no draws, no seed).
    tolerance : float, optional
        Excesses up to eps2 + tolerance are no violations; default 1e-9, raised with a notice to
        the resolution of the logged numbers.
    draws : int
        Posterior draws.
    seed : int or Generator
        Required wherever something is drawn. Several logs share the stream: an int is the seed of
        each of them, so each has the draws of its audit alone, and logs with the same posterior
        the same ones; a Generator gives that int.
    from_round : int
        First round that is judged, counted from 0 at the start of the log (of each group). The
        rounds before it serve the beliefs alone: every number is of the judged rounds.
    judge : str
        Whose verdict is the top one: ``"subjective"``, ``"objective"``, or ``"both"``: unfair if
        either is, fair only if both are; the objective one where `truth` is given.
    arm_groups : mapping of label to group, optional
        Also report pairs between and within groups of arms.
    progress : callable, optional
        Called with the number of rounds done after each part of a scan.
    partial : str, Path or Checkpoint, optional
        File that holds the audit of the rounds seen so far, written every minute and when the audit
        is interrupted (Ctrl-C), between two parts of a scan; `load_audit` reads it, and
        `Audit.resume` goes on. It is removed when the audit is complete.
    **model_options
        Passed to `bayesfair.fit`.

    Returns
    -------
    Audit or AuditGroup
        Unfair is a result, never an exception.

    Raises
    ------
    DataError, ProbabilityError, OptionError
        Naming what is wrong and the remedy.
    ConvergenceError
        If a model did not converge.

    References
    ----------
    .. [1] Liu, Radanovic, Dimitrakakis, Mandal, Parkes (2017), arXiv:1707.01875.

    Examples
    --------
    >>> history = History(
    ...     ["a", "b", "a"], [1, 0, 1], selection_probability=[[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    ... )
    >>> result = audit(history, eps1=1, eps2=0.1, seed=1)
    >>> result.subjective_verdict, result.smallest_eps2
    ('fair', 0.0)
    """
    if model_options and model is None and beliefs_model is None:
        name = next(iter(model_options))
        raise OptionError(
            f"audit has no option {name!r}.{did_you_mean(name, _OPTIONS)} (Other options are "
            "passed to the model, and no model= was given.)"
        )
    if not check_in_range(draws, "draws", 1, 1e8).is_integer():
        raise OptionError(f"draws={draws!r} must be a whole number.")
    draws = int(draws)
    if truth is not None and not isinstance(truth, Rewards):
        raise OptionError(
            f"truth={truth!r} must be the true reward laws, such as "
            "bayesfair.rewards.Bernoulli([0.6, 0.5])."
        )
    if truth is not None and model is not None:
        raise OptionError("give truth= (known rewards) or model= (a posterior of them), not both.")
    drawn = (objective and truth is None) or beliefs_model is not None
    refuse_unused(given(audit, locals()), data, drawn=drawn)
    if objective and truth is None and seed is None:
        raise no_seed("the objective part draws from a posterior", ", or objective=False")
    check_judge(judge, objective)
    criterion = Criterion(
        eps1=eps1,
        **eps2_options(eps2, 0 if eps2 is not None else _eps2_arms(data, prior)),
        delta=delta,
        from_round=from_round,
        judge=judge,
        divergence=divergence,
        reward_divergence=reward_divergence or divergence,
        tolerance=1e-9 if tolerance is None else tolerance,
        tolerance_given=tolerance is not None,
    )
    question = Question(
        criterion=criterion,
        tolerance=tolerance,
        family=family_of_models(family, model, beliefs_model),
        prior=prior,
        support=None if support is None else check_support(support),
        model=model,
        beliefs_model=beliefs_model,
        truth=truth,
        objective=objective,
        draws=draws,
        seed=seed,
        options=model_options,
        progress=progress,
        checkpoint=checkpoint_for(partial, data, prior, beliefs_model),
    )
    keeper = question.checkpoint
    if keeper is None:
        return _answer(data, question, arm_groups)
    keeper.begin(prior, arm_groups, several=isinstance(data, Mapping))
    with keeper.kept_if_interrupted():
        found = _answer(data, question, arm_groups)
    if keeper is not partial:
        keeper.drop()
    return found


def _answer(
    data: Any, question: Question, arm_groups: Mapping[str, str] | None
) -> Audit | AuditGroup:
    if isinstance(data, Mapping):
        if not data:
            raise DataError("there is no log to audit: the mapping of groups is empty.")
        logs = data if isinstance(data, Logs) else by_label(data, "group", "data")
        question = common_rewards(logs, question)
        check_logs(logs, question.prior)
        if isinstance(question.seed, np.random.Generator):  # the same draws whatever the order
            question = replace(question, seed=int(question.seed.integers(1 << 63)))
        if isinstance(logs, Logs) and (found := _together(logs, question, arm_groups)):
            return found
        return AuditGroup(
            {
                label: _grouped(_audit_next(label, log, question), arm_groups)
                for label, log in logs.items()
            }
        )
    if isinstance(question.prior, AuditGroup):
        raise OptionError(
            "prior= is an audit of several logs, and this is one log: give prior=earlier[label]."
        )
    return _grouped(_audit_one(data, question), arm_groups)


def _together(
    logs: Logs, question: Question, arm_groups: Mapping[str, str] | None
) -> AuditGroup | None:
    """Return the audits of many logs by one pass over all of them, where that can be."""
    quiet = replace(question, progress=None)

    def one(label: str) -> Audit:
        return _grouped(_audit_next(label, logs[label], quiet), arm_groups)

    audits = Audits(logs, one)
    found = pass_over(logs, question, audits)
    if found is None:
        return None
    if question.progress is not None:
        question.progress(logs.together.rounds.n_rounds)
    return AuditGroup(audits, together=found)


def _eps2_arms(data: Any, prior: Any) -> int:
    """Return for how many arms the default eps2 is made: kept from where the log began."""
    if isinstance(prior, AuditGroup):
        prior = next(iter(prior.audits.values()))
    earlier = getattr(prior, "state", prior)
    if isinstance(earlier, AuditState) and earlier.eps2_arms is not None:
        return earlier.eps2_arms
    return max((most_offered(log) for log in logs_in(data)), default=1)


def _grouped(result: Audit, arm_groups: Mapping[str, str] | None) -> Audit:
    if arm_groups is None:
        return result
    return with_arm_groups(result, arm_groups)


def _audit_one(data: Any, question: Question) -> Audit:
    check_log(data)
    if question.truth is not None:
        question = replace(question, truth=question.truth.for_arms(data.arms))
    resumed = isinstance(getattr(question.prior, "state", question.prior), AuditState)
    resumed = resumed and begun(question) is None  # else the whole log is there
    for name in ("model", "beliefs_model"):
        if resumed and getattr(question, name) is not None:
            raise OptionError(
                f"{name}= needs the whole log for its posterior and cannot go on from an earlier "
                f"audit (prior=); audit the whole log, or leave {name} out."
            )
    if question.beliefs_model is not None:
        summary, notes = audit_with_beliefs_model(data, question)
    else:
        summary, notes = _summarise_log(data, question)
    earlier = begun(question)
    joined = earlier is not None and earlier.unfinished is not None and earlier.unfinished.before
    result = replace(conclude(summary, question, notes, data), data=None if joined else data)
    if question.truth is None or not isinstance(data, History):
        return result
    from bayesfair.simulation.performance import utility

    first = min(question.criterion.from_round, data.n_rounds)
    if first == data.n_rounds:
        return result
    truth = question.truth[first:] if question.truth.batch_shape else question.truth
    found = utility(data.rounds(first, data.n_rounds), truth)
    return replace(result, extra={"utility": _finite(found.to_dict())})


def _audit_next(label: str, log: Any, question: Question) -> Audit:
    """Audit one of several logs, from where the earlier audit of the same label ended."""
    question = replace(question, label=label)
    if not isinstance(question.prior, AuditGroup):
        return _audit_one(log, question)
    if label in question.prior.audits:
        return _audit_one(log, replace(question, prior=question.prior[label]))
    if question.prior.unfinished:  # it was not begun
        return _audit_one(log, as_at_first(question, question.prior))
    check_log(log)
    result = _audit_one(log, replace(question, prior=question.prior.start_for(label, log.arms)))
    note = Notice(
        "The earlier audit had no such group: its beliefs start from the prior.", kind="new_group"
    )
    summary = result.summary.noted(note)
    return replace(result, summary=summary, findings=(note, *result.findings))


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: finite_or_text(value) for name, value in values.items()}


def _summarise_log(data: Any, question: Question) -> tuple[Summary, list[str]]:
    earlier = begun(question)
    total: Summary | None = None
    notes: list[str] = []
    if earlier is None:
        start, notes = _start(data, question)
    else:
        total, start = earlier.summary, earlier.summary.start
        check_question(total, question)
    log = data
    if earlier is not None or question.checkpoint is not None:
        log = Followed(data, None if earlier is None else earlier.unfinished)
    elif question.progress is not None and isinstance(data, History):
        log = in_parts(data, start.family)
    threads = usable_cores()
    state = start if total is None else total.end
    for part, result, begin in iter_results(log, state, question.criterion, threads=threads):
        summary = summarise(part, begin, question.criterion, result, threads)
        summary = replace(summary, start=state)
        if total is None:  # notes belong to the summary, so that merged audits keep them
            total = summary.noted(*notes)
        else:
            total = total.merged(summary)
        state = summary.end
        if question.checkpoint is not None:
            question.checkpoint.seen(question.label, total, question, log)
        if question.progress is not None:
            question.progress(state.n_rounds - start.n_rounds)
    assert total is not None
    return total, []


def _start(data: Any, question: Question) -> tuple[AuditState, list[str]]:
    """Return the beliefs before the first round, and notices."""
    first = data if isinstance(data, History) else next(iter(parts_of(data)), None)
    if first is None or first.n_rounds == 0:
        raise DataError(f"{getattr(data, 'source', 'the log')} has no rounds to audit.")
    start, note = start_of(data, question.family, question.prior, first, question.support)
    notes: list[str] = list(check_size(data, start.family, draws=question.n_drawn))
    if question.criterion.eps2_arms is not None:
        start = replace(start, eps2_arms=question.criterion.eps2_arms)
    notes += [note] if note else []
    if isinstance(question.prior, Audit):
        notes += _same_log_again(question.prior.summary, first)
    if first.prior_counts is not None and start.n_rounds == 0:
        before = float(first.prior_counts.sum())
        notes.append(Notice(
            f"The log starts mid-run: {before:.12g} outcomes from before it count in the beliefs, "
            "not in its rounds.",
            kind="outcomes_before", n=before,
        ))  # fmt: skip
    return start, notes


def _same_log_again(earlier: Summary, part: History) -> list[str]:
    """Return a notice if the earlier audit ended with a log of the same name.

    There is none if all rows of the part lie behind those seen: then it is a slice of one log.
    """
    source, worst = part.source, earlier.pairs.worst
    if source in _NO_FILE or source != earlier.facts.last_source:
        return []
    if part.row is not None and worst is not None and worst.source == source:
        seen = max(worst.row or 0, earlier.end.n_rounds + 1)
        if part.row.min() > seen:
            return []
    return [
        Notice(
            f"{source} is the name of the last log in the audit that this one continues: is it the "
            "same log again? Then its rounds count twice.",
            kind="same_log_again",
            value=source,
        )
    ]
