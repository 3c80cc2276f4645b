"""Rows that a log may hold more than once: what is remembered of them, mergeable over its parts.

Three questions that differ in what they may claim:

* `Blocks`: does a block of rows stand there again? Two runs of choices coincide by chance with the
  product of their logged probabilities, so a long enough repeat refutes them, whatever the rule.
* `Ties`: are rows with one time stamp the same row?
* `Keys`: does a key come back that was said to be unique?
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesfair.history import History
from bayesfair.kernels.log.guards import WINDOW, Prints, anchors, row_prints, window_prints
from bayesfair.kernels.log.log_pass import LogPass
from bayesfair.kernels.log.row_terms import window_surprises
from bayesfair.typing import Flags, Ints

__all__ = [
    "Blocks",
    "Common",
    "Keys",
    "Repeat",
    "Tie",
    "Ties",
    "grouped",
    "stamps_of",
]  # fmt: skip

MOST = 1 << 15
"""Windows that are remembered; of longer logs a share of them, chosen by their fingerprint."""

_ALL = (1 << 64) - 1


class Repeat(NamedTuple):
    """The block of rows that repeats an earlier one most surprisingly.

    Attributes
    ----------
    first, n_rows, lag : int
        Its first round (0-based, of the whole log), its length, how far before it stood first.
    choices : float
        -ln of the probability that its choices coincide.
    n_seen : int
        Rows of it that the remembered windows cover.
    """

    first: int
    n_rows: int
    lag: int
    choices: float
    n_seen: int


@dataclass(frozen=True, eq=False)
class Blocks:
    """Fingerprints of windows of rows, at most `MOST` of them.

    Attributes
    ----------
    limit : int
        Fingerprints up to this are kept.
    place : (m,) array
        Round, of the whole log, in which a window ends; ascending.
    prints : (m,) array
        Its fingerprint.
    surprise : (m,) array
        -ln of the probability of its choices; 0 where none was logged.
    head, tail : (h,) array
        Fingerprints of the first and last rows, for windows across the border of two parts.
    head_surprise, tail_surprise : (h,) array
        Likewise.
    end : int
        Rounds up to here.
    """

    limit: int
    place: NDArray[np.int64]
    prints: Prints
    surprise: NDArray[np.float64]
    head: Prints
    tail: Prints
    head_surprise: NDArray[np.float64]
    tail_surprise: NDArray[np.float64]
    end: int

    @classmethod
    def of(cls, start: int, part: History, found: LogPass) -> Blocks:
        """Remember the rows of a part that follows round ``start``."""
        n, edge = part.n_rounds, WINDOW - 1
        p = found.p if part.selection != "none" else None

        def ends(at: slice) -> tuple[Prints, NDArray[np.float64]]:
            arm, reward = part.arm[at], part.reward[at]
            if p is None:
                return row_prints(arm, reward, None), np.zeros(len(arm))
            return row_prints(arm, reward, p[at]), -np.log(p[at])

        inside = np.zeros(len(found.place))
        if p is not None:
            inside = window_surprises(p, found.place - edge)
        head, tail = ends(slice(0, edge)), ends(slice(max(n - edge, 0), n))
        return cls(
            found.limit, start + found.place, found.prints, inside, head[0], tail[0], head[1],
            tail[1], start + n,
        )  # fmt: skip

    def merged(self, later: Blocks) -> Blocks:
        """Return what is remembered of both parts."""
        edge, n_before = WINDOW - 1, len(self.tail)
        across = window_prints(np.concatenate([self.tail, later.head]))
        chances = np.concatenate([self.tail_surprise, later.head_surprise])
        steps = np.arange(len(across))
        place = np.concatenate([self.place, self.end - n_before + steps + edge, later.place])
        prints = np.concatenate([self.prints, across, later.prints])
        surprise = np.concatenate(
            [self.surprise, chances[steps[:, None] + np.arange(WINDOW)].sum(axis=1), later.surprise]
        )
        kept, limit = anchors(prints, MOST, min(self.limit, later.limit))
        short = len(later.tail) < edge
        return Blocks(
            limit, place[kept], prints[kept], surprise[kept],
            np.concatenate([self.head, later.head])[:edge] if len(self.head) < edge else self.head,
            np.concatenate([self.tail, later.tail])[-edge:] if short else later.tail,
            np.concatenate([self.head_surprise, later.head_surprise])[:edge]
            if len(self.head) < edge else self.head_surprise,
            np.concatenate([self.tail_surprise, later.tail_surprise])[-edge:]
            if short else later.tail_surprise,
            later.end,
        )  # fmt: skip

    def longest(self, reward: float) -> Repeat | None:
        """Return the most surprising repeat; None where no window stands there twice.

        Parameters
        ----------
        reward : float
            -ln of the probability that the rewards of two rows of one arm coincide.
        """
        ordered = np.sort(self.prints)  # seldom does any stand there twice
        if not (ordered[1:] == ordered[:-1]).any():
            return None
        n = len(self.place)
        lag = np.zeros(n, np.int64)
        order = np.lexsort((self.place, self.prints))
        again = self.prints[order][1:] == self.prints[order][:-1]
        lag[order[1:][again]] = np.diff(self.place[order])[again]
        if not (lag > 0).any():
            return None
        starts = np.flatnonzero(np.diff(lag, prepend=-1) != 0)
        stops = np.append(starts[1:], n)
        best, most = None, -np.inf
        gap = np.minimum(np.diff(self.place, prepend=self.place[0] - WINDOW), WINDOW)
        for a, b in zip(starts.tolist(), stops.tolist(), strict=True):
            if lag[a] == 0:
                continue
            new = gap[a:b].copy()
            new[0] = WINDOW
            rows = int(self.place[b - 1] - self.place[a]) + WINDOW
            # a block and its copy do not overlap: of a longer run only one period counts
            part = min(1.0, float(lag[a]) / rows)
            choices = float((self.surprise[a:b] * new / WINDOW).sum()) * part
            seen = int(new.sum() * part)
            if choices + seen * reward > most:
                most = choices + seen * reward
                first = int(self.place[a]) - WINDOW + 1
                best = Repeat(first, min(rows, int(lag[a])), int(lag[a]), choices, seen)
        return best


class Tie(NamedTuple):
    """Rows in a row with one time stamp.

    Attributes
    ----------
    time, n, print_ : int
        The stamp, the number of rows, the first one's fingerprint.
    alike : bool
        Whether all are the same.
    first, chance : float
        Logged probability of the first choice; product of those of the others.
    """

    time: int
    n: int
    print_: int
    alike: bool
    first: float
    chance: float

    def joined(self, other: Tie) -> Tie:
        """Return both as one."""
        return Tie(
            self.time, self.n + other.n, self.print_,
            self.alike and other.alike and self.print_ == other.print_,
            self.first, self.chance * other.first * other.chance,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Ties:
    """How often all rows of one time stamp are the same.

    Attributes
    ----------
    open : tuple of Tie
        The first and the last stamp, which may go on in another part; one if they are the same.
    n_stamps, n_alike, n_rows : int
        Stamps of several rows between them, those whose rows are all the same, rows too many.
    expected, variance : float
        Of `n_alike`, from the logged probabilities.
    """

    open: tuple[Tie, ...] = ()
    n_stamps: int = 0
    n_alike: int = 0
    n_rows: int = 0
    expected: float = 0.0
    variance: float = 0.0

    @classmethod
    def of(
        cls, stamps: NDArray[np.int64] | None, rows: Prints, p: NDArray[np.float64] | None
    ) -> Ties:
        """Count the rows (n,) of a part by their time stamps."""
        if stamps is None or not len(stamps):
            return cls()
        starts = np.flatnonzero(np.diff(stamps, prepend=stamps[:1] - 1) != 0)
        sizes = np.diff(np.append(starts, len(stamps)))
        which = np.repeat(np.arange(len(starts)), sizes)
        alike = np.minimum.reduceat((rows == rows[starts][which]).astype(np.int64), starts) > 0
        chances = np.ones(len(rows)) if p is None else np.array(p, dtype=np.float64)
        first = chances[starts]
        chances[starts] = 1.0
        chance = np.multiply.reduceat(chances, starts)

        def tie(g: int) -> Tie:
            return Tie(
                int(stamps[starts[g]]), int(sizes[g]), int(rows[starts[g]]), bool(alike[g]),
                float(first[g]), float(chance[g]),
            )  # fmt: skip

        inner = slice(1, len(starts) - 1)
        several = sizes[inner] > 1
        same, x = alike[inner] & several, chance[inner][several]
        ends = (tie(0),) if len(starts) == 1 else (tie(0), tie(len(starts) - 1))
        return cls(
            ends, int(several.sum()), int(same.sum()), int((sizes[inner] - 1)[same].sum()),
            float(x.sum()), float((x * (1 - x)).sum()),
        )  # fmt: skip

    def merged(self, later: Ties) -> Ties:
        """Return the counts of both parts."""
        ends = list(self.open)
        rest = list(later.open)
        if ends and rest and ends[-1].time == rest[0].time:
            ends[-1] = ends[-1].joined(rest.pop(0))
        ends += rest
        both = Ties(
            (), self.n_stamps + later.n_stamps, self.n_alike + later.n_alike,
            self.n_rows + later.n_rows, self.expected + later.expected,
            self.variance + later.variance,
        )  # fmt: skip
        for tie in ends[1:-1]:
            both = both._closed(tie)
        return replace(both, open=tuple(ends[:1] + ends[1:][-1:]))

    def _closed(self, tie: Tie) -> Ties:
        if tie.n < 2:
            return self
        return Ties(
            self.open, self.n_stamps + 1, self.n_alike + tie.alike,
            self.n_rows + (tie.n - 1) * tie.alike, self.expected + tie.chance,
            self.variance + tie.chance * (1 - tie.chance),
        )  # fmt: skip

    def whole(self) -> Ties:
        """Return the counts of a log that ends here."""
        found = replace(self, open=())
        for tie in self.open:
            found = found._closed(tie)
        return found


def stamps_of(time: NDArray[Any] | None) -> NDArray[np.int64] | None:
    """Return times as whole numbers that are equal where the times are; None for other kinds."""
    if time is None or time.dtype.kind not in "iufmM":
        return None
    if time.dtype.kind in "mM":
        return time.astype(f"{time.dtype.kind}8[us]").view(np.int64)
    return (time.astype(np.float64) + 0.0).view(np.int64)


def grouped(prints: Prints) -> tuple[Ints, Flags, Ints, Ints]:
    """Return rows sorted by their fingerprint (0 = none: left out), stably.

    Returns
    -------
    order, again, firsts, lasts : arrays
        The rows; which have the fingerprint of the one before; places of each one's first and last.
    """
    there = np.flatnonzero(prints != 0)
    order = there[np.argsort(prints[there], kind="stable")]
    again = np.diff(prints[order], prepend=np.uint64(0)) == 0
    return order, again, np.flatnonzero(~again), np.flatnonzero(np.append(~again, True)[1:])


class Common(NamedTuple):
    """Where the different fingerprints of two parts, ascending in each, are the same.

    Attributes
    ----------
    mine, theirs : arrays of int
        Places of those in both.
    new : array of bool
        Which of the later part's are new.
    at : array of int
        Where these go among the earlier part's.
    """

    mine: Ints
    theirs: Ints
    new: Flags
    at: Ints

    @classmethod
    def of(cls, early: Prints, later: Prints) -> Common:
        """Compare both."""
        _, mine, theirs = np.intersect1d(early, later, assume_unique=True, return_indices=True)
        new = np.ones(len(later), bool)
        new[theirs] = False
        return cls(mine, theirs, new, np.searchsorted(early, later[new]))

    def first[T: np.generic](self, early: NDArray[T], later: NDArray[T]) -> NDArray[T]:
        """Return the values of both; of a fingerprint in both the earlier part's."""
        return np.insert(early, self.at, later[self.new], axis=0)

    def last[T: np.generic](self, early: NDArray[T], later: NDArray[T]) -> NDArray[T]:
        """Return the values of both; of a fingerprint in both the later part's."""
        changed = early.copy()
        changed[self.mine] = later[self.theirs]
        return self.first(changed, later)


@dataclass(frozen=True, eq=False)
class Keys:
    """Fingerprints of the keys of rounds that a user named as unique; 8 bytes and two arms each.

    Attributes
    ----------
    column : str
        Where they stand.
    prints : (n,) array
        Different keys, ascending.
    first_arm, last_arm : (n,) array of int32
        What was chosen when a key came first, and last.
    n_repeated, n_same : int
        Rounds whose key had come before; among them those with the arm of the time before.
    row : int
        Round, of the whole log, of the first of them; -1 = none.
    """

    column: str
    prints: Prints
    first_arm: NDArray[np.int32]
    last_arm: NDArray[np.int32]
    n_repeated: int
    n_same: int
    row: int
    first_row: NDArray[np.int64]

    @classmethod
    def of(cls, column: str, start: int, keys: Prints, arm: NDArray[np.int32]) -> Keys:
        """Remember the keys (n,) of a part; 0 = none."""
        order, again, firsts, lasts = grouped(keys)
        found, chosen = keys[order], arm[order]
        same = again[1:] & (chosen[1:] == chosen[:-1])
        row = int(order[again].min()) + start if again.any() else -1
        return cls(
            column, found[firsts], chosen[firsts], chosen[lasts], int(again.sum()),
            int(same.sum()), row, order[firsts] + start,
        )  # fmt: skip

    def merged(self, later: Keys) -> Keys:
        """Return what is remembered of both parts."""
        both = Common.of(self.prints, later.prints)
        mine, theirs = both.mine, both.theirs
        seen = [r for r in (self.row, later.row, *later.first_row[theirs].tolist()) if r >= 0]
        return Keys(
            self.column,
            both.first(self.prints, later.prints),
            both.first(self.first_arm, later.first_arm),
            both.last(self.last_arm, later.last_arm),
            self.n_repeated + later.n_repeated + len(mine),
            self.n_same + later.n_same
            + int((self.last_arm[mine] == later.first_arm[theirs]).sum()),
            min(seen, default=-1),
            both.first(self.first_row, later.first_row),
        )  # fmt: skip
