"""`policy_value`: the value of rules on the log of another, beside their fairness regret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arguments import PLAIN, each, takes
from bayesfair.base.checks import check_count, counted, listed
from bayesfair.base.notices import Notice, unique
from bayesfair.base.progress import steps, tells
from bayesfair.errors import DataError, OptionError
from bayesfair.families import Family, family_named
from bayesfair.families.choose import family_of_levels
from bayesfair.families.learned import LearnedPrior
from bayesfair.families.priors import describe_prior
from bayesfair.history import History
from bayesfair.history.logs import logs_in
from bayesfair.history.thinned import refuse_thinned
from bayesfair.inference.beliefs import belief_start, iter_beliefs
from bayesfair.policies import Policy
from bayesfair.typing import Floats, Progress
from bayesfair.value.estimates import (
    NONE,
    doubly_robust,
    effective_sample_size,
    ips,
    self_normalised,
)
from bayesfair.value.result import PolicyValue, RuleValue
from bayesfair.value.rules import DEFAULT, Asked, Part, rows_in, rules_named

__all__ = ["policy_value", "value_numbers"]


LOGGED = "logged"
"""What the rule that was logged is called in the table."""

FEWEST = 30
"""Rounds of equal weight below which an interval of a mean is not to be trusted."""

_FAR = 4.0
"""Standard errors from 1 at which the mean weight says that the rule leaves what was logged."""


@takes(**each(PLAIN, "family", "from_round"))
@tells
def policy_value(
    history: History | Mapping[str, History],
    rules: Any = DEFAULT,
    *,
    family: str = "auto",
    prior: Any = None,
    support: Any = None,
    from_round: int = 0,
    progress: Progress = None,
) -> PolicyValue | dict[str, PolicyValue]:
    r"""Estimate what other rules would have earned per round, from a log of another rule.

    Parameters
    ----------
    history : History or mapping of label to History
        A log with the probabilities of all arms, or of the chosen one. Several logs are answered
        one by one.
    rules : optional
        ``"p_star"`` (chooses as P* says), ``"uniform"`` and ``"greedy"`` (the highest expected
        reward, ties evenly), by the beliefs before each round; the name of a rule of
        `bayesfair.policies` or an object of one, which learns from the log; probabilities
        ``(rounds, arms)``, ``(arms,)``, or a data frame with a column for each arm; or a function
        of the History that returns them. Several in a list, or in a mapping of name to rule. Row t
        may rest on what was known before round t only, else the estimates are biased. Over the arms
        on offer probabilities are rescaled to sum to 1.
    family, prior, support : optional
        Of the conjugate beliefs, as in `bayesfair.audit`.
    from_round : int
        First round that counts; earlier ones serve the beliefs.
    progress : bool or callable, optional
        How many rounds of a log are done, as in `bayesfair.audit`.

    Returns
    -------
    PolicyValue, or dict of label to PolicyValue
        Reward per round in the reward's units, by inverse propensity scoring, self-normalised, and
        doubly robust with the conjugate means before each round as the reward model, each with a
        95 % interval; effective sample size; and the fairness regret per round.

    Raises
    ------
    DataError
        For a log without probabilities, or with a reward that the family cannot hold.
    OptionError, ProbabilityError
        For what is no rule, naming it.

    Notes
    -----
    A rule that learns is evaluated on what the logged rule had learned: its value is the mean over
    the rounds of this log of the expected reward under its choice there, not what it would have
    earned had it gathered its own data. Rounds whose reward was not observed are left out of the
    value (read with ``missing=0`` they count as 0). Of a thinned log (``keep_prob``) each round
    counts 1 / keep_prob; there rules that rest on beliefs are refused, and no regret is told.

    Examples
    --------
    >>> log = History(["a", "b", "a", "b"], [1, 0, 1, 0], propensity=[0.5, 0.5, 0.25, 0.25])
    >>> found = policy_value(log, {"half": [0.5, 0.5]})
    >>> found["half"].ips.value, found["half"].self_normalised.value
    (0.75, 0.5)
    >>> found["half"].effective_sample_size
    3.6
    """
    named, first = rules_named(rules), check_count(from_round, "from_round")
    logs = logs_in(history)
    for log in logs:
        _check_log(log)
        if log.keep_prob is not None and (rests := _resting_on_beliefs(named)):
            refuse_thinned(log, f"the value of {listed(rests)}, which rests on beliefs,")
    notes: list[str] = []
    if family == "auto" and support is not None:
        family = "finite"
    rewards = np.concatenate([log.reward for log in logs] or [np.empty(0)])
    seen = rewards[~np.isnan(rewards)]
    if family == "auto":
        family, note = family_of_levels(np.unique(seen), seen.size)
        notes.append(note)
    of = family_named(family)
    if of.has_levels and support is None:
        support = of.levels(None, rewards)
        notes.append(Notice(
            f"The levels {listed([f'{v:g}' for v in support])} are those seen in the log, which "
            "looks ahead; give support= to fix them.", kind="levels_seen", column="support",
        ))  # fmt: skip
    question = _Question(named, of, prior, support, first, tuple(notes))
    if isinstance(history, Mapping):
        return {str(label): _value(log, question) for label, log in history.items()}
    return _value(history, question)


def value_numbers(found: PolicyValue | Mapping[str, PolicyValue]) -> dict[str, Any]:
    """Return what `policy_value` found as JSON-ready numbers, of several logs under ``groups``."""
    if isinstance(found, PolicyValue):
        return found.to_dict()
    return {"groups": {str(label): one.to_dict() for label, one in found.items()}}


class _Question(NamedTuple):
    rules: dict[str, Any]
    family: Family
    prior: Any
    support: Any
    from_round: int
    notes: tuple[str, ...]


class _Seen(NamedTuple):
    """Of every round of a log and one rule, (n,) each."""

    chosen: Floats
    """Probability that the rule gives to the chosen arm."""
    predicted: Floats
    """Reward that the beliefs expect of the rule."""
    regret: Floats
    unsupported: Floats


def _resting_on_beliefs(rules: dict[str, Any]) -> list[str]:
    """Return the names of the rules that learn from the log."""
    learns = ("p_star", "greedy")
    return [
        name for name, rule in rules.items()
        if isinstance(rule, Policy) or (isinstance(rule, str) and rule in learns)
    ]  # fmt: skip


def _check_log(log: Any) -> None:
    if not isinstance(log, History):
        read = hasattr(log, "chunks")
        raise OptionError(
            "the value of a rule needs the whole log in memory, and this one is read in parts; "
            "bayesfair.read_history reads it whole." if read else
            "policy_value: history must be a History (bayesfair.read_history) or a mapping of "
            f"label to them, got {type(log).__name__}.",
            kind="needs_whole" if read else "option_value", column="history",
        )  # fmt: skip
    if log.selection == "none":
        raise DataError(
            f"{log.source} has no logged probabilities, and the value of another rule rests on "
            "them. Log how probable the chosen arm was (propensity=) or the whole rule "
            "(probabilities=); if the rule is known, add its probabilities as a column.",
            kind="no_probabilities",
            source=log.source,
        )


def _value(log: History, question: _Question) -> PolicyValue:
    """Return the table of one log."""
    of, first = question.family, question.from_round
    begin, prior_rows = belief_start(log.arms, of, question.prior, log, question.support)
    learned = LearnedPrior.of(log.reward, log.known_at) if begin.from_data else None
    if learned is not None:
        prior_rows = learned.table(log.n_arms)
    asked = Asked(log, of, None if learned is not None else begin.parameters, begin.support)
    rows_of = {name: rows_in(name, rule, asked) for name, rule in question.rules.items()}
    n, pi = log.n_rounds, log.selection_probability
    logged = log.propensity if pi is None else pi[np.arange(n), log.arm]
    assert logged is not None
    seen, told = {name: _Seen(*np.zeros((4, n))) for name in rows_of}, steps("rounds", n)
    own, expected = _Seen(*np.full((4, n), np.nan)), np.zeros(n)
    for a, b, marginals, table, _ in iter_beliefs(log, of, begin, pairs=False):
        arm, at = log.arm[a:b], np.arange(b - a)
        some = None if log.offered is None else log.offered[a:b]
        best = np.nan_to_num(np.asarray(marginals.best_arm_probability(offered=some)))
        offered = np.ones((b - a, log.n_arms), bool) if some is None else some
        part = Part(a, b, best, of.mean(table, begin.support), offered)
        expected[a:b] = part.mean[at, arm]
        here = None if pi is None else np.nan_to_num(pi[a:b])
        for name, rows in rows_of.items():
            _put(seen[name], part, rows(part), arm, here)
        if here is not None:
            _put(own, part, here, arm, here)
        else:  # unbiased for it: the mean over the logged choice
            own.regret[a:b] = np.maximum(1 - best[at, arm] / logged[a:b], 0)
        told.add(b - a)
    counts = np.arange(n) >= first
    used = counts & ~np.isnan(log.reward)
    kept = log.keep_prob
    if kept is not None:  # what was believed then is not known
        for each in (own, *seen.values()):
            each.regret[:] = np.nan
    rest = log.reward, expected, counts, used, None if kept is None else 1 / kept
    found = [_rule_value(LOGGED, own, np.ones(n), *rest)]
    for name, of_rule in seen.items():
        weight = of_rule.chosen / logged
        found.append(_rule_value(name, of_rule, weight, *rest))
    return PolicyValue(
        log.source, tuple(found), int(counts.sum()), int(used.sum()), of.name,
        describe_prior(prior_rows, of, log.arms, learned),
        unique([*question.notes, *_notices(log, found, int(counts.sum()), int(used.sum()))]),
    )  # fmt: skip


def _put(
    seen: _Seen, part: Part, rows: Floats, arm: NDArray[np.int32], logged: Floats | None
) -> None:
    """Write what is kept of a rule in some rounds."""
    a, b = part.start, part.stop
    seen.chosen[a:b] = rows[np.arange(b - a), arm]
    seen.predicted[a:b] = (rows * part.mean).sum(axis=1)
    seen.regret[a:b] = np.maximum(part.best - rows, 0).sum(axis=1)
    seen.unsupported[a:b] = (
        np.nan if logged is None else np.where(logged > 0, 0.0, rows).sum(axis=1)
    )


def _rule_value(
    name: str, seen: _Seen, weight: Floats, reward: Floats, expected: Floats,
    counts: NDArray[np.bool_], used: NDArray[np.bool_], standing: Floats | None,
) -> RuleValue:  # fmt: skip
    """Return the numbers of a rule: its value from the rounds used, the rest from all."""
    r, w, m, mean = (values[used] for values in (reward, weight, expected, seen.predicted))
    known = not np.isnan(mean).any()  # the logged rule's is not, where only its choice was logged
    every = weight[counts]
    share = None if standing is None else standing[counts]
    stand = None if standing is None else standing[used]
    both = w if stand is None else w * stand

    def mean_of(values: Floats) -> float:
        return float(np.average(values, weights=share)) if every.size else np.nan

    return RuleValue(
        name, ips(r, w, stand), self_normalised(r, both),
        doubly_robust(r, w, m, mean, stand) if known else NONE, effective_sample_size(both),
        mean_of(every), float(every.max(initial=0.0)), mean_of(seen.unsupported[counts]),
        mean_of(seen.regret[counts]),
    )  # fmt: skip


def _notices(log: History, found: list[RuleValue], n: int, n_used: int) -> list[Notice]:
    notices = [] if log.keep_prob is None else [_thinned_notice(log)]
    if log.context is not None:
        notices.append(Notice(
            f"The context {listed(log.context.columns)} is not used for the values: p_star, "
            "greedy, the doubly robust estimate and the regrets rest on beliefs of all rounds "
            "together.",
            kind="context_unused", column="context", value=list(log.context.columns),
        ))  # fmt: skip
    if n_used < n:
        notices.append(Notice(
            f"{counted(n - n_used, 'round')} without an observed reward "
            f"{'is' if n - n_used == 1 else 'are'} left out of the values, as if rewards were "
            "missing whatever the arm and the reward; missing=0 counts them as 0.",
            kind="unobserved", n=n - n_used,
        ))  # fmt: skip
    if small := [one for one in found if one.effective_sample_size < FEWEST]:
        sizes = ", ".join(f"{one.rule!r} {one.effective_sample_size:.1f}" for one in small)
        notices.append(Notice(
            f"Effective sample size below {FEWEST}, too small for an estimate or its interval to "
            f"carry anything: {sizes}.",
            kind="small_effective_sample", value=min(one.effective_sample_size for one in small),
            n=len(small),
        ))  # fmt: skip
    for one in found:
        size = one.effective_sample_size
        if one.unsupported > 0:
            notices.append(Notice(
                f"{one.rule!r} gives {one.unsupported:.4f} of its probability to arms that the "
                "logged rule could not choose in the round: there the log says nothing of it. IPS "
                "counts them as reward 0, the doubly robust estimate as the beliefs expect.",
                kind="unsupported", value=one.unsupported,
            ))  # fmt: skip
        elif np.isnan(one.unsupported) and size >= FEWEST:
            # Var(w) = E[w^2] - mean^2, from the effective sample size
            even = n_used if log.keep_prob is None else found[0].effective_sample_size
            error = one.mean_weight * np.sqrt(max(1 / size - 1 / even, 0.0))
            if abs(one.mean_weight - 1) > _FAR * error + 1e-9:
                notices.append(Notice(
                    f"{one.rule!r}: its weights have the mean {one.mean_weight:.4f}, and it should "
                    "be 1: the rule chooses arms that the logged rule hardly or never chooses, or "
                    "the logged probabilities are not those of the choices.",
                    kind="mean_weight", value=one.mean_weight,
                ))  # fmt: skip
    return notices


def _thinned_notice(log: History) -> Notice:
    """Return what the values of a thinned log rest on."""
    assert log.keep_prob is not None
    total = float((1 / log.keep_prob).sum())
    return Notice(
        f"The log is thinned: {counted(log.n_rounds, 'round')} kept with "
        f"{_chances(float(log.keep_prob.min()), float(log.keep_prob.max()))} (keep_prob) stand for "
        "about "
        f"{total:.0f}, each for 1 / keep_prob. Values are reweighted so. What the rule had seen "
        "before each round cannot be followed, so no fairness regret is told; the doubly robust "
        "estimate expects what the kept rounds taught.",
        kind="thinned", column="keep_prob", value=total, n=log.n_rounds,
    )  # fmt: skip


def _chances(low: float, high: float) -> str:
    return f"chance {low:g}" if low == high else f"chances from {low:g} to {high:g}"
