"""Rounds in time bins, and the distinct rewards of a log: what a million rounds reduce to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesfair.errors import DataError, OptionError
from bayesfair.history.history import History

__all__ = [
    "bin_of_rounds", "binned_counts", "bins_along", "counts_by_context", "no_context",
    "reward_cells", "time_bins",
]  # fmt: skip


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


def bins_along(
    dim: str | None, history: History, bin_start: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Return which place along a dimension of a model each round has, (T,); None without one.

    Parameters
    ----------
    dim : str or None
        ``"bin"`` (of time), ``"context"`` or ``"round"``.
    history : History
        The log.
    bin_start : (B,) array of int or None
        First rounds of the time bins.
    """
    rounds = np.arange(history.n_rounds)
    if dim == "bin" and bin_start is not None:
        return bin_of_rounds(rounds, bin_start)
    if dim == "context" and history.context is not None:
        return history.context.cells[0].astype(np.int64)
    return rounds if dim == "round" else None


def binned_counts(
    history: History, bin_start: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return observed rewards and their sums per time bin and arm, ``(B, k)`` each."""
    return _counted(history, bin_of_rounds(np.arange(history.n_rounds), bin_start), len(bin_start))


def counts_by_context(
    history: History,
) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.float64]]:
    """Return the contexts of a log, and observed rewards and their sums by context and arm, (C, k).

    Raises
    ------
    DataError
        If the log has no context.
    """
    if history.context is None:
        raise no_context(history, "has one theta for each")
    codes, names = history.context.cells
    return names, *_counted(history, codes, len(names))


def no_context(history: History, needs: str) -> DataError:
    """Return the error for a log without the context that a model needs."""
    return DataError(
        f"{history.source} has no context, and the model {needs}. Give the log one with context=.",
        kind="no_context", column="context",
    )  # fmt: skip


def _counted(
    history: History, cells: NDArray[Any], n_cells: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return observed rewards and their sums by cell of each round, (T,), and arm."""
    seen = ~np.isnan(history.reward)
    at = cells[seen].astype(np.int64) * history.n_arms + history.arm[seen]
    size, shape = n_cells * history.n_arms, (n_cells, history.n_arms)
    pulls = np.bincount(at, minlength=size)
    total = np.bincount(at, weights=history.reward[seen], minlength=size)
    return pulls.reshape(shape).astype(np.int64), total.reshape(shape)


def reward_cells(
    history: History,
    bins: NDArray[np.int64] | None = None,
    rounds: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the distinct (arm, reward, bin) of a history and how often each occurred.

    Of the observed `rounds`, in their order, if they are given, else of all of them. `bins` number
    the bin of every round, (T,): of time, or its context.

    Rounds of one cell have the same likelihood, whatever the parameters.

    Returns
    -------
    dict
        ``arm``, ``reward``, ``bin`` (0 without `bins`), ``count``: ``(C,)`` each;
        ``cell``: ``(n_observed,)``, the cell of every observed round, in order.
    """
    seen = np.flatnonzero(~np.isnan(history.reward)) if rounds is None else rounds
    bins = np.zeros(seen.size, np.int64) if bins is None else bins[seen].astype(np.int64)
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
