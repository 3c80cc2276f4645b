"""Rules whose value is asked for: their probabilities in every round of a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.checks import did_you_mean, first_where, listed, shown
from bayesfair.errors import DataError, OptionError, ProbabilityError
from bayesfair.families import Family
from bayesfair.history import History
from bayesfair.history.given import by_name, column_labels
from bayesfair.policies import POLICIES, Policy, policy_from_name
from bayesfair.typing import Floats

__all__ = ["DEFAULT", "Asked", "Part", "rows_in", "rules_named"]


DEFAULT = ("p_star", "uniform", "greedy")
"""By the beliefs before each round, which are at hand."""

_BY_NAME = [name for name, rule in POLICIES.items() if issubclass(rule, Policy)]  # not of duels

_OFF = 1e-6
"""A row may sum to so much more or less than 1."""


class Part(NamedTuple):
    """Some rounds of a log, with what was believed before each.

    Attributes
    ----------
    start, stop : int
        First round, and the one after the last.
    best, mean : (n, k) arrays
        P* (0 for an arm that is not on offer), and the expected reward.
    offered : (n, k) array of bool
        Arms on offer.
    """

    start: int
    stop: int
    best: Floats
    mean: Floats
    offered: NDArray[np.bool_]


class Asked(NamedTuple):
    """A log, and how rules learn from it.

    Attributes
    ----------
    history : History
    family : Family
    prior : (k, p) array or None
        None: a prior that the first rewards tell.
    support : (L,) array
        Levels of a finite reward, else empty.
    """

    history: History
    family: Family
    prior: Floats | None
    support: Floats


def rules_named(rules: Any) -> dict[str, Any]:
    """Return name -> rule of what was given: a mapping, a rule or several, checked by kind.

    Raises
    ------
    OptionError
        If there is none, one is of no kind that is a rule, or two have the same name.

    Examples
    --------
    >>> from bayesfair.policies import Softmax
    >>> list(rules_named(["p_star", Softmax()]))
    ['p_star', 'softmax(temperature=0.1)']
    """
    if isinstance(rules, Mapping):
        named = [(str(name), rule) for name, rule in rules.items()]
    else:
        one = isinstance(rules, (str, Policy, np.ndarray)) or hasattr(rules, "columns")
        several = [rules] if one or callable(rules) else rules
        if not isinstance(several, (list, tuple)):
            raise _no_rule("rules", rules)
        named = [(_name_of(rule, i), rule) for i, rule in enumerate(several)]
    if not named:
        raise OptionError(
            f"rules is empty; name a rule: {listed(DEFAULT)}.", kind="option_value", column="rules"
        )
    found: dict[str, Any] = {}
    for name, rule in named:
        if name in found:
            raise OptionError(
                f"rules has {name!r} twice; name each rule once.",
                kind="option_value", column="rules", value=name,
            )  # fmt: skip
        found[name] = _rule_of(name, rule)
    return found


def _name_of(rule: Any, i: int) -> str:
    if isinstance(rule, str):
        return rule.replace("-", "_").casefold()
    if isinstance(rule, Policy):
        return rule.describe()
    called = getattr(rule, "__name__", "")
    return called if called.isidentifier() else f"rule {i + 1}"


def _rule_of(name: str, rule: Any) -> Any:
    """Return a rule as it is applied: a default's name, a policy, a function or an array."""
    if isinstance(rule, str):
        known = list(dict.fromkeys((*DEFAULT, *_BY_NAME)))
        word = rule.replace("-", "_").casefold()
        if word not in known:
            raise OptionError(
                f"rules names {rule!r}. Known rules: {listed(known, 99)}."
                f"{did_you_mean(word, known)} Or give an array (rounds, arms), a function of the "
                "History that returns one, or an object of bayesfair.policies.",
                kind="unknown_rule", column="rules", value=rule,
            )  # fmt: skip
        rule = word if word in DEFAULT else policy_from_name(word)
    elif not (
        isinstance(rule, Policy)
        or (callable(rule) and not isinstance(rule, type))
        or _is_table(rule)
    ):
        raise _no_rule(f"rules[{name!r}]", rule)
    return rule


def _is_table(rule: Any) -> bool:
    try:
        return np.ndim(rule) in (1, 2)
    except (TypeError, ValueError):  # what is no array, such as a fit, or lists of many lengths
        return False


def _no_rule(what: str, given: Any) -> OptionError:
    return OptionError(
        f"{what}={shown(given)} is no rule: give {listed(DEFAULT)}, the name or an object of "
        "bayesfair.policies, an array (rounds, arms) of probabilities, or a function of the "
        "History that returns one; several in a list, or in a mapping with names.",
        kind="option_value",
        column="rules",
        value=shown(given),
    )


def rows_in(name: str, rule: Any, asked: Asked) -> Callable[[Part], Floats]:
    """Return the function that gives the probabilities of a rule in some rounds, ``(n, k)``.

    Arms that are not on offer have 0, the others sum to 1.

    Raises
    ------
    DataError, ProbabilityError
        Naming the rule, the round and what its probabilities must be.
    """
    if isinstance(rule, str):
        return {"p_star": _p_star, "uniform": _uniform, "greedy": _greedy}[rule]
    history = asked.history
    if isinstance(rule, Policy):
        return _cut(_replayed(rule, asked))
    rows = rule(history) if callable(rule) else rule
    return _cut(_checked(name, rows, history))


def _p_star(part: Part) -> Floats:
    return part.best


def _uniform(part: Part) -> Floats:
    return np.asarray(part.offered / part.offered.sum(axis=1, keepdims=True))


def _greedy(part: Part) -> Floats:
    value = np.where(part.offered, part.mean, -np.inf)
    best = value == value.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))


def _cut(rows: Floats) -> Callable[[Part], Floats]:
    return lambda part: rows[part.start : part.stop]


def _checked(name: str, given: Any, history: History) -> Floats:
    """Return the probabilities that were given, over the arms on offer."""
    what, shape = f"rule {name!r}", (history.n_rounds, history.n_arms)
    try:
        rows = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(
            f"{what} must give numbers, got {shown(given)}.", kind="option_value", column="rules"
        ) from None
    if rows.shape == shape[1:]:
        rows = np.tile(rows, (shape[0], 1))
    if rows.shape != shape:
        raise DataError(
            f"{what} has probabilities of shape {rows.shape}, expected (rounds, arms) = {shape}, "
            f"or ({shape[1]},) for the same in every round.",
            kind="length", column="rules",
        )  # fmt: skip
    if (names := column_labels(given)) is not None:
        rows = by_name(what, rows, names, history.arms)
    rows[np.isnan(rows)] = 0.0
    if off := first_where((rows < 0).any(axis=1) | ~(np.abs(rows.sum(axis=1) - 1) <= _OFF)):
        raise ProbabilityError(
            f"{what} gives {history.where(off.at)} the probabilities "
            f"{listed(map(str, rows[off.at]), 6)}; "
            "they must be from 0 on and sum to 1 (NaN: not on offer).",
            kind="row_sum", column="rules", value=float(rows[off.at].sum()),
        )  # fmt: skip
    if history.offered is not None:
        rows[~history.offered] = 0.0
    total = rows.sum(axis=1, keepdims=True)
    if none := first_where(total[:, 0] <= 0):
        raise ProbabilityError(
            f"{what} gives every arm that is on offer in {history.where(none.at)} the probability "
            "0; "
            "give it one of them.",
            kind="not_on_offer", column="rules",
        )  # fmt: skip
    return rows / total


def _replayed(rule: Policy, asked: Asked) -> Floats:
    """Return the probabilities of a policy that learns from the log as its rewards become known."""
    history, n = asked.history, asked.history.n_rounds
    support = asked.support if asked.family.has_levels else None
    state = rule.start(history.arms, asked.family.name, prior=asked.prior, support=support)
    due = np.arange(1, n + 1) if history.known_at is None else history.known_at
    order = np.argsort(due, kind="stable")
    rows, done, pi = np.zeros((n, history.n_arms)), 0, None
    for t in range(n):
        while done < n and due[order[done]] <= t:
            s = order[done]
            done += 1
            if not np.isnan(history.reward[s]):
                state, pi = rule.update(state, int(history.arm[s]), float(history.reward[s])), None
        if history.offered is not None:
            pi = rule.selection_probability(state, history.offered[t])
        elif pi is None:
            pi = rule.selection_probability(state)
        rows[t] = pi
    return np.nan_to_num(rows)
