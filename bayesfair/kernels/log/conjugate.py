"""Conjugate beliefs before every round, streamed: one arm's parameters change per reward.

Parameters per arm, in the order in which the objects of `bayesfair.families` name them:

* bernoulli: (alpha, beta); a reward x adds (x, 1 - x).
* finite: a concentration per level; a reward adds 1 to its level.
* poisson: (shape, rate); a reward x adds (x, 1).
* normal: (mean m, kappa, shape a, scale b) of a normal-inverse-gamma law; a reward x gives
  m + (x - m)/(kappa + 1), kappa + 1, a + 1/2, b + kappa (x - m)^2 / (2 (kappa + 1)).
* others: a reward adds what their `added` says of it.

The normal update is the sequential one: sums of squares would cancel for means far from 0.

Measurements without a given prior have one learned from the first `FIRST` known rewards, whatever
their arm: mean = their median, kappa = 1, shape = 1, scale = (robust spread)^2, see
`location_and_scale`. Until then it is relearned with each reward that becomes known, and the
beliefs are the posterior under it of all rewards known so far. As long as no two of these differ
there is no scale, and every arm has the same law; if the first `FIRST` are all equal, the first
other reward ends that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.kernels.compiled import compiled
from bayesfair.typing import Floats

__all__ = [
    "FIRST", "BeliefTable", "iter_parameters", "location_and_scale", "run_parameters",
    "start_table",
]  # fmt: skip

FIRST = 20
"""So many known rewards tell the location and the scale of measurements."""

_CODES = {"bernoulli": 0, "finite": 1, "poisson": 2, "normal": 3}
_ADDED = 4

Rule = str | Callable[[Floats], Floats]
"""Name of a compiled rule, or what each reward adds to the parameters of its arm, (n, p)."""


class BeliefTable(NamedTuple):
    """Beliefs before the next round, and what is seen but not yet known.

    Attributes
    ----------
    parameters : (k, p) array
        Per arm.
    pending_at : (n,) array of int
        First round that may use the reward, counted from the next part's first round, >= 1.
    pending_arm : (n,) array of int32
    pending_reward : (n,) array
        Rewards; for ``"finite"`` the position of the level.
    support : (L,) array
        Levels of a finite reward; empty for other families.
    last_pi : (k,) array
        Selection probabilities of the last round; empty before the first, or where not logged.
    changed : bool
        Whether the beliefs before the next round differ from those before the last one.
    from_data : bool
        Whether location and scale of the prior are learned from the first known rewards.
    early_arm : (n,) array of int32
        Arms of these rewards, at most ``FIRST + 1``.
    early_reward : (n,) array
        The rewards, in the order in which they became known.
    n_same : (k,) array of int
        Known rewards per arm beyond them that equal them all: there was no scale yet.
    n_learning : int
        Rounds so far, from the start of the log, before which the prior was not settled.
    """

    parameters: Floats
    pending_at: NDArray[np.int64]
    pending_arm: NDArray[np.int32]
    pending_reward: Floats
    support: Floats
    last_pi: Floats = np.empty(0)
    changed: bool = True
    from_data: bool = False
    early_arm: NDArray[np.int32] = np.empty(0, np.int32)
    early_reward: Floats = np.empty(0)
    n_same: NDArray[np.int64] = np.empty(0, np.int64)
    n_learning: int = 0


def start_table(
    parameters: ArrayLike, support: ArrayLike = (), *, from_data: bool = False
) -> BeliefTable:
    """Return the beliefs before the first round of a log; parameters of the prior: (k, p)."""
    table = np.array(parameters, dtype=np.float64)
    return BeliefTable(
        table,
        np.empty(0, np.int64),
        np.empty(0, np.int32),
        np.empty(0),
        np.asarray(support, dtype=np.float64),
        from_data=from_data,
        n_same=np.zeros(len(table), np.int64),
    )


@compiled()
def _learn(row, x, code):  # type: ignore[no-untyped-def]
    if code == 0:
        row[0] += x
        row[1] += 1.0 - x
    elif code == 1:
        row[int(x)] += 1.0
    elif code == 2:
        row[0] += x
        row[1] += 1.0
    else:
        off = x - row[0]
        row[3] += 0.5 * row[1] / (row[1] + 1.0) * off * off
        row[1] += 1.0
        row[2] += 0.5
        row[0] += off / row[1]


@compiled()
def location_and_scale(values):  # type: ignore[no-untyped-def]
    """Return the median, and 1.4826 times the median absolute deviation from it.

    Where that is 0, 1.2533 times the mean absolute deviation: like the former the standard
    deviation of normal values. 0 only where no two values differ.
    """
    centre = np.median(values)
    away = np.abs(values - centre)
    scale = 1.4826 * np.median(away)
    if scale == 0.0:
        scale = 1.2533 * np.mean(away)
    return centre, scale


@compiled()
def _relearn(table, early_arm, early_reward, n_same, whole):  # type: ignore[no-untyped-def]
    """Write the beliefs from the first known rewards; return whether their scale is known.

    Without one all arms have the same law, in the unit 1; with ``whole`` they learn all the same.
    """
    centre, scale = location_and_scale(early_reward)
    table[:, 0] = centre
    table[:, 1] = 1.0
    table[:, 2] = 1.0
    table[:, 3] = scale * scale if scale > 0.0 else 1.0
    if scale == 0.0 and not whole:
        return False
    for i in range(n_same.shape[0]):  # at the centre, where they move the mean nowhere
        table[i, 1] += n_same[i]
        table[i, 2] += 0.5 * n_same[i]
    for e in range(early_reward.shape[0]):
        _learn(table[early_arm[e]], early_reward[e], 3)
    return scale > 0.0


@compiled()
def _run(table, at, arm, reward, added, first, done, code, early, out, changed):  # type: ignore[no-untyped-def]
    # marks: how many first rewards, whether the prior is settled, after how many rewards it was
    early_arm, early_reward, n_same, marks = early
    n = out.shape[0]
    for t in range(n):
        while done < at.shape[0] and at[done] <= first + t:
            a, x = arm[done], reward[done]
            done += 1
            changed[t] = True
            if code == _ADDED:
                table[a] += added[done - 1]
                continue
            if marks[1]:
                _learn(table[a], x, code)
                continue
            m = marks[0]
            if m >= FIRST and x == early_reward[0]:  # else it would be settled
                n_same[a] += 1
                continue
            early_arm[m], early_reward[m] = a, x
            marks[0] = m + 1
            known = _relearn(table, early_arm[: m + 1], early_reward[: m + 1], n_same, False)
            if known and m + 1 >= FIRST:
                marks[1], marks[2] = 1, done
        out[t] = table
    return done


def _early_of(table: BeliefTable) -> tuple[Any, ...]:
    """Return what `_run` keeps of the first rewards, to be written to."""
    n = table.early_reward.size
    settled = not table.from_data or (n >= FIRST and bool(np.ptp(table.early_reward) > 0))
    arms, rewards = np.zeros(FIRST + 1, np.int32), np.zeros(FIRST + 1)
    arms[:n], rewards[:n] = table.early_arm, table.early_reward
    marks = np.array([n, settled, 0], np.int64)
    return arms, rewards, table.n_same.astype(np.int64), marks


def _code_and_added(rule: Rule, reward: Floats) -> tuple[int, Floats]:
    """Return the code of a rule, and what rewards add to parameters where it is none compiled."""
    if isinstance(rule, str):
        return _CODES[rule], np.empty((0, 0))
    return _ADDED, np.ascontiguousarray(rule(reward), dtype=np.float64)


def iter_parameters(
    rule: Rule,
    table: BeliefTable,
    arm: NDArray[np.int32],
    reward: Floats,
    known_at: NDArray[np.int64] | None,
    size: int,
) -> Iterator[tuple[int, int, Floats, NDArray[np.bool_]]]:
    """Yield (start, stop, parameters (n, k, p) before each round, whether they changed (n,)).

    Parameters
    ----------
    rule : str or callable
        How a reward changes the parameters of its arm: ``family.rule``.
    table : BeliefTable
        Beliefs before the first round.
    arm, reward : (T,) arrays
        The rounds; NaN = not observed; for ``"finite"`` positions of levels.
    known_at : (T,) array of int or None
        First round that may use the reward; None = the next.
    size : int
        Rounds per chunk.
    """
    at, arms, values, _ = _in_order(table, arm, reward, known_at)
    parameters, early = table.parameters.copy(), _early_of(table)
    code, added = _code_and_added(rule, values)
    done, n_rounds = 0, len(arm)
    for start in range(0, n_rounds, size):
        stop = min(start + size, n_rounds)
        out = np.empty((stop - start, *parameters.shape))
        changed = np.zeros(stop - start, dtype=np.bool_)
        done = _run(parameters, at, arms, values, added, start, done, code, early, out, changed)
        yield start, stop, out, changed


def run_parameters(
    rule: Rule,
    table: BeliefTable,
    arm: NDArray[np.int32],
    reward: Floats,
    known_at: NDArray[np.int64] | None,
    *,
    everything: bool = False,
) -> BeliefTable:
    """Return the beliefs after the rounds; with ``everything`` rewards not known yet count too."""
    at, arms, values, n_rounds = _in_order(table, arm, reward, known_at)
    # the next part's first round is this part's round T: what may be used then is known
    known = len(at) if everything else int(np.searchsorted(at, n_rounds, side="right"))
    parameters, early = table.parameters.copy(), _early_of(table)
    learning = not early[3][1]
    end = np.zeros(known, dtype=np.int64)
    nothing = np.empty((1, *parameters.shape))
    code, added = _code_and_added(rule, values[:known])
    _run(
        parameters, end, arms[:known], values[:known], added, 0, 0, code, early, nothing,
        np.zeros(1, dtype=np.bool_),
    )  # fmt: skip
    early_arm, early_reward, n_same, (n_early, settled, at_reward) = early
    early_arm, early_reward = early_arm[:n_early].copy(), early_reward[:n_early].copy()
    if everything and learning and n_early and not settled:
        _relearn(parameters, early_arm, early_reward, n_same, True)
    n_learning = n_rounds if learning else 0
    if learning and settled:
        n_learning = min(max(int(at[at_reward - 1]), 0), n_rounds)
    waiting = slice(known, None)
    return BeliefTable(
        parameters,
        at[waiting] - n_rounds,
        arms[waiting],
        values[waiting],
        table.support,
        from_data=table.from_data,
        early_arm=early_arm,
        early_reward=early_reward,
        n_same=n_same,
        n_learning=table.n_learning + n_learning,
    )


def _in_order(
    table: BeliefTable,
    arm: NDArray[np.int32],
    reward: Floats,
    known_at: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats, int]:
    """Return the observed rewards in the order in which they become known."""
    n_rounds = len(arm)
    own = np.arange(1, n_rounds + 1) if known_at is None else np.asarray(known_at)
    at = np.concatenate([table.pending_at, own])
    arms = np.concatenate([table.pending_arm, arm]).astype(np.int32)
    values = np.concatenate([table.pending_reward, reward])
    seen = ~np.isnan(values)
    at, arms, values = at[seen], arms[seen], values[seen]
    order = np.argsort(at, kind="stable")
    return at[order], arms[order], values[order], n_rounds
