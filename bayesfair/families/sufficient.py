"""Sufficient statistics of a history, per reward family: what the models and closed forms look at.

A million rounds reduce to a few numbers per arm; rewards that were not observed are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.base.checks import counted, listed
from bayesfair.base.notices import Notice
from bayesfair.errors import DataError, OptionError
from bayesfair.history import History

__all__ = [
    "bin_of_rounds",
    "binned_counts",
    "check_support",
    "choose_family",
    "count_totals",
    "earlier_counts",
    "enough_levels",
    "family_of_levels",
    "level_counts",
    "moments",
    "reward_cells",
    "seen_levels",
    "success_counts",
    "time_bins",
]

# More distinct values than this are counts or measurements, not a rating scale.
_MANY_LEVELS = 10
# So few may be a scale even where each was seen once.
_FEW_LEVELS = 5


def choose_family(history: History) -> tuple[str, str]:
    """Return the reward family that the observed rewards suggest, and a sentence saying why.

    Rewards 0 and 1 are ``"bernoulli"``; at most 10 distinct values ``"finite"``, unless they are
    fractions that hardly repeat (five or more, in more than half of the rewards: measurements of a
    short log); whole numbers from 0 up ``"poisson"``; everything else ``"normal"``.

    Examples
    --------
    >>> choose_family(History(["a", "b", "a"], [5, 3, 4]))
    ('finite', 'family "finite" was chosen because the rewards take 3 distinct values.')
    """
    seen = history.reward[~np.isnan(history.reward)]
    return family_of_levels(np.unique(seen), seen.size)


def family_of_levels(levels: NDArray[np.float64], n: int) -> tuple[str, str]:
    """Return what `choose_family` does, from the ascending values of `n` observed rewards."""
    whole = bool(np.all(levels == np.rint(levels)))
    if np.isin(levels, (0.0, 1.0)).all():
        family, why = "bernoulli", "the rewards are 0 and 1"
    elif levels.size <= _MANY_LEVELS and (
        whole or levels.size < _FEW_LEVELS or 2 * levels.size <= n
    ):
        family, why = "finite", f"the rewards take {counted(levels.size, 'distinct value')}"
    elif levels[0] >= 0 and whole:
        family, why = (
            "poisson",
            f"the rewards are whole numbers from {levels[0]:g} to {levels[-1]:g}",
        )
    else:
        family, why = "normal", f"the rewards take {levels.size} distinct values, not all whole"
    note = Notice(
        f'family "{family}" was chosen because {why}.', kind="family", column="family", value=family
    )
    return family, note


def enough_levels(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return as many of the ascending values as choose the same family: of many, a few stand."""
    if levels.size <= _MANY_LEVELS:
        return levels
    parts = levels[levels != np.rint(levels)]
    return np.unique(np.concatenate([levels[: _MANY_LEVELS + 1], parts[:1]]))


def _refuse(history: History, bad: NDArray[np.bool_], family: str, allowed: str) -> None:
    if bad.any():
        t = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"reward of {history.where(t)} is {history.reward[t]:g}; the {family} family needs "
            f"{allowed} ({int(bad.sum())} such rounds). Give another family= or correct the log."
        )


def success_counts(history: History) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return observed pulls and successes per arm, ``(k,)`` each; rewards must be 0 or 1.

    Raises
    ------
    DataError
        Naming the first round whose reward is neither 0, 1 nor NaN.
    """
    reward = history.reward
    _refuse(history, ~np.isnan(reward) & (reward != 0) & (reward != 1), "bernoulli", "0 or 1")
    pulls, total = history.counts()
    return pulls, total.astype(np.int64)


def earlier_counts(history: History, family: str, *, whole: bool) -> NDArray[np.float64]:
    """Return (successes, failures) seen before the log began, ``(k, 2)``; zeros if none.

    Raises
    ------
    OptionError
        If there are some and the family is not ``"bernoulli"``, or they are not whole numbers
        where the model needs counts.
    """
    counts = history.prior_counts
    if counts is None or not counts.any():
        return np.zeros((history.n_arms, 2))
    if family != "bernoulli":
        raise OptionError(
            f"earlier outcomes are given as (successes, failures), which the {family} family "
            "cannot use; give prior= to the fit instead."
        )
    if whole and np.any(counts != np.rint(counts)):
        i = int(np.flatnonzero((counts != np.rint(counts)).any(axis=1))[0])
        raise OptionError(
            f"earlier outcomes of arm {history.arms[i]!r} are {counts[i].tolist()}; this model "
            "needs whole numbers of successes and failures."
        )
    return np.asarray(counts)


def seen_levels(reward: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values seen, ascending, which stand for all that can be; 0 and 1 go together."""
    levels = np.unique(reward[~np.isnan(reward)])
    return np.array([0.0, 1.0]) if np.isin(levels, (0.0, 1.0)).all() else levels


def check_support(support: ArrayLike) -> NDArray[np.float64]:
    """Return the values that a finite reward can take, ascending.

    Raises
    ------
    OptionError
        Unless they are distinct finite numbers.
    """
    try:
        levels = np.sort(np.asarray(support, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        levels = np.empty(0)
    if not levels.size or not np.isfinite(levels).all() or np.any(np.diff(levels) == 0):
        raise OptionError(f"support={support!r} must be distinct finite numbers, at least one.")
    return levels


def level_counts(
    history: History, support: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the levels of a finite reward and how often each arm paid each of them.

    Parameters
    ----------
    history : History
        The log.
    support : (L,) array, optional
        All levels a reward can take; default the values seen (0 and 1 for a 0/1 log).

    Returns
    -------
    support : (L,) array
        Ascending.
    counts : (k, L) array of int

    Raises
    ------
    OptionError, DataError
        If the support has duplicates, or a reward is not in it (naming the round).
    """
    reward = history.reward
    seen = ~np.isnan(reward)
    if support is None:
        levels = seen_levels(reward)
    else:
        levels = check_support(support)
        outside = seen & ~np.isin(reward, levels)
        _refuse(history, outside, "finite", f"a level of support {listed(levels.tolist())}")
    place = np.searchsorted(levels, reward[seen])
    cell = history.arm[seen] * len(levels) + place
    counts = np.bincount(cell, minlength=history.n_arms * len(levels))
    return levels, counts.reshape(history.n_arms, len(levels)).astype(np.int64)


def count_totals(history: History) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return observed pulls and summed counts per arm; rewards must be whole numbers >= 0."""
    reward = history.reward
    bad = ~np.isnan(reward) & ((reward < 0) | (reward != np.rint(reward)))
    _refuse(history, bad, "poisson", "whole numbers from 0 up")
    pulls, total = history.counts()
    return pulls, total.astype(np.int64)


def moments(
    history: History,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return pulls, mean reward and sum of squared deviations per arm (0 where unseen)."""
    pulls, total = history.counts()
    mean = total / np.maximum(pulls, 1)
    seen = ~np.isnan(history.reward)
    arm = history.arm[seen]
    # deviations from the mean first: the textbook difference of squares cancels for large means
    squares = (history.reward[seen] - mean[arm]) ** 2
    spread = np.bincount(arm, weights=squares, minlength=history.n_arms)
    return pulls, mean, spread.astype(np.float64)  # without rounds, bincount returns integers


def time_bins(
    n_rounds: int, n_bins: int = 10, bin_start: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Return the first round of each time bin, ``(B,)``; bins of equal length unless given.

    Raises
    ------
    OptionError
        If `n_bins` is not a positive whole number, or `bin_start` does not rise from 0.

    Examples
    --------
    >>> time_bins(12, 3)
    array([0, 4, 8])
    """
    if bin_start is not None:
        starts = np.asarray(bin_start, dtype=np.int64).ravel()
        if not starts.size or starts[0] != 0 or np.any(np.diff(starts) <= 0):
            raise OptionError(f"bin_start={bin_start!r} must rise strictly from round 0.")
        return starts
    if n_bins != int(n_bins) or n_bins < 1:
        raise OptionError(f"n_bins={n_bins!r} must be a whole number from 1 up.")
    count = max(1, min(int(n_bins), n_rounds))
    return np.arange(count, dtype=np.int64) * n_rounds // count


def bin_of_rounds(rounds: ArrayLike, bin_start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time bin of each round."""
    return np.searchsorted(bin_start, np.asarray(rounds), side="right").astype(np.int64) - 1


def binned_counts(
    history: History, bin_start: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return observed pulls and successes per time bin and arm, ``(B, k)`` each."""
    success_counts(history)  # checks that rewards are 0 or 1
    seen = ~np.isnan(history.reward)
    bins = bin_of_rounds(np.flatnonzero(seen), bin_start)
    cell = bins * history.n_arms + history.arm[seen]
    size = len(bin_start) * history.n_arms
    pulls = np.bincount(cell, minlength=size)
    won = np.bincount(cell, weights=history.reward[seen], minlength=size)
    shape = (len(bin_start), history.n_arms)
    return pulls.reshape(shape).astype(np.int64), won.reshape(shape).astype(np.int64)


def reward_cells(
    history: History, bin_start: NDArray[np.int64] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the distinct (arm, reward, bin) of a history and how often each occurred.

    Rounds of one cell have the same likelihood, whatever the parameters.

    Returns
    -------
    dict
        ``arm``, ``reward``, ``bin`` (0 without `bin_start`), ``count``: ``(C,)`` each;
        ``cell``: ``(n_observed,)``, the cell of every observed round, in order.
    """
    seen = np.flatnonzero(~np.isnan(history.reward))
    bins = np.zeros(seen.size, np.int64) if bin_start is None else bin_of_rounds(seen, bin_start)
    levels, level = np.unique(history.reward[seen], return_inverse=True)
    key = (bins * history.n_arms + history.arm[seen]) * max(1, levels.size) + level
    distinct, cell, count = np.unique(key, return_inverse=True, return_counts=True)
    rest, level = np.divmod(distinct, max(1, levels.size))
    bin_index, arm = np.divmod(rest, max(1, history.n_arms))
    return {
        "arm": arm.astype(np.int64),
        "reward": levels[level] if levels.size else np.zeros(0),
        "bin": bin_index.astype(np.int64),
        "count": count.astype(np.int64),
        "cell": cell.astype(np.int64),
    }
