"""Logs with one row per round *and arm*: each row would be taken for a round of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.errors import DataError
from bayesfair.readers.bridge import codes, plain

__all__ = ["refuse_long"]

_ENOUGH = 8  # blocks from which one sign is enough


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
    missing. A trial in which everybody gets each treatment looks alike, but has rewards throughout.

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
    chosen = arm[1]
    marks = {c: v for c, v in numbers.items() if np.isin(v, (0, 1)).all()}
    shares = {
        c: v for c, v in numbers.items() if c not in marks and bool(((v >= 0) & (v <= 1)).all())
    }
    for key, values in keys.items():
        starts = _blocks(values)
        if starts is None or not _once(chosen, starts):
            continue
        paid = np.zeros(len(chosen)) if reward[1] is None else reward[1]
        one = _sums_to_one((~np.isnan(paid)).astype(float), starts, 0)
        mark = _first(
            c for c, v in marks.items() if _sums_to_one(v, starts, 0) and _idle(paid[v == 0])
        )
        share = _first(
            c
            for c, v in shares.items()
            if _sums_to_one(v, starts, 1e-2) and (one or mark or _one_pays(paid, v, starts))
        )
        signs = (share is not None) + (mark is not None) + one
        if signs >= (1 if len(starts) - 1 >= _ENOUGH else 2):
            raise _long(source, arm[0], reward[0], key, share, mark, one)


def _blocks(values: Any) -> NDArray[np.int64] | None:
    """Return where runs of equal values begin, the last of which may be cut off by the sample.

    None if any has one row only.
    """
    import pyarrow as pa

    try:
        encoded = plain(values).dictionary_encode().unify_dictionaries()
    except pa.ArrowException:  # lists and records number no rounds
        return None
    index = np.concatenate([np.zeros(0, np.int64), *map(codes, encoded.chunks)])
    starts = np.concatenate([[0], np.flatnonzero(index[1:] != index[:-1]) + 1]).astype(np.int64)
    if len(starts) < 3 or np.diff(starts).min() < 2:
        return None
    return starts


def _once(arm: NDArray[np.int32], starts: NDArray[np.int64]) -> bool:
    """Whether no block holds an arm twice."""
    block = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    pairs = np.column_stack([block, arm[: starts[-1]]])
    return bool((arm >= 0).all()) and len(np.unique(pairs, axis=0)) == len(pairs)


def _sums_to_one(values: NDArray[np.float64], starts: NDArray[np.int64], tolerance: float) -> bool:
    sums = np.add.reduceat(values[: starts[-1]], starts[:-1])
    return bool((np.abs(sums - 1) <= tolerance).all())


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
    source: str, arm: str, reward: str, key: str, share: str | None, mark: str | None, one: bool
) -> DataError:
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
    return DataError(
        f"{source} has one row per round and arm, not one row per round: rows with the same "
        f"{key!r} hold each arm once, {' and '.join(sign for sign in signs if sign)}. Arms that "
        "were not chosen would count as plays. Make one row per round of it, with pandas: "
        f"{'; '.join(lines)}",
        kind="long_shape",
        column=key,
        source=source,
    )
