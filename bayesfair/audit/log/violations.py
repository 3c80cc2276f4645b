"""Violating rounds: how many, the first and the last, under the beliefs and per draw of the truth.

Under the beliefs they are counted in the pass over the log. Under the true rewards they can be
counted only once the posterior of the whole log is known, and a round violates if *any* of its
pairs does, which no sum over pairs tells. `JudgedRounds` therefore keeps the rows themselves: all
of them for a few million numbers, from there on an ever smaller share, the earliest rounds first.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.kernels.laws.divergences import SYMMETRIC, bernoulli_divergence
from bayesfair.kernels.log.part_result import TOLERANCES
from bayesfair.kernels.log.violations import count_violations
from bayesfair.kernels.team import usable_cores
from bayesfair.rewards import Rewards

__all__ = [
    "MOST_COMPARISONS",
    "JudgedRounds",
    "Violations",
    "draws_used",
    "exact_rounds",
    "violations_of",
    "violations_under",
]

KEPT_VALUES = 1 << 21
"""Probabilities that are kept whole (16 MB): so many rounds times arms are counted exactly."""

_STEPS = 8  # beyond them, 1/8 as many rounds are kept for every doubling of the log
_AT_ONCE = 4_000_000
MOST_COMPARISONS = 10_000_000_000  # of a pair in a round under a draw: seconds, where all are open
_FEWEST_DRAWS = 200
Numbers = NDArray[np.int64]
type _Kept = tuple[Numbers, NDArray[np.float64], NDArray[np.int32]]
"""Numbers of rounds, their rows, the numbers of their contexts."""
_NO_CONTEXT = np.empty(0, np.int32)
_ARE_DIFFERENCES = ("total_variation", "wasserstein")
"""Between two-outcome laws both are |p - q|."""


class Violations(NamedTuple):
    """Violating rounds for each of several tolerances, or draws of the truth.

    Attributes
    ----------
    n : (S,) array
        How many.
    first, last : (S,) array of int
        The first and the last of them, counted from the start of the log; -1 = none.
    """

    n: NDArray[np.float64] | NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def merged(self, later: Violations) -> Violations:
        """Return those of both together."""
        both = np.minimum(self.first, later.first)
        return Violations(
            self.n + later.n,
            np.where(both >= 0, both, np.maximum(self.first, later.first)),
            np.maximum(self.last, later.last),
        )

    def shifted(self, rounds: int) -> Violations:
        """Return those of rounds that come later by so many."""
        return Violations(
            self.n,
            np.where(self.first >= 0, self.first + rounds, -1),
            np.where(self.last >= 0, self.last + rounds, -1),
        )


def violations_of(over: NDArray[np.bool_]) -> Violations:
    """Return those of a table (round, tolerance) that says which rounds violate.

    Examples
    --------
    >>> violations_of(np.array([[False, False], [True, False], [True, False]]))
    Violations(n=array([2, 0]), first=array([ 1, -1]), last=array([ 2, -1]))
    """
    n, any_one = over.sum(axis=0), over.any(axis=0)
    if not len(over):
        return Violations(n, np.full(n.shape, -1), np.full(n.shape, -1))
    last = len(over) - 1 - over[::-1].argmax(axis=0)
    return Violations(
        n, np.where(any_one, over.argmax(axis=0), -1), np.where(any_one, last, -1)
    )  # fmt: skip


class JudgedRounds:
    """Rounds of a log that may violate under some truth, with their rule; mergeable.

    A round is kept if its number is a multiple of a stride: 1 for the first ``whole`` rounds, then
    growing with the distance from ``base``. So parts keep what the whole would keep, and more,
    which merging leaves out again. Rounds that no truth can make violate are never kept. They are
    looked for when they are first asked for.

    Parameters
    ----------
    base, end : int
        The first judged round and the one after the last, counted from the start of the log.
    round : (n,) array of int
        Numbers of the rounds that are kept.
    rows : (n, k) array
        Their selection probabilities; NaN = not on offer.
    context : (n,) array of int
        Number of their context; empty without one.
    """

    _fields = ("base", "end", "round", "rows", "context")  # what is saved

    def __init__(
        self, base: int, end: int, round: NDArray[np.int64], rows: NDArray[np.float64],
        context: NDArray[np.int32] = _NO_CONTEXT,
    ) -> None:  # fmt: skip
        self.base, self.end, self._n_arms = base, end, rows.shape[1]
        self._pieces = ((round, rows, context),)

    @classmethod
    def of(
        cls,
        pi: NDArray[np.float64],
        base: int,
        criterion: Criterion,
        may: NDArray[np.bool_] | None = None,
        context: NDArray[np.int32] = _NO_CONTEXT,
    ) -> Self:
        """Keep rows of ``pi`` (T, k), the rounds from ``base`` on; NaN = not on offer.

        ``may`` says which probabilities are further apart than `apart`, where that is known;
        ``context`` (T,) the number of each round's context, where there is one.
        """
        judged = cls.__new__(cls)
        judged.base, judged.end, judged._n_arms = base, base + len(pi), pi.shape[1]
        judged._logged = pi, base, cls.apart(criterion), may, context
        return judged

    _logged: tuple[NDArray[np.float64], int, float, NDArray[np.bool_] | None, NDArray[np.int32]]

    @staticmethod
    def apart(criterion: Criterion) -> float:
        """Return how far apart probabilities of a round are at least if some truth violates it."""
        differs = criterion.divergence in _ARE_DIFFERENCES
        return criterion.counting_eps2 + TOLERANCES[0] if differs else 0.0

    @functools.cached_property
    def _pieces(self) -> tuple[_Kept, ...]:
        """What is kept, of each part that was merged."""
        return (_kept_rows(*self._logged),)

    @functools.cached_property
    def _kept(self) -> _Kept:
        """What is kept, all of it: joined when it is first asked for, not with every part."""
        if len(self._pieces) > 1:
            rounds, rows, contexts = zip(*self._pieces, strict=True)
            known = [c for c in contexts if c.size]
            context = np.concatenate(known) if known else _NO_CONTEXT
            self._pieces = ((np.concatenate(rounds), np.concatenate(rows), context),)
        return self._pieces[0]

    @property
    def context(self) -> NDArray[np.int32]:
        """Number of their context, (n,); empty without one."""
        return self._kept[2]

    def of_context(self, number: int) -> JudgedRounds:
        """Return the rounds with one context."""
        mine = self.context == number
        return JudgedRounds(self.base, self.end, self.round[mine], self.rows[mine])

    @property
    def round(self) -> NDArray[np.int64]:
        """Numbers of the rounds that are kept, (n,)."""
        return self._kept[0]

    @property
    def rows(self) -> NDArray[np.float64]:
        """Their selection probabilities, (n, k)."""
        return self._kept[1]

    @property
    def exact(self) -> bool:
        """Whether no round that may violate was left out."""
        return self.end - self.base <= exact_rounds(self._n_arms)

    @property
    def weights(self) -> NDArray[np.float64]:
        """How many rounds each kept one stands for, (n,)."""
        if self.exact:
            return np.ones(len(self.round))
        stride = _stride(self.round - self.base, self.rows.shape[1])
        return np.minimum(stride, self.end - self.round).astype(np.float64)

    def merged(self, later: JudgedRounds) -> JudgedRounds:
        """Return what the whole of this part and the one that follows would keep."""
        if self.end == self.base:
            return later
        if later.end == later.base:
            return self
        joined = JudgedRounds.__new__(JudgedRounds)
        joined.base, joined.end, joined._n_arms = self.base, later.end, self._n_arms
        joined._pieces = (*self._pieces, later._kept_since(self.base))
        return joined

    def _kept_since(self, base: int) -> _Kept:
        """Return what is kept of these rounds where the first judged one is ``base``."""
        if "_pieces" not in self.__dict__:  # nothing was looked for yet
            return _kept_rows(*self._logged, since=base)
        keep = _kept(self.round, base, self.rows.shape[1])
        context = self.context[keep] if self.context.size else self.context
        return self.round[keep], self.rows[keep], context


def exact_rounds(k: int) -> int:
    """Return how many rounds of ``k`` arms are kept without gaps, at least 1."""
    return max(KEPT_VALUES >> (k - 1).bit_length(), 1)


def _stride(distance: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the stride, a power of two, at some distance from the first judged round."""
    whole = exact_rounds(k)
    doubled = np.floor(np.log2(np.maximum(distance // whole, 1))).astype(np.int64)
    return np.where(distance < whole, 1, _STEPS << doubled)


def _kept_rows(
    pi: NDArray[np.float64], base: int, apart: float, may: NDArray[np.bool_] | None,
    context: NDArray[np.int32], *, since: int | None = None,
) -> _Kept:  # fmt: skip
    """Return the numbers of the rounds that are kept, their rows, and their contexts.

    ``since``: the first judged round, where it is not ``base``, the first of these.
    """
    rounds = _rounds_kept(base if since is None else since, base, base + len(pi), pi.shape[1])
    if len(rounds) < len(pi):
        pi, may = pi[rounds - base], None if may is None else may[rounds - base]
    if may is None:
        may = np.fmax.reduce(pi, axis=1) - np.fmin.reduce(pi, axis=1) > apart
    if not may.all():
        rounds, pi = rounds[may], pi[may]
    return rounds, pi, context[rounds - base] if context.size else context


def _rounds_kept(base: int, begin: int, end: int, k: int) -> Numbers:
    """Return the numbers of those from ``begin`` on that are kept, where ``base`` is the first."""
    start, stride, found = base, 1, []
    stop = base + exact_rounds(k)
    while start < end:
        first = -(-max(start, begin) // stride) * stride
        found.append(np.arange(first, min(stop, end), stride))
        start, stop = stop, base + 2 * (stop - base)
        stride = _STEPS if stride == 1 else 2 * stride
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _kept(rounds: NDArray[np.int64], base: int, k: int) -> NDArray[np.bool_]:
    """Return which rounds are kept."""
    return np.asarray(rounds % _stride(rounds - base, k) == 0)


def draws_used(judged: JudgedRounds, n_draws: int) -> slice:
    """Return which draws the rounds are held against: all, or evenly spaced where that is much.

    The number of rounds is a number per draw like any other: fewer draws tell its mean and interval
    less finely, not otherwise.
    """
    n, k = judged.rows.shape
    work = n * (k * (k - 1) // 2) * n_draws
    step = min(math.ceil(work / MOST_COMPARISONS), max(n_draws // _FEWEST_DRAWS, 1))
    return slice(None, None, max(step, 1))


def violations_under(judged: JudgedRounds, rewards: Rewards, criterion: Criterion) -> Violations:
    """Return the violating rounds under every draw of the true rewards.

    Parameters
    ----------
    judged : JudgedRounds
        The rounds.
    rewards : Rewards
        Draws of the true laws, batch shape (draw,).
    criterion : Criterion
        What is asked.
    """
    k, n_draws = rewards.n_arms, rewards.batch_shape[0]
    if criterion.divergence in SYMMETRIC and criterion.reward_divergence in SYMMETRIC:
        i, j = np.triu_indices(k, 1)
    else:
        i, j = np.nonzero(~np.eye(k, dtype=bool))
    of_arms = criterion.divergence in _ARE_DIFFERENCES and len(i) == k * (k - 1) // 2
    n_rows = max(1, len(judged.round) if of_arms else _AT_ONCE // max(len(i), 1))
    n_batch, threads = max(1, _AT_ONCE // k**2), usable_cores()
    weights, found = judged.weights, []
    for s in range(0, n_draws, n_batch):
        law = rewards[s : s + n_batch].divergence(criterion.reward_divergence)[:, i, j]
        distances = np.ascontiguousarray(law.T)
        n = distances.shape[1]
        here = Violations(np.zeros(n), np.full(n, -1), np.full(n, -1))
        for a in range(0, len(judged.round), n_rows):
            rows = slice(a, a + n_rows)
            counts = count_violations(
                judged.rows if of_arms
                else _differences(judged.rows[rows], i, j, criterion.divergence),
                judged.round[rows], weights[rows], distances, criterion.eps1, criterion.certain,
                of_arms=of_arms, threads=threads,
            )  # fmt: skip
            here = here.merged(Violations(*counts))
        found.append(here)
    return Violations(*(np.concatenate(x) for x in zip(*found, strict=True)))


def _differences(
    rows: NDArray[np.float64], i: NDArray[np.intp], j: NDArray[np.intp], name: str
) -> NDArray[np.float64]:
    """Return D(pi(i) || pi(j)) of some pairs in each row."""
    if name in _ARE_DIFFERENCES:
        return np.asarray(np.abs(rows[:, i] - rows[:, j]))
    off = np.isnan(rows)
    found = bernoulli_divergence(np.nan_to_num(rows), name)[:, i, j]
    return np.where(off[:, i] | off[:, j], np.nan, found)
