"""What a log shows that may have been written otherwise than it was: told of, never refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.notices import Notice
from bayesfair.history import History
from bayesfair.history.context import Context
from bayesfair.history.zero_runs import ZeroRuns

__all__ = ["Doubts"]

_MOST = 100_000
"""Values of a context, beyond which it is not followed."""
_COMMON = 100
_BY_CHANCE = -9.2  # log: a context that tells nothing agrees so well once in 10,000 logs


class _Told(NamedTuple):
    """What followed upon each value of a column.

    Attributes
    ----------
    of : dict of str to number
        What it was in the rounds with a value, the same in all of them.
    n : int
        Rounds.
    repeats : float
        Log chance that each round whose value had come before agrees with it, by the
        probabilities; NaN = none were logged.
    """

    of: dict[str, float]
    n: int = 0
    repeats: float = 0.0

    def followed_by(self, later: _Told) -> _Told | None:
        """Return what both show; None where they contradict each other."""
        if any(self.of.get(label, x) != x for label, x in later.of.items()):
            return None
        both = self.of | later.of
        chance = self.repeats + later.repeats
        return _Told(both, self.n + later.n, chance) if len(both) <= _MOST else None


class Doubts(NamedTuple):
    """What was seen of a log so far.

    Attributes
    ----------
    zeros : ZeroRuns or None
        Of its probabilities.
    told : dict of tuple to _Told or None
        By column of the context, and ``"arm"`` or ``"reward"``; None = not told by it.
    seen : dict of str to dict
        How often each arm was chosen and each reward came, if anything tells it; of very many,
        the commonest.
    unit : float
        Of the last decimal of the probabilities.
    """

    zeros: ZeroRuns | None
    told: dict[tuple[str, str], _Told | None]
    seen: dict[str, dict[float, int]]
    unit: float

    @classmethod
    def of(cls, part: History, offset: int, before: Doubts | None = None) -> Doubts:
        """Return what a part shows whose first round is ``offset``, and those before it."""
        pi = part.selection_probability
        told = {} if part.context is None else _told(part, part.context, before)
        needed = {what for (_, what), found in told.items() if found is not None}
        seen = {what: _counts(getattr(part, what)) for what in sorted(needed)}
        zeros = None if pi is None else ZeroRuns.of(pi, offset)
        new = cls(zeros, told, seen, part.resolution.unit)
        return new if before is None else before.merged(new)

    def merged(self, later: Doubts) -> Doubts:
        """Return what these rounds and ``later`` show together."""
        zeros = self.zeros
        if zeros is not None and later.zeros is not None:
            zeros = zeros.merged(later.zeros)
        told = {}
        for key in self.told.keys() & later.told.keys():
            mine, other = self.told[key], later.told[key]
            told[key] = None if mine is None or other is None else mine.followed_by(other)
        seen = {
            name: {x: mine.get(x, 0) + other.get(x, 0) for x in mine | other}
            for name in self.seen.keys() & later.seen.keys()
            for mine, other in [(self.seen[name], later.seen[name])]
        }
        return Doubts(zeros, told, seen, max(self.unit, later.unit))

    def notices(self, arms: tuple[str, ...]) -> list[Notice]:
        """Return what has to be said of it."""
        found = [] if self.zeros is None else self.zeros.notices(arms, self.unit)
        for (column, what), told in sorted(self.told.items()):
            if told is None or len(counts := self.seen[what]) < 2:
                continue
            chance = told.repeats
            if np.isnan(chance):
                again = told.n - len(told.of)
                chance = again * np.log(max(counts.values()) / sum(counts.values()))
            if chance > _BY_CHANCE:
                continue
            known = (
                "" if what == "reward" else
                ", which the probabilities do not say" if not np.isnan(told.repeats) else
                ": either the rule leaves nothing to chance once it is known, or it was written "
                "afterwards"
            )  # fmt: skip
            found.append(Notice(
                f"In all {told.n} rounds{' with a reward' * (what == 'reward')} the value of the "
                f"context {column!r} tells the {what}{known}. It may have been written after the "
                "choice, as an outcome is: a context is what the rule saw before it chose. If so, "
                "read the log without it.",
                kind="context_after_choice", column=column, value=what, n=told.n,
            ))  # fmt: skip
        return found


def _counts(values: NDArray[Any]) -> dict[float, int]:
    """Return how often each value came; of very many the commonest."""
    found, n = np.unique(values[~np.isnan(values)], return_counts=True)
    most = np.argsort(-n, kind="stable")[:_COMMON]
    return dict(zip(found[most].tolist(), n[most].tolist(), strict=True))


def _told(
    part: History, context: Context, before: Doubts | None
) -> dict[tuple[str, str], _Told | None]:
    """Return, by column, what follows from its values: the arm, the reward."""
    chances = part.propensity
    if part.selection_probability is not None:
        chances = part.selection_probability[np.arange(part.n_rounds), part.arm]
    logs = None if chances is None else np.log(chances)
    found: dict[tuple[str, str], _Told | None] = {}
    for j, column in enumerate(context.columns):
        for what, values in (("arm", part.arm.astype(float)), ("reward", part.reward)):
            earlier = None if before is None else before.told.get((column, what))
            if before is not None and earlier is None:
                continue  # it is known not to
            known = {} if earlier is None else earlier.of
            own = context.codes[:, j], context.labels[j]
            found[column, what] = _tells(*own, values, known, logs if what == "arm" else None)
    return found


def _tells(
    codes: NDArray[np.int32],
    labels: tuple[str, ...],
    values: NDArray[np.float64],
    known: dict[str, float],
    logs: NDArray[np.float64] | None,
) -> _Told | None:
    """Return what follows from each value of a column, None where one is followed by two."""
    here = ~np.isnan(values)
    codes, values = codes[here], values[here]
    low, high = np.full(len(labels), np.inf), np.full(len(labels), -np.inf)
    np.minimum.at(low, codes, values)
    np.maximum.at(high, codes, values)
    if (low < high).any():
        return None
    came, first = np.unique(codes, return_index=True)
    if len(came) > _MOST:
        return None
    repeats = np.nan
    if logs is not None:
        new = first[[labels[c] not in known for c in came.tolist()]]
        repeats = float(logs[here].sum() - logs[here][new].sum())
    return _Told({labels[c]: float(low[c]) for c in came.tolist()}, len(codes), repeats)
