"""About how many duels a decision needs, where shares in windows leave it open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.duels.beliefs import Path
from bayesfair.audit.duels.judge import Judged
from bayesfair.audit.duels.law import ALPHA, Law, share_limits, window_size, window_starts
from bayesfair.audit.duels.pairs import distance_limits, distances, least_gaps
from bayesfair.audit.duels.record import QUESTIONS, verdicts_of
from bayesfair.audit.duels.truth import Truth
from bayesfair.base.labels import label_order
from bayesfair.base.notices import Notice
from bayesfair.comparisons import DuelLog
from bayesfair.typing import Floats

__all__ = ["Sizes", "duels_needed", "sizes_of"]


_MOST_ITEMS = 150
_MOST_DUELS = 1e9
_MOST_WINDOWS = 1000  # of a size that was asked for; more of them hardly decide anything
_LOGS = 25  # logs that are drawn per size
_DRAWS = 200  # draws of the worths that stand for the posterior
_AT_ONCE = 1_000_000  # limits of gaps that are held at once
_NODES = 65  # counts at which the limits are computed; between them they are interpolated
_STREAM = 20_171  # of the drawn logs: the estimate does not depend on the seed of the audit


@dataclass(frozen=True, eq=False)
class Sizes:
    """What a longer log of the same kind would look like.

    Attributes
    ----------
    rounds : int
        Judged duels of this log.
    n_items : int
        All items, which the size of windows follows; m of them are on offer throughout.
    mean, root : (m,) and (m, m) arrays
        Mean of how often an item fills the slot per duel (``mean``: takes part), and a root of the
        covariance.
    scale : float
        From this to the slot's law.
    window : int or None
        Rounds per window, where that was asked for.
    log_worth : (n, m) array
        Draws of the worths.
    truths : (logs, m) array
        Those that are true in the drawn logs.
    reach : (G + 1,) array
        Rounds since the first judged one at which the beliefs are known.
    near, far : (G + 1, P) arrays
        Sums up to there of the least and the largest divergence of the rounds.
    """

    rounds: int
    n_items: int
    mean: Floats
    root: Floats
    scale: float
    window: int | None
    log_worth: Floats
    truths: Floats
    reach: Floats
    near: Floats
    far: Floats

    def needed(self, question: str, criterion: Criterion) -> int | None:
        """Return how many duels decide in half of such logs; None where no number does.

        Parameters
        ----------
        question : {"subjective", "objective"}
        """
        decided = self._believed if question == "subjective" else self._truly
        low, high = float(self.rounds), float(self.rounds)
        while decided(int(high), criterion) < 0.5:
            low, high = high, high * 2
            if (
                high > _MOST_DUELS
                or high / window_size(int(high), self.n_items, self.window) > _MOST_WINDOWS
            ):
                return None
        while high > 1.03 * low:
            middle = (low * high) ** 0.5
            if decided(int(middle), criterion) < 0.5:
                low = middle
            else:
                high = middle
        return int(high)

    def _limits(self, n: int) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Return lower and upper limits of drawn shares, ``(logs, W, m)``, and of the whole log.

        The last window is the whole log; also where windows start.
        """
        starts = window_starts(0, n, window_size(n, self.n_items, self.window))
        size = np.append(np.diff(np.append(starts, n)), 0).astype(np.float64)
        rng = np.random.default_rng(_STREAM)
        # the law of each log, as uncertain as it is after this one
        unsure = rng.standard_normal((_LOGS, 1, len(self.mean))) @ self.root.T
        mean = np.clip(self.mean + unsure / self.rounds**0.5, 0.0, 1.0)
        noise = rng.standard_normal((_LOGS, len(starts), len(self.mean))) @ self.root.T
        count = size[:-1, None] * mean + np.sqrt(size[:-1, None]) * noise
        count = np.concatenate([count, count.sum(axis=1, keepdims=True)], axis=1)
        size[-1] = n
        count = np.clip(count, 0, size[:, None])
        lower, upper = np.empty_like(count), np.empty_like(count)
        for m in np.unique(size):
            at = size == m
            # the whole log is a family of limits of its own
            family = 1 if m == n and len(starts) > 1 else len(starts)
            tail = ALPHA / (2 * family * len(self.mean))
            nodes = np.linspace(count[:, at].min(), count[:, at].max() + 1e-9, _NODES)
            limits = share_limits(nodes, m, tail)
            lower[:, at], upper[:, at] = (np.interp(count[:, at], nodes, y) for y in limits)
        return self.scale * lower, self.scale * upper, starts

    def _gaps(self, lower: Floats, upper: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield limits of the gaps in some windows of every log, ``(logs, w, P)``."""
        step = max(1, _AT_ONCE // (_LOGS * self.near.shape[1]))
        for first in range(0, lower.shape[1], step):
            w = slice(first, first + step)
            low, high = lower[:, w], upper[:, w]
            yield w, np.maximum(least_gaps(low, high), 0.0), np.maximum(least_gaps(high, low), 0.0)

    def _believed(self, n: int, criterion: Criterion) -> float:
        """Return the share of logs of n duels that are decided under the beliefs."""
        lower, upper, starts = self._limits(n)
        later = distances(self.truths)
        unfair, unsure = np.zeros(_LOGS, bool), np.zeros(_LOGS, bool)
        begins, ends = np.append(starts, 0), np.append(np.append(starts[1:], n), n)
        beyond = np.maximum(ends - np.maximum(begins, self.rounds), 0)
        for w, least, most in self._gaps(lower, upper):
            # of rounds after this log the divergences are those of the truth of each log
            added, size = beyond[w, None] * later[:, None], (ends - begins)[w, None]
            near, far = (
                criterion.eps1
                * (self._until(sums, ends[w]) - self._until(sums, begins[w]) + added)
                / size
                for sums in (self.near, self.far)
            )
            unfair |= (least - far > criterion.allowed).any(axis=(1, 2))
            whole = len(starts) - w.start  # the last is the whole log
            unsure |= (most - near > criterion.allowed)[:, :whole].any(axis=(1, 2))
        return float((unfair | ~unsure).mean())

    def _until(self, sums: Floats, t: NDArray[np.int64]) -> Floats:
        """Return the sums of divergences over the rounds of this log before each t, ``(w, P)``."""
        t = np.minimum(t, self.rounds)
        g = np.minimum(np.searchsorted(self.reach, t, side="right") - 1, len(self.reach) - 2)
        slope = (sums[g + 1] - sums[g]) / (self.reach[g + 1] - self.reach[g])[:, None]
        return np.asarray(sums[g] + (t - self.reach[g])[:, None] * slope)

    def _truly(self, n: int, criterion: Criterion) -> float:
        """Return the share of logs of n duels that are decided under the true worths."""
        lower, upper, starts = self._limits(n)
        least, most = np.zeros((2, _LOGS, self.near.shape[1]))
        for w, low, high in self._gaps(lower, upper):
            least = np.maximum(least, low.max(axis=1))
            most = np.maximum(most, high[:, : len(starts) - w.start].max(axis=1, initial=0.0))
        spread = (self.log_worth - self.log_worth.mean(axis=0)) * (self.rounds / n) ** 0.5
        decided = 0
        for log in range(_LOGS):
            bound = criterion.eps1 * distances(self.truths[log] + spread)
            surely = float(((most[log] - bound).max(axis=1) <= criterion.allowed).mean())
            maybe = float(((least[log] - bound).max(axis=1) <= criterion.allowed).mean())
            decided += criterion.verdict_of(surely, maybe) != "undetermined"
        return decided / _LOGS


def duels_needed(
    log: DuelLog, law: Law, truth: Truth, path: Path, judged: Judged, criterion: Criterion
) -> tuple[dict[str, int], list[Notice]]:
    """Return about how many duels decide each question that shares leave open, and what is unknown.

    Notices say for which question no number can be given, and why.
    """
    verdicts = verdicts_of(judged, criterion)
    asked = [name for name, verdict in verdicts.items() if verdict == "undetermined"]
    if law.logged or not asked:
        return {}, []
    sizes = sizes_of(log, law, truth, path)
    found = {} if sizes is None else {name: sizes.needed(name, criterion) for name in asked}
    needed = {name: n for name, n in found.items() if n is not None}
    why = (
        f"that is computed for 2 to {_MOST_ITEMS} items that are on offer in every window"
        if sizes is None
        else "the gaps lie too near to what is allowed, or windows are too short to decide"
    )
    return needed, [
        Notice(
            f"How many duels like these would decide the question {QUESTIONS[name]} is not known: "
            f"{why}.",
            kind="no_size",
            column=name,
        )
        for name in asked
        if name not in needed
    ]


def sizes_of(log: DuelLog, law: Law, truth: Truth, path: Path) -> Sizes | None:
    """Return what longer logs of the same kind would look like; None where that is not known.

    Notes
    -----
    Logs are drawn from what this one leaves open: true worths from their posterior, laws of the
    slot around its shares; the shares of every window with the covariance of its duels, the
    posterior sharper by the root of the number of duels. Beliefs are those of this log as long as
    it lasts, then the truth.
    """
    order = label_order(log.items)
    on = order[~np.isnan(law.windows.share).any(axis=0)[order]]
    if not 2 <= len(on) <= _MOST_ITEMS:
        return None
    begin = int(law.windows.start[0])
    n = log.n_rounds - begin
    place = np.full(log.n_items, -1)
    place[on] = np.arange(len(on))
    left, right = place[log.left[begin:]], place[log.right[begin:]]
    mean = np.bincount(left[left >= 0], minlength=len(on)) / n
    second = np.diag(mean)
    if log.slot == "mean":
        other = np.bincount(right[(right >= 0) & (right != left)], minlength=len(on)) / n
        both = np.zeros((len(on), len(on)))
        pairs = (left >= 0) & (right >= 0) & (left != right)
        np.add.at(both, (left[pairs], right[pairs]), 1.0 / n)
        mean = mean + other
        second = np.diag(mean) + both + both.T
    values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    none = np.zeros(len(on) * (len(on) - 1) // 2)
    reach, near, far = [0.0], [none], [none]
    for a, b, ends in path.stretches():
        least, most = distance_limits(ends[:, on])
        reach.append(float(b - begin))
        near.append(near[-1] + (b - a) * least)
        far.append(far[-1] + (b - a) * most)
    draws = truth.log_worth[:, on]
    thin = draws[:: max(1, len(draws) // _DRAWS)]
    truths = draws[np.linspace(0, len(draws) - 1, _LOGS).astype(np.int64)]
    return Sizes(
        n, log.n_items, mean, root, 1.0 if log.slot == "first" else 0.5, law.size, thin,
        truths, np.array(reach), np.array(near), np.array(far),
    )  # fmt: skip
