"""All groups of a source validated at once, where what holds of all rows holds of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import BayesfairError
from bayesfair.history import History
from bayesfair.history.logs import Together
from bayesfair.history.zero_runs import ZeroRuns
from bayesfair.readers.log.reading import Reading
from bayesfair.readers.log.rounds import Rounds

__all__ = ["at_once"]

_FEW = 20
"""Up to so many arms the tolerance of a row's sum is not narrower in a group than in the whole."""
_MOSTLY = 20
"""A column may fall only so seldom for one rise; from there on each group is asked."""


def at_once(
    rounds: Rounds,
    index: NDArray[np.intp],
    bounds: NDArray[np.int64],
    arms: Sequence[str],
    reading: Reading,
) -> Together | None:
    """Return all groups validated together; None where each has to be looked at by itself.

    Parameters
    ----------
    rounds : Rounds
        As they stand in the source.
    index : (n,) array of int
        Puts them group by group, within a group as in the source.
    bounds : (G + 1,) array of int
        Where each group begins there.
    arms : sequence of str
        Labels.
    reading : Reading
        How the log is read.
    """
    single = (
        rounds.known_at, rounds.known_until, rounds.offered, rounds.unique, rounds.user,
        rounds.spare, rounds.context, rounds.keep_prob, rounds.covered,
    )  # fmt: skip
    both = rounds.pi is not None and rounds.propensity is not None
    if any(column is not None for column in single) or both or len(arms) > _FEW:
        return None
    missing = np.isnan(rounds.reward)
    if (rounds.arm < 0).any() or (missing.any() and reading.missing in ("error", "drop")):
        return None
    if isinstance(reading.missing, float):
        rounds = replace(rounds, reward=np.where(missing, reading.missing, rounds.reward))
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    rounds = rounds.take(index)
    starts, told = bounds[:-1], np.zeros(len(owner), bool)
    gone = np.asarray(np.logical_or.reduceat(missing[index], starts))
    if rounds.pi is not None:
        told |= np.isnan(rounds.pi).any(axis=1)  # arms that come and go
        if 2 * np.logical_or.reduceat(told, starts).sum() > len(starts):
            return None
    if rounds.propensity is not None:
        told |= rounds.propensity > 1  # by rounding
    inside = np.diff(owner) == 0
    if rounds.order is not None:
        later = rounds.order[1:] > rounds.order[:-1]
        told[1:] |= inside & ~later
        sort = np.lexsort((np.arange(len(owner)), rounds.order, owner))
        rounds = rounds.take(sort)
    else:
        told |= _by_arm(rounds.arm, owner, inside)[owner]
    found = np.asarray(np.logical_or.reduceat(told, starts))
    if rounds.pi is not None:
        found |= _zero_runs(rounds.pi, bounds, arms)
    if rounds.watched is not None:
        unclear = _unclear(rounds.watched, starts, inside)
        if unclear is None:
            return None
        found |= unclear
    try:
        whole = History(
            rounds.arm,
            rounds.reward,
            selection_probability=rounds.pi,
            propensity=rounds.propensity,
            arms=tuple(arms),
            time=rounds.order,
            row=rounds.row,
            source=reading.name,
            probability_tolerance=reading.tolerance,
        )
    except BayesfairError:  # which group it is, is said where each is made by itself
        return None
    return Together(whole, bounds, rounds.pi, gone, found)


def _zero_runs(
    pi: NDArray[np.float64], bounds: NDArray[np.int64], arms: Sequence[str]
) -> NDArray[np.bool_]:
    """Return in which groups an arm may be told to have probability 0 up to, or from, a round."""
    ends = (pi[bounds[:-1]] == 0) | (pi[bounds[1:] - 1] == 0)
    found = ends.any(axis=1)
    for g in np.flatnonzero(found).tolist():
        found[g] = bool(ZeroRuns.of(pi[bounds[g] : bounds[g + 1]]).notices(arms))
    return np.asarray(found)


def _by_arm(
    arm: NDArray[np.int32], owner: NDArray[np.int64], inside: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return in which groups the rounds of each arm may stand together, as `grouped_by_arm`."""
    n_groups = int(owner[-1]) + 1
    changes = np.bincount(owner[1:][inside & (arm[1:] != arm[:-1])], minlength=n_groups)
    seen = np.unique(owner * (int(arm.max()) + 1) + arm)
    n_arms = np.bincount(seen // (int(arm.max()) + 1), minlength=n_groups)
    sizes = np.bincount(owner, minlength=n_groups)
    return np.asarray((n_arms >= 2) & (changes == n_arms - 1) & (sizes >= 4 * n_arms))


def _unclear(
    watched: NDArray[np.float64], starts: NDArray[np.int64], inside: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """Return in which groups no column runs upwards throughout; None where one may fall."""
    quiet = np.zeros(len(starts), bool)
    for values in watched.T:
        if np.isnan(values).any():
            return None
        up, down, tied = (
            np.add.reduceat(np.append(False, inside & way).astype(np.int64), starts)
            for way in (
                values[1:] > values[:-1], values[1:] < values[:-1], values[1:] == values[:-1]
            )
        )  # fmt: skip
        if ((down > 1) & (down >= _MOSTLY * up)).any():
            return None
        quiet |= (up > 0) & (down == 0) & (tied <= up)
    return ~quiet
