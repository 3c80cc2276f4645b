"""Logs with one row per round *and arm*: each row would be taken for a round of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import codes, plain
from bayesfair.errors import DataError

__all__ = ["refuse_long"]

_ENOUGH = 8  # blocks from which one sign is enough
_CHANCE = 1 / 8  # of arms drawn alike that stand once in every block: below it too


def refuse_long(
    source: str,
    arm: tuple[str, NDArray[np.int32]],
    reward: tuple[str, NDArray[np.float64] | None],
    keys: Mapping[str, Any],
    numbers: Mapping[str, NDArray[np.float64]],
) -> None:
    """Refuse a log whose rows are arms of rounds.

    Rows that share the value of some column hold each arm at most once, and two of these hold in
    every such block (one is enough from 8 blocks on): some numbers sum to 1, as probabilities do;
    some 0/1 mark stands once, as of the arm that was chosen; one reward is there, the others are
    missing. One is enough too where every block holds every arm, more often than chance would have
    it; then the rows may stand in any order, or, with a mark, without a number of the round. A
    trial in which everybody gets each treatment looks alike, but has rewards throughout.

    Parameters
    ----------
    source : str
        What messages call the log.
    arm, reward : (str, values)
        Names of the columns, and their first rows.
    keys : mapping
        Columns that may number the rounds.
    numbers : mapping
        Columns of numbers, the reward's apart.

    Raises
    ------
    DataError
        Naming the columns, with what makes one row per round of them.
    """
    marks = {c: v for c, v in numbers.items() if np.isin(v, (0, 1)).all()}
    shares = {
        c: v for c, v in numbers.items() if c not in marks and bool(((v >= 0) & (v <= 1)).all())
    }
    k = len(np.unique(arm[1]))
    if k < 2:
        return  # every row holds the one arm
    n_blocks = len(arm[1]) // max(k, 1)
    every = np.arange(n_blocks + 1) * k  # of each k rows, where nothing numbers the rounds
    grouped = [(key, *_blocks(values, k)) for key, values in keys.items()]
    for key, index, starts in [*grouped, (None, np.arange(len(arm[1])), every)]:
        if len(starts) < 3 or not _once(arm[1][index], starts):
            continue
        paid = np.zeros(len(index)) if reward[1] is None else reward[1][index]
        one = _sums_to_one((~np.isnan(paid)).astype(float), starts, 0)
        mark = _first(
            c
            for c, v in marks.items()
            if _sums_to_one(v[index], starts, 0) and _idle(paid[v[index] == 0])
        )
        share = _first(
            c
            for c, v in shares.items()
            if _sums_to_one(v[index], starts, 1e-2)
            and (one or mark or _one_pays(paid, v[index], starts))
        )
        blocks = len(starts) - 1
        full = bool((np.diff(starts) == k).all())
        rare = full and (math.factorial(k) / k**k if k < 100 else 0) ** blocks <= _CHANCE
        signs = (share is not None) + (mark is not None) + one
        moves = mark is not None and full and not _always_there(marks[mark][index], starts)
        # where nothing numbers the rounds, a 1 beside an arm that is not marked may be its reward
        unpaid = mark is not None and _is_zero(paid[marks[mark][index] == 0])
        if key is None and not (moves and unpaid):
            continue
        if signs >= (1 if blocks >= _ENOUGH or (rare and (share or moves)) else 2):
            raise _long(source, arm[0], reward[0], key, share, mark, one, k)


def _always_there(mark: NDArray[np.float64], every: NDArray[np.int64]) -> bool:
    """Whether the same row of each block is marked: the mark of an arm, not of a choice."""
    k = int(every[1])
    return bool((mark[: every[-1]].reshape(-1, k) == mark[:k]).all())


def _blocks(values: Any, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an order of the rows, and where runs of equal values begin in it and the last ends.

    The last run may be cut off by the sample: it is left out unless it has `k` rows, one per arm.
    No runs where any has one row only; rows that stand apart are one run if all have `k` rows.
    """
    import pyarrow as pa

    none = np.zeros(0, np.int64)
    try:
        encoded = plain(values).dictionary_encode().unify_dictionaries()
    except pa.ArrowException:  # lists and records number no rounds
        return none, none
    value = np.concatenate([none, *map(codes, encoded.chunks)])
    index = np.arange(len(value))
    starts = _runs(value)
    if len(starts) < 3 or np.diff(starts[:-1]).min() < 2:
        index = np.argsort(value, kind="stable")
        starts = _runs(value[index])
        if len(starts) < 3 or (np.diff(starts) != k).any():
            return none, none
    return index, starts if starts[-1] - starts[-2] == k else starts[:-1]


def _runs(value: NDArray[np.int64]) -> NDArray[np.int64]:
    changes = np.flatnonzero(value[1:] != value[:-1]) + 1
    return np.concatenate([[0], changes, [len(value)]]).astype(np.int64)


def _once(arm: NDArray[np.int32], starts: NDArray[np.int64]) -> bool:
    """Whether no block holds an arm twice."""
    block = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    pairs = np.column_stack([block, arm[: starts[-1]]])
    return bool((arm >= 0).all()) and len(np.unique(pairs, axis=0)) == len(pairs)


def _sums_to_one(values: NDArray[np.float64], starts: NDArray[np.int64], tolerance: float) -> bool:
    sums = np.add.reduceat(values[: starts[-1]], starts[:-1])
    return bool((np.abs(sums - 1) <= tolerance).all())


def _is_zero(paid: NDArray[np.float64]) -> bool:
    """Whether rewards are missing or 0."""
    return not np.nan_to_num(paid).any()


def _idle(paid: NDArray[np.float64]) -> bool:
    """Whether arms that were not chosen paid nothing, or all the same that stands for it."""
    known = paid[~np.isnan(paid)]
    return not known.size or bool((known == known[0]).all())


def _one_pays(
    paid: NDArray[np.float64], share: NDArray[np.float64], starts: NDArray[np.int64]
) -> bool:
    """Whether no block has two rewards, although its arms are not drawn alike throughout."""
    some = np.add.reduceat((np.nan_to_num(paid) != 0)[: starts[-1]].astype(int), starts[:-1])
    return bool((some <= 1).all()) and len(np.unique(share)) > 1


def _first(names: Iterable[str]) -> str | None:
    return next(iter(names), None)


def _long(
    source: str,
    arm: str,
    reward: str,
    found: str | None,
    share: str | None,
    mark: str | None,
    one: bool,
    k: int,
) -> DataError:
    key = "round" if found is None else found
    same = f"rows with the same {key!r} hold" if found is not None else f"every {k} rows hold"
    signs = [
        f"{share!r} sums to 1 within them" if share else "",
        f"{mark!r} marks one row of each" if mark else "",
        f"{reward!r} is filled in one row of each" if one and not mark else "",
    ]
    kept = "d[...]  # the rows of the arms that were chosen"
    if mark or one:
        kept = f"d[d[{mark!r}] == 1]" if mark else f"d[d[{reward!r}].notna()]"
    lines = [f"rounds = {kept}"]
    if share:
        wide = f"d.pivot(index={key!r}, columns={arm!r}, values={share!r}).add_prefix('p_')"
        lines = [f"wide = {wide}", f"{lines[0]}.merge(wide, on={key!r})"]
        if found is None:
            lines.insert(0, f"d = d.assign(round=[i // {k} for i in range(len(d))])")
    return DataError(
        f"{source} has one row per round and arm, not one row per round: {same} "
        f"each arm once, {' and '.join(sign for sign in signs if sign)}. Arms that "
        "were not chosen would count as plays. Make one row per round of it, with pandas: "
        f"{'; '.join(lines)}",
        kind="long_shape",
        column=found,
        source=source,
    )
