"""Logs with one row per round *and arm*: each row would be taken for a round of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.base.arrow_arrays import codes, plain
from bayesfair.errors import DataError
from bayesfair.readers.values.stamps import words_of
from bayesfair.typing import Flags, Floats

__all__ = ["LEVEL", "LongForm", "long_form"]

LEVEL = 0.01
"""Chance below which rows in no such order would look as they do; above it they are rounds."""

_MOST = 0.95  # of the rows and blocks show a sign: one glitch makes no plain log of thousands
_MARKS = {
    "chosen", "choice", "selected", "selection", "picked", "taken", "played", "pulled", "shown",
    "displayed", "impressed", "decision",
}  # fmt: skip
_NAMED = 0.05  # of plain logs have a 0/1 column with such a name that marks something else


@dataclass(frozen=True)
class LongForm:
    """What shows that rows are arms of rounds.

    Attributes
    ----------
    arm, reward : str
        Their columns.
    key : str or None
        Column that numbers the rounds; None = every `k` rows are one.
    share : str or None
        Column that sums to 1 within a round.
    mark : str or None
        Column of 0/1 that marks one row of each round.
    one : bool
        Whether the reward is filled in one row of each.
    k : int
        Number of arms.
    """

    arm: str
    reward: str
    key: str | None
    share: str | None
    mark: str | None
    one: bool
    k: int

    @property
    def columns(self) -> list[str]:
        """What the signs were seen in."""
        return [c for c in (self.arm, self.reward, self.key, self.share, self.mark) if c]

    def error(self, source: str) -> DataError:
        """Return the error of a log that was to have one row per round."""
        same = f"every {self.k} rows hold" if self.key is None else (
            f"rows with the same {self.key!r} hold"
        )  # fmt: skip
        signs = [
            f"{self.share!r} sums to 1 within them" if self.share else "",
            f"{self.mark!r} marks one row of each" if self.mark else "",
            f"{self.reward!r} is filled in one row of each" if self.one and not self.mark else "",
        ]
        if self.key is None:
            remedy = (
                "Number the rounds in a column of their own and name it with round=..., with "
                f"pandas: d['round'] = [i // {self.k} for i in range(len(d))]"
            )
        else:
            also = [f"round={self.key!r}"]
            also += [f"chosen={self.mark!r}"] if self.mark else []
            also += [f"propensity={self.share!r}"] if self.share else []
            remedy = f"To read it so, pass {', '.join(also)}"
            if not (self.mark or self.one):
                remedy += " and chosen=... with the column that marks the arm that was chosen"
        return DataError(
            f"{source} has one row per round and arm, not one row per round: {same} each arm once, "
            f"{' and '.join(sign for sign in signs if sign)}. Arms that were not chosen would "
            f"count as plays. {remedy}. If each row is a round, pass round=False.",
            kind="long_shape",
            column=self.key,
            source=source,
        )


def long_form(
    arm: tuple[str, NDArray[np.int32]],
    reward: tuple[str, NDArray[np.float64] | None],
    keys: Mapping[str, Any],
    numbers: Mapping[str, NDArray[np.float64]],
) -> LongForm | None:
    """Return what shows that rows are arms of rounds, None where each is a round of its own.

    Rows that share the value of some column hold each arm at most once, and one of these at least
    holds in every such block: some numbers sum to 1, as probabilities do; some 0/1 mark stands
    once, as of the arm that was chosen; one reward is there, the others are missing. Without a
    column that numbers the rounds, blocks are every k rows, and only a mark tells. Rows in an order
    that has nothing to do with it must look so with a chance of at most `LEVEL`, over all columns
    that were tried: each sign is compared with the same values in random order. A trial in which
    everybody gets each treatment looks alike, but has rewards throughout.

    Parameters
    ----------
    arm, reward : (str, values)
        Names of the columns, and their rows.
    keys : mapping
        Columns that may number the rounds.
    numbers : mapping
        Columns of numbers, the reward's apart.
    """
    marks = {c: v for c, v in numbers.items() if np.mean(np.isin(v, (0, 1))) >= _MOST}
    shares = {
        c: v for c, v in numbers.items() if c not in marks and np.mean((v >= 0) & (v <= 1)) >= _MOST
    }
    k = len(np.unique(arm[1]))
    if k < 2:
        return None  # every row holds the one arm
    times = np.bincount(arm[1][arm[1] >= 0])
    often = max(int(np.count_nonzero(2 * times >= times.max())), 2)  # broken labels apart
    # of as many rows as there are arms, where nothing numbers the rounds
    every = np.arange(len(arm[1]) // often + 1) * often
    grouped = [(key, *_blocks(values, k)) for key, values in keys.items()]
    for key, index, starts in [*grouped, (None, np.arange(len(arm[1])), every)]:
        if len(starts) < 3 or not _once(arm[1][index], starts):
            continue
        rows = index[: starts[-1]]
        paid = np.zeros(len(rows)) if reward[1] is None else reward[1][rows]
        known = (~np.isnan(paid)).astype(float)
        one = bool(_sums_to_one(known, starts, 0))
        mark = _first(
            c for c, v in marks.items() if _sums_to_one(v[rows], starts, 0) and _idle(paid, v[rows])
        )
        share = _first(
            c
            for c, v in shares.items()
            if _sums_to_one(v[rows], starts, 1e-2)
            and (one or mark or _one_pays(paid, v[rows], starts))
        )
        if key is None:
            # where nothing numbers the rounds, a 1 beside an arm not marked may be its reward
            if mark is None or _always_there(marks[mark][rows], starts):
                continue
            if np.nan_to_num(paid[marks[mark][rows] == 0]).any():
                continue
        signs: list[tuple[NDArray[Any], Callable[[NDArray[Any]], Flags]]] = []
        if share:
            signs.append(
                (shares[share][rows], partial(_sums_to_one, starts=starts, tolerance=1e-2))
            )
        if mark:
            signs.append((marks[mark][rows], partial(_sums_to_one, starts=starts, tolerance=0)))
            signs.append((paid, partial(_idle, mark=marks[mark][rows])))
        if one:
            signs.append((known, partial(_sums_to_one, starts=starts, tolerance=0)))
        if not signs:
            continue
        chance = (len(grouped) + 1) * _NAMED ** bool(mark and words_of(mark) & _MARKS)
        chance *= _by_chance(arm[1][rows], partial(_once, starts=starts))
        for values, holds in signs:
            chance *= _by_chance(values, holds)
        if chance <= LEVEL:
            return LongForm(arm[0], reward[0], key, share, mark, one, k if key else often)
    return None


def _by_chance(values: NDArray[Any], holds: Callable[[NDArray[Any]], Flags]) -> float:
    """Return how often the same values in random order would show a sign, at least 1 in n + 1."""
    rng = np.random.default_rng(0)
    n = 1000 if len(values) <= 100 else 100
    orders = np.stack([rng.permutation(values) for _ in range(n)])
    return (1 + int(np.count_nonzero(holds(orders)))) / (n + 1)


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


# signs of rows in one order or in many: (rows,) or (orders, rows)


def _once(arm: NDArray[np.int32], starts: NDArray[np.int64]) -> Flags:
    """Whether (nearly) no block holds an arm twice."""
    n = len(starts) - 1
    block = np.repeat(np.arange(n), np.diff(starts))
    held = arm[..., : starts[-1]]
    pair = np.sort(block * (int(held.max(initial=0)) + 1) + held, axis=-1)
    again = pair[..., 1:] == pair[..., :-1]
    again[..., 1:] &= ~again[..., :-1]  # three of a kind are one arm
    twice = np.count_nonzero(again, axis=-1)
    return np.asarray((held >= 0).all(axis=-1) & (twice <= (1 - _MOST) * n))


def _sums_to_one(values: Floats, starts: NDArray[np.int64], tolerance: float) -> Flags:
    sums = np.add.reduceat(values[..., : starts[-1]], starts[:-1], axis=-1)
    return np.asarray(np.mean(np.abs(sums - 1) <= tolerance, axis=-1) >= _MOST)


def _idle(paid: Floats, mark: Floats) -> Flags:
    """Whether arms that were not chosen paid nothing, or all the same that stands for it."""
    others = paid[..., mark == 0]
    least = np.fmin.reduce(others, axis=-1, initial=np.inf)  # NaN does not count
    return np.asarray(least >= np.fmax.reduce(others, axis=-1, initial=-np.inf))


def _one_pays(
    paid: NDArray[np.float64], share: NDArray[np.float64], starts: NDArray[np.int64]
) -> bool:
    """Whether no block has two rewards, although its arms are not drawn alike throughout."""
    some = np.add.reduceat((np.nan_to_num(paid) != 0)[: starts[-1]].astype(int), starts[:-1])
    return bool((some <= 1).all()) and len(np.unique(share)) > 1


def _first(names: Iterable[str]) -> str | None:
    return next(iter(names), None)
