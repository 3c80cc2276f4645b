"""`audit`: from a log to a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion, finite_or_text
from bayesfair.audit.findings import log_findings
from bayesfair.audit.group import AuditGroup
from bayesfair.audit.objective import (
    Objective,
    Part,
    evaluate,
    parts_from_cells,
    with_draw_axis,
)
from bayesfair.audit.result import Audit, Settings
from bayesfair.audit.running import check_log, iter_results, n_threads, parts_of, start_of
from bayesfair.audit.state import AuditState
from bayesfair.audit.summary import Summary, summarise
from bayesfair.checks import as_generator, check_in_range, did_you_mean, listed
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History
from bayesfair.inference.contract import family_of_models, label_of
from bayesfair.kernels.stream_state import ROUNDING
from bayesfair.notices import unique
from bayesfair.priors import describe_prior
from bayesfair.rewards import Bernoulli, Rewards
from bayesfair.sufficient import check_support, choose_family, seen_levels

__all__ = ["Question", "audit", "conclude"]

_OPTIONS = (
    "eps1", "eps2", "delta", "divergence", "reward_divergence", "family", "prior", "support",
    "model", "beliefs_model", "truth", "objective", "tolerance", "draws", "seed", "arm_groups",
)  # fmt: skip

_NO_FILE = ("memory", "data frame")
"""Sources that are no names of files."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """The options of an audit that apply to every group alike."""

    criterion: Criterion
    tolerance: float | None
    family: str
    prior: Any
    model: Any
    beliefs_model: Any
    truth: Rewards | None
    objective: bool
    draws: int
    seed: Any
    options: Mapping[str, Any]
    progress: Callable[[int], None] | None
    support: NDArray[np.float64] | None = None


def audit(
    data: Any,
    *,
    eps1: float = 2.0,
    eps2: float = 0.05,
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
    arm_groups: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
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
        The criterion. ``delta`` concerns the objective verdict only: ``fair`` from a posterior
        probability 1 - delta on, ``unfair`` up to delta.
    divergence, reward_divergence : str
        D between decisions; D between rewards (default the same): total_variation, kl, hellinger,
        chi2, jensen_shannon, wasserstein.
    family : str
        ``"auto"``, ``"bernoulli"``, ``"finite"``, ``"poisson"``, ``"normal"``.
    prior : optional
        Parameters of the conjugate prior, for all arms, ``(k, p)``, or by label; Bernoulli:
        (alpha, beta), default Jeffreys (1/2, 1/2). Or an earlier audit (a loaded one, or its
        ``state``), to go on where it ended; of several logs for several logs.
    support : sequence of float, optional
        All values that a reward can take, for family ``"finite"`` (then the default); else those
        seen in the log, or in the first part of a scan.
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
        Required wherever something is drawn.
    arm_groups : mapping of label to group, optional
        Also report pairs between and within groups of arms.
    progress : callable, optional
        Called with the number of rounds done after each part of a scan.
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
    if objective and truth is None and seed is None:
        raise OptionError(
            "seed= is required: the objective part draws from a posterior, and a result that "
            "cannot be repeated is no audit. Give an int or a Generator, or objective=False."
        )
    criterion = Criterion(
        eps1=eps1,
        eps2=eps2,
        delta=delta,
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
    )
    if isinstance(data, Mapping):
        if not data:
            raise DataError("there is no log to audit: the mapping of groups is empty.")
        question = _common_rewards(data, question)
        return AuditGroup(
            {
                label: _grouped(_audit_next(label, log, question), arm_groups)
                for label, log in ((str(name), log) for name, log in data.items())
            }
        )
    if isinstance(prior, AuditGroup):
        raise OptionError(
            "prior= is an audit of several logs, and this is one log: give prior=earlier[label]."
        )
    return _grouped(_audit_one(data, question), arm_groups)


def _grouped(result: Audit, arm_groups: Mapping[str, str] | None) -> Audit:
    if arm_groups is None:
        return result
    from bayesfair.audit.arm_groups import with_arm_groups

    return with_arm_groups(result, arm_groups)


def _common_rewards(data: Mapping[Any, Any], question: Question) -> Question:
    """Let all groups have one family, that of their rewards together, and the same values."""
    logs = [log for log in data.values() if isinstance(log, History)]
    resumed = isinstance(question.prior, AuditGroup)
    if question.support is not None or resumed or len(logs) != len(data):
        return question
    rewards = np.concatenate([log.reward for log in logs])
    family = question.family
    if family == "auto":
        family = choose_family(History(np.zeros(len(rewards), dtype=np.int32), rewards))[0]
    support = seen_levels(rewards) if family == "finite" else None
    return replace(question, family=family, support=support)


def _audit_one(data: Any, question: Question) -> Audit:
    check_log(data)
    resumed = isinstance(getattr(question.prior, "state", question.prior), AuditState)
    for name in ("model", "beliefs_model"):
        if resumed and getattr(question, name) is not None:
            raise OptionError(
                f"{name}= needs the whole log for its posterior and cannot go on from an earlier "
                f"audit (prior=); audit the whole log, or leave {name} out."
            )
    if question.beliefs_model is not None:
        from bayesfair.audit.general import audit_with_beliefs_model

        summary, notes = audit_with_beliefs_model(data, question)
    else:
        summary, notes = _summarise_log(data, question)
    result = replace(conclude(summary, question, notes, data), data=data)
    if question.truth is None or not isinstance(data, History):
        return result
    from bayesfair.performance import utility

    found = utility(data, question.truth)
    return replace(result, extra={"utility": _finite(found.to_dict())})


def _audit_next(label: str, log: Any, question: Question) -> Audit:
    """Audit one of several logs, from where the earlier audit of the same label ended."""
    if not isinstance(question.prior, AuditGroup):
        return _audit_one(log, question)
    if label in question.prior.audits:
        return _audit_one(log, replace(question, prior=question.prior[label]))
    check_log(log)
    result = _audit_one(log, replace(question, prior=question.prior.start_for(label, log.arms)))
    note = "The earlier audit had no such group: its beliefs start from the prior."
    summary = replace(result.summary, notices=(note, *result.summary.notices))
    return replace(result, summary=summary, findings=(note, *result.findings))


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: finite_or_text(value) for name, value in values.items()}


def _summarise_log(data: Any, question: Question) -> tuple[Summary, list[str]]:
    first = data if isinstance(data, History) else next(iter(parts_of(data)), None)
    if first is None or first.n_rounds == 0:
        raise DataError(f"{getattr(data, 'source', 'the log')} has no rounds to audit.")
    start, note = start_of(data, question.family, question.prior, first, question.support)
    notes = [note] if note else []
    if isinstance(question.prior, Audit):
        notes += _same_log_again(question.prior.summary, first)
    if first.prior_counts is not None and start.n_rounds == 0:
        notes.append(
            f"The log starts mid-run: {first.prior_counts.sum():g} outcomes from before it count "
            "in the beliefs, not in its rounds."
        )
    threads = n_threads()
    total: Summary | None = None
    state = start
    for part, result in iter_results(data, start, question.criterion, threads=threads):
        summary = summarise(part, state, question.criterion, result, threads)
        total = summary if total is None else total.merged(summary)
        state = summary.end
        if question.progress is not None:
            question.progress(state.n_rounds - start.n_rounds)
    assert total is not None
    # they belong to the summary, so that merged audits keep them
    return replace(total, notices=(*notes, *total.notices)), []


def _same_log_again(earlier: Summary, part: History) -> list[str]:
    """Return a notice if the earlier audit ended with a log of the same name.

    There is none if all rows of the part lie behind those seen: then it is a slice of one log.
    """
    source, worst = part.source, earlier.worst
    if source in _NO_FILE or source != earlier.last_source:
        return []
    if part.row is not None and worst is not None and worst.source == source:
        seen = max(worst.row or 0, earlier.end.n_rounds + 1)
        if part.row.min() > seen:
            return []
    return [
        f"{source} is the name of the last log in the audit that this one continues: is it the "
        "same log again? Then its rounds count twice."
    ]


def conclude(summary: Summary, question: Question, notes: list[str], data: Any) -> Audit:
    """Add tolerance, objective part and notices to a summary."""
    notices = [*notes, *summary.notices, *summary.repairs.sentences(), *log_findings(summary)]
    tolerance = question.criterion.tolerance
    if question.tolerance is None and summary.selection == "full":
        unit = summary.resolution.unit
        if unit > tolerance:
            tolerance = unit + ROUNDING
            notices.append(
                f"The selection probabilities were logged to about {unit:.1g}; excesses up to that "
                "are not counted as violations (tolerance= changes this)."
            )
    criterion = replace(question.criterion, tolerance=tolerance)
    regret = objective = None
    if question.objective:
        rng = as_generator(0 if question.seed is None else question.seed)
        objective, more = _objective(summary, question, rng, data)
        notices += more
        regret = objective.regret_estimate(rng, exact=question.truth is not None)
    else:
        notices.append("The objective part was left out on request (objective=False).")
    if objective is not None and objective.error > 1e-12:
        notices.append(
            f"Objective regret per round comes from a histogram of the logged probabilities; its "
            f"binning error is at most {objective.error:.1e}."
        )
    if len(summary.arms) == 1:
        notices.append("There is one arm only: no pair to compare, and P* is 1.")
    if not criterion.is_total_variation:
        from bayesfair.fairness import guarantee_note

        notices.append(guarantee_note(criterion.divergence, criterion.reward_divergence))
    model = question.model
    model_name = "truth" if question.truth is not None else (
        "conjugate" if model is None else label_of(model)
    )  # fmt: skip
    settings = Settings(
        family=summary.start.family,
        model=model_name if question.objective else None,
        prior=_prior_words(summary, question),
        seed=int(question.seed) if isinstance(question.seed, (int, np.integer)) else None,
        draws=question.draws,
        beliefs_model=None if question.beliefs_model is None else label_of(question.beliefs_model),
    )
    return Audit(
        criterion=criterion,
        settings=settings,
        summary=summary,
        objective=objective,
        regret_objective=regret,
        findings=unique(notices),
        model_options=_model_options(question),
    )


def _model_options(question: Question) -> dict[str, Any]:
    """Return the options that went to the model of the true rewards."""
    if question.model is None:
        return {}
    from bayesfair.audit.general import model_options

    return model_options(question)["model"]


def _prior_words(summary: Summary, question: Question) -> str:
    """Return the conjugate prior in words, unless models take its place everywhere."""
    drawn = question.objective and question.truth is None
    if question.beliefs_model is not None and (question.model is not None or not drawn):
        return "that of the models, see the notices"
    return describe_prior(summary.start.prior, summary.start.family, summary.arms)


def _objective(
    summary: Summary, question: Question, rng: np.random.Generator, data: Any
) -> tuple[Objective, list[str]]:
    """Return the objective part from known rewards, a model's posterior, or the conjugate one."""
    k, sums = len(summary.arms), summary.sums
    notices: list[str] = []
    if question.truth is not None:
        rewards = with_draw_axis(question.truth)
        if rewards.n_arms != k:
            raise OptionError(
                f"truth has {rewards.n_arms} arms, the log has {k}: {listed(summary.arms)}."
            )
        notices.append("The objective part is exact: it uses the known true rewards given.")
        if question.truth.batch_shape:
            from bayesfair.audit.moving_truth import objective_by_round

            return objective_by_round(data, question.truth, question.criterion), notices
    elif question.model is not None:
        from bayesfair.audit.general import parts_under_model

        parts, notices = parts_under_model(data, summary, question)
        return evaluate(parts, question.criterion), notices
    elif question.beliefs_model is not None:
        from bayesfair.audit.general import posterior_of_log

        rewards = posterior_of_log(data, summary.start, question.draws, rng, question.support)
        notices.append(
            "The true rewards are drawn from the conjugate posterior of the whole log, not from "
            "the model of the beliefs; model= chooses another."
        )
    elif summary.start.family == "bernoulli":
        table = summary.end.posterior
        draws = rng.beta(table[:, 0], table[:, 1], size=(question.draws, k))
        rewards = Bernoulli(draws, arms=summary.arms)
    else:
        from bayesfair.audit.general import posterior_rewards

        rewards = posterior_rewards(summary, question.draws, rng)
    if summary.selection == "none":
        shares = sums.plays / max(sums.n_rounds, 1)
        parts = [Part(None, sums.n_rounds, rewards, None, shares)]
    else:
        parts = parts_from_cells(summary.cells, rewards, k)
    return evaluate(parts, question.criterion), notices
