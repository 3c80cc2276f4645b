"""A rule of which nothing was logged, estimated from the choices: a model, never in a verdict."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesfair.audit.group import GroupRecord, with_each
from bayesfair.audit.log.rounds import iter_results
from bayesfair.audit.record import Record, with_extra
from bayesfair.base.checks import as_generator
from bayesfair.base.estimates import interval
from bayesfair.base.options import refuse_beside
from bayesfair.errors import DataError, OptionError
from bayesfair.families import FAMILIES
from bayesfair.inference.beliefs import iter_beliefs
from bayesfair.typing import Floats, Ints, Seed

__all__ = ["check_rule", "with_modelled_rule"]

_PRIOR = 0.5  # Jeffreys' for shares
_PER_ARM = 100  # rounds of a window, by default


def check_rule(rule: str | None, window: Any, **others: Any) -> None:
    """Refuse a way to estimate a rule that is not known, and what does not go with it.

    Raises
    ------
    OptionError
        Naming the option.
    """
    if window is not None:
        try:
            whole = operator.index(window)
        except TypeError:
            whole = 0
        if rule is None or whole < 1 or isinstance(window, bool):
            why = (
                "is the length of windows in which a rule is estimated, and rule= was not given"
                if rule is None
                else "must be a whole number of rounds, at least 1"
            )
            raise OptionError(
                f"rule_window={window!r} {why}.", kind="bad_option", column="rule_window",
                value=window,
            )  # fmt: skip
    if rule is None:
        return
    if rule != "estimated":
        raise OptionError(
            f"rule={rule!r} is not known. Options: 'estimated'.", kind="bad_option", column="rule",
            value=rule,
        )  # fmt: skip
    refuse_beside(
        "rule", rule, others,
        "a rule is estimated against conjugate beliefs that know no context, by total variation of "
        "decisions, in one process",
    )  # fmt: skip


def with_modelled_rule(
    found: Record | GroupRecord, window: int | None, seed: Seed
) -> Record | GroupRecord:
    """Return the audit, or each of several, with ``modelled`` in its numbers and report.

    Raises
    ------
    DataError
        If not all arms were on offer in each round.
    """

    def one(audit: Record, _: Any) -> Record:
        if audit.summary.selection != "none" or audit.unfinished is not None:
            return audit
        return with_extra(audit, "modelled", _modelled(audit, window, seed))

    return with_each(found, None, one)


@dataclass
class _Sums:
    """What draws of a rule amount to over the windows so far."""

    eps1: float
    needed: Floats
    regret: Floats

    def add(self, pi: Floats, distance: Floats, p_best: list[Floats]) -> None:
        """Add a window: draws of its rule, the least distance of each pair, sorted P* by arm."""
        for i in range(pi.shape[1]):
            apart = np.abs(pi[:, i : i + 1] - pi) - self.eps1 * distance[i]
            apart[:, i] = 0.0
            np.maximum(self.needed, apart.max(axis=1), out=self.needed)
            least = np.searchsorted(p_best[i], pi[:, i], side="right")
            above = np.append(np.cumsum(p_best[i][::-1])[::-1], 0.0)[least]
            self.regret += above - (len(p_best[i]) - least) * pi[:, i]

    def to_dict(self, n: int) -> dict[str, Any]:
        """Return mean and 95 % interval of both, JSON-ready."""
        each = {"smallest_eps2": self.needed, "regret_per_round": self.regret / n}
        return {
            name: dict(zip(("mean", "lower", "upper"),
                           (float(x.mean()), *map(float, interval(x))), strict=True))
            for name, x in each.items()
        }  # fmt: skip


@dataclass
class _Window:
    """Rounds of a window so far: choices, P* of each round, least distance of beliefs by pair."""

    plays: Ints
    distance: Floats
    p_best: list[Floats] = field(default_factory=list)


def _modelled(audit: Record, window: int | None, seed: Seed) -> dict[str, Any]:
    summary, criterion, draws = audit.summary, audit.criterion, audit.question.draws
    k, rng = len(summary.arms), as_generator(seed)
    n = summary.sums.n_rounds
    n_windows = max(1, n // (window or _PER_ARM * k))
    size = max(1, n // n_windows)  # as even as can be: the last holds what is left as well
    eps1 = criterion.eps1
    found, like = (_Sums(eps1, np.zeros(draws), np.zeros(draws)) for _ in range(2))

    def fresh() -> _Window:
        return _Window(np.zeros(k, np.int64), np.full((k, k), np.inf))

    def close(w: _Window) -> None:
        rows = np.concatenate(w.p_best)
        by_arm = list(np.sort(rows.T, axis=1))
        found.add(_shares(rng, w.plays[None], draws), w.distance, by_arm)
        mean = np.maximum(rows.mean(axis=0), 0.0)
        fair = rng.multinomial(len(rows), mean / mean.sum(), size=draws)
        like.add(_shares(rng, fair, draws), w.distance, by_arm)

    held, done = fresh(), 0
    start = summary.start
    if start.given_context:
        start = start.with_beliefs(start.beliefs.without)
    for part, result, state in iter_results(audit.data, start, criterion, want_rounds=True):
        if part.offered is not None:
            raise DataError(
                f"rule='estimated' needs all arms on offer in each round, and in {part.source} "
                "they were not: what was drawn among others says little of an arm's share. Leave "
                "rule= out.",
                kind="not_on_offer", column="rule",
            )  # fmt: skip
        first = max(criterion.from_round - state.n_rounds, 0)
        family = FAMILIES[state.family]
        for a, b, rewards, _, _ in iter_beliefs(part, family, state.beliefs):
            distance = rewards.divergence(criterion.reward_divergence)
            at = max(a, first)
            while at < b:
                last = done // size >= n_windows - 1
                stop = b if last else min(b, at + size - done % size)
                here = slice(at - a, stop - a)
                held.plays += np.bincount(part.arm[at:stop], minlength=k)
                held.distance = np.minimum(held.distance, distance[here].min(axis=0))
                held.p_best.append(np.asarray(result.rounds.p_best)[at:stop])
                done, at = done + stop - at, stop
                if not last and done % size == 0:
                    close(held)
                    held = fresh()
    if held.p_best:
        close(held)
    return {
        "rule": "estimated",
        "window": size,
        "n_windows": n_windows,
        "prior": f"Dirichlet({_PRIOR:g}) in each window",
        "draws": draws,
        **found.to_dict(max(n, 1)),
        "if_calibrated": like.to_dict(max(n, 1)),
    }


def _shares(rng: np.random.Generator, plays: Ints, draws: int) -> Floats:
    """Return draws of the shares of a window from their posterior."""
    drawn = rng.standard_gamma(plays + _PRIOR, size=(draws, plays.shape[1]))
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))
