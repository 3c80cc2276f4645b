r"""Pairs of rounds with different contexts: a rule that treats like contexts alike.

:math:`D(\pi_t\|\pi_s) \le \epsilon_1 D(r_t\|r_s) + \epsilon_2` for two rounds with the same arms on
offer, :math:`\pi` the law of the choice and r the joint law of all rewards, arms independent. A
calibrated rule needs no eps2 at eps1 = 1, for any f-divergence: its choice is an image of the
rewards (the best one, ties split), and an image is never further apart. This holds for two
different beliefs as well, hence for a rule that learns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import finite_or_text
from bayesfair.audit.group import GroupRecord, with_each
from bayesfair.audit.log.context_tables import iter_cells, numbered, shared_beliefs
from bayesfair.audit.record import Record, with_extra
from bayesfair.base.checks import check_choice, listed
from bayesfair.base.options import refuse_beside
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.history import History
from bayesfair.history.logs import logs_in
from bayesfair.inference.beliefs import iter_beliefs
from bayesfair.kernels.log.across import MOST_OUTCOMES, arms_as_individuals, worst_rounds
from bayesfair.rewards import Bernoulli, Finite
from bayesfair.typing import Floats, Ints

__all__ = ["Across", "check_across", "with_across"]

_MOST = 20_000  # different rounds up to which all pairs are looked at
_NEAREST = 50
_SPREAD = 1_000_000  # pairs at even distances


type Across = str | Mapping[str, str]
"""``"contexts"``, or ``{"rule_version": column}``: within the versions of the rule."""


def check_across(across: Across | None, data: Any, **others: Any) -> tuple[Any, str | None]:
    """Return the data whose context is what beliefs are given, and the column of versions.

    Raises
    ------
    OptionError
        Naming the option, and what does not go with it.
    """
    if across is None:
        return data, None
    version = None
    if isinstance(across, Mapping):
        if list(across) != ["rule_version"]:
            raise OptionError(
                f"across={across!r} must name the column that tells the version of the rule, as in "
                "{'rule_version': 'build'}, or be 'contexts'.",
                kind="bad_option", column="across", value=across,
            )  # fmt: skip
        version = across["rule_version"]
    else:
        check_choice(across, "across", ("contexts",))
    refuse_beside(
        "across", across, others,
        "pairs of rounds are held against conjugate beliefs given the context, by f-divergences, "
        "in one process",
    )  # fmt: skip
    for log in logs_in(data):
        if not isinstance(log, History):
            raise OptionError(
                f"across={across!r} needs the whole log in memory, and {log.source} is read in "
                "parts. Read the log whole (read_history).",
                kind="needs_whole", column="across", value=across,
            )  # fmt: skip
        if log.context is None:
            raise OptionError(
                f"across={across!r} has no effect on {log.source}: it has no context. Read it with "
                "context=.",
                kind="unused_option", column="across", value=across,
            )  # fmt: skip
    if version is None:
        return data, None
    if isinstance(data, History):
        return _without(data, version), version
    return {label: _without(log, version) for label, log in data.items()}, version


def _without(log: History, version: str) -> History:
    """Return the log whose context does not hold the rule's version."""
    context = log.context
    assert context is not None
    if version not in context.columns or len(context.columns) < 2:
        raise OptionError(
            f"rule_version={version!r} must be one of several columns of the context, the others "
            f"are what the rule saw; here it is {listed(context.columns)}.",
            kind="bad_option", column="rule_version", value=version,
        )  # fmt: skip
    return replace(log, context=context.without(version))


def with_across(
    found: Record | GroupRecord, given: Any, rule_version: str | None
) -> Record | GroupRecord:
    """Return the audit, or each of several, with ``across`` in its numbers and report.

    Parameters
    ----------
    found : Record or GroupRecord
    given : History or mapping of label to History
        As it was given, with the versions.
    rule_version : str or None

    Raises
    ------
    DataError
        If rewards have no joint law that can be enumerated.
    OptionError
        If the beliefs are not given the context.
    """

    def one(audit: Record, log: History) -> Record:
        if audit.unfinished is not None:
            return audit
        versions = np.zeros(log.n_rounds, np.int64)
        if rule_version is not None and log.context is not None:
            versions += log.context.codes[:, log.context.columns.index(rule_version)]
        return with_extra(audit, "across", _across(audit, versions, rule_version))

    return with_each(found, given, one)


class _Rounds(NamedTuple):
    """Rounds that may be compared, with the arms on offer: those that differ, each once.

    Attributes
    ----------
    version : int
        Of the rule.
    pi : (n, k) array
    laws : (n, k, L) array
        Probabilities of the rewards of each arm, before the round.
    copies, first : (n,) arrays of int
        How many rounds are alike, and the first of them.
    """

    version: int
    pi: Floats
    laws: Floats
    copies: Ints
    first: Ints


def _across(audit: Record, version: Ints, rule_version: str | None) -> dict[str, Any]:
    criterion, log, start = audit.criterion, audit.data, audit.summary.start
    if not start.given_context:
        raise OptionError(
            "across='contexts' needs beliefs given the context: context_model=.",
            kind="excluded", column="across", value="contexts",
        )  # fmt: skip
    skipped = max(criterion.from_round - start.n_rounds, 0)
    laws, cells = _laws(log, audit)
    laws, version = laws[skipped:], version[skipped:]
    if rule_version is not None:
        laws = _frozen(laws, version, cells[skipped:])
    best, pair, n_violating, at_least = -np.inf, (-1, -1), 0, False
    arms: dict[tuple[int, int], list[Floats]] = {}
    pi = np.asarray(log.selection_probability)[skipped:]
    for of in _comparable(pi, laws, version):
        k, n_levels = of.laws.shape[1:]
        if n_levels**k > MOST_OUTCOMES:
            raise DataError(
                f"across='contexts' enumerates the rewards of all arms together, and {k} arms of "
                f"{n_levels} rewards each have more than {MOST_OUTCOMES} of them. Leave across= "
                "out, or audit fewer arms.",
                kind="too_many", column="across", value=k,
            )  # fmt: skip
        pairs = _some_pairs(of.laws) if len(of.pi) > _MOST else None
        at_least |= pairs is not None
        excess, found, marked = worst_rounds(
            of.pi, of.laws, eps1=criterion.eps1, threshold=criterion.allowed,
            divergences=(criterion.divergence, criterion.reward_divergence), pairs=pairs,
        )  # fmt: skip
        n_violating += int(of.copies[marked].sum())
        if excess > best:
            best, pair = excess, (int(of.first[found[0]]), int(of.first[found[1]]))
        if n_levels == 2 and criterion.is_total_variation:  # then both distances are differences
            arms.setdefault((of.version, k), []).append(
                np.stack([of.pi.ravel(), of.laws[:, :, 1].ravel()])
            )
    needed = max(best, 0.0) if len(pi) else None
    verdict = audit.believed(needed)
    worst = None
    if best > 0:
        here = [t + skipped for t in pair]
        codes, names = log.context.cells
        worst = {
            **dict(zip(("round", "round_other"), (t + start.n_rounds for t in here), strict=True)),
            **dict(zip(("context", "context_other"), (names[codes[t]] for t in here), strict=True)),
        }
    individuals = [arms_as_individuals(np.hstack(x), criterion.eps1) for x in arms.values()]
    return {
        "of": "contexts",
        "rule_version": rule_version,
        "n_versions": None if rule_version is None else len(np.unique(version)),
        "verdict": "undetermined" if at_least and verdict == "fair" else verdict,
        "smallest_eps2": finite_or_text(needed),
        "at_least": at_least,
        "n_violating_rounds": n_violating,
        "worst": worst,
        "arms_as_individuals": max(individuals, default=None),
    }


def _laws(log: History, audit: Record) -> tuple[Floats, NDArray[np.int32]]:
    """Return the reward laws believed before each round, (T, k, L), and each round's context."""
    start = audit.summary.start
    tables, family = start.beliefs, FAMILIES[start.family]
    codes, labels = numbered(log, tables)
    if tables.shared is not None and family.binary:
        believed = shared_beliefs(log, codes, tables, len(labels))[0]
        assert believed is not None and isinstance(believed.rewards, Bernoulli)
        means = believed.rewards.mean
        return np.stack([1 - means, means], axis=-1), codes
    found = None
    for rounds, own, table in iter_cells(log, codes, len(labels), tables, family.rule):
        for a, b, rewards, _, _ in iter_beliefs(own, family, table, pairs=False):
            if isinstance(rewards, Bernoulli):
                law = np.stack([1 - rewards.mean, rewards.mean], axis=-1)
            elif isinstance(rewards, Finite):
                law = rewards.pmf
            else:
                raise DataError(
                    "across='contexts' enumerates the rewards of all arms together, and those of "
                    f"the family {start.family!r} are too many. Leave across= out, or give rewards "
                    "0 and 1, or few levels (support=).",
                    kind="not_in_family", column="across", value=start.family,
                )  # fmt: skip
            if found is None:
                found = np.empty((log.n_rounds, *law.shape[1:]))
            found[rounds[a:b]] = law
    return np.empty((0, log.n_arms, 2)) if found is None else found, codes


def _frozen(laws: Floats, version: Ints, cells: NDArray[np.int32]) -> Floats:
    """Return the laws before a version's first round with each context, for all such rounds."""
    key = version * (int(cells.max(initial=0)) + 1) + cells
    _, first, where = np.unique(key, return_index=True, return_inverse=True)
    return np.asarray(laws[first[where]])


def _comparable(pi: Floats, laws: Floats, version: Ints) -> Iterator[_Rounds]:
    """Yield the rounds of each version with the same arms on offer."""
    if not len(pi):
        return
    there = ~np.isnan(pi)
    _, offers = np.unique(there, axis=0, return_inverse=True)
    groups = np.stack([version, offers.ravel()], axis=1)
    for group in np.unique(groups, axis=0):
        rounds = np.flatnonzero((groups == group).all(axis=1))
        arms = there[rounds[0]]
        p, law = pi[rounds][:, arms], laws[rounds][:, arms]
        both = np.hstack([p, law.reshape(len(rounds), -1)])
        _, first, copies = np.unique(both, axis=0, return_index=True, return_counts=True)
        yield _Rounds(int(group[0]), p[first], law[first], copies, rounds[first])


def _some_pairs(laws: Floats) -> Ints:
    """Return pairs of near rounds, and of rounds at even distances."""
    from scipy.spatial import cKDTree

    n = len(laws)
    flat = laws.reshape(n, -1)
    near = cKDTree(flat).query(flat, _NEAREST + 1)[1][:, 1:]
    steps = np.unique(np.linspace(1, n - 1, _SPREAD // n + 1).astype(np.int64))
    far = (np.arange(n)[:, None] + steps) % n
    other = np.hstack([near, far])
    pairs = np.stack([np.repeat(np.arange(n), other.shape[1]), other.ravel()], axis=1)
    others: Ints = pairs[pairs[:, 0] != pairs[:, 1]]
    others.sort(axis=1)
    return others
