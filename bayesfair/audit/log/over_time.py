"""What the rounds of an audit add up to: windows of time, worst rounds and pairs, reliability."""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.log.intervals import mean_interval
from bayesfair.audit.log.per_round import iter_rounds
from bayesfair.base.estimates import interval
from bayesfair.errors import OptionError

if TYPE_CHECKING:
    import xarray as xr

    from bayesfair.audit.record import Record

__all__ = ["over_time"]

WINDOWS, WORST, BINS = 40, 10, 10
_FINE = 2000  # cells of [0, 1] that become bins of like numbers of chances
_MOST_PAIRS = 400
_DRAWS, _ROUNDS = 200, 200  # of the true rewards, and in each window


class _Bins:
    """Sums over all chances of a log by their size: how many, of chances, of P*."""

    def __init__(self) -> None:
        self.sums = np.zeros((3, _FINE))

    def add(self, chances: NDArray[np.float64], best: NDArray[np.float64]) -> None:
        offered = np.isfinite(chances) & np.isfinite(best)
        pi, p = chances[offered], best[offered]
        cell = np.minimum((pi * _FINE).astype(np.int64), _FINE - 1)
        for place, weights in enumerate((None, pi, p)):
            self.sums[place] += np.bincount(cell, weights, minlength=_FINE)

    def gathered(self) -> NDArray[np.float64]:
        """Return the sums of neighbouring cells, ``(3, b)``: like numbers of chances in each."""
        seen = np.cumsum(self.sums[0])
        if not seen[-1]:
            return np.zeros((3, 0))
        rank = (seen - self.sums[0] / 2) / seen[-1]
        label = np.minimum((rank * BINS).astype(np.int64), BINS - 1)
        found = np.stack([np.bincount(label, total, minlength=BINS) for total in self.sums])
        return found[:, found[0] > 0]


def over_time(audit: Record) -> xr.Dataset:
    """Return what the rounds of an audit add up to; see `Audit.over_time`.

    One pass over the log, in constant memory; its cost is that of the audit under the beliefs.
    """
    import xarray as xr

    n, first = audit.summary.sums.n_rounds, audit.criterion.from_round
    if not n:
        raise OptionError("no round of this log is judged: there is nothing to show over time.")
    windows = min(WINDOWS, n)
    edges = np.linspace(0, n, windows + 1).astype(np.int64)
    limit = audit.criterion.certain
    sums = np.zeros((3, windows))  # regret, its squares, violating rounds
    largest = np.full(windows, np.nan)
    pairs: Counter[tuple[int, int]] = Counter()
    needed: dict[tuple[int, int], float] = {}
    worst: list[tuple[float, int, int, int, int]] = []
    bins, kept = _Bins(), _Kept(audit, edges)
    for whole in iter_rounds(audit, want_chances=True):
        at = whole["round"] - first
        inside = (at >= 0) & (at < n)
        part = {name: values[inside] for name, values in whole.items()}
        at = at[inside]
        window = np.searchsorted(edges, at, side="right") - 1
        regret, eps2 = part["fairness_regret"], part["smallest_eps2"]
        broken = eps2 > limit  # False where there is no such number
        for place, values in enumerate((regret, regret**2, broken)):
            sums[place] += np.bincount(window, values, minlength=windows)
        np.fmax.at(largest, window, eps2)
        couples = np.stack([part["worst_arm"], part["worst_arm_other"]], axis=1)
        kinds, which = np.unique(couples[broken], axis=0, return_inverse=True)
        most = np.zeros(len(kinds))
        np.maximum.at(most, which, eps2[broken])
        counts = np.bincount(which, minlength=len(kinds))
        for (i, j), count, peak in zip(kinds.tolist(), counts.tolist(), most.tolist(), strict=True):
            pairs[i, j] += count
            needed[i, j] = max(needed.get((i, j), 0.0), peak)
        some = np.flatnonzero(broken)
        if len(some) > WORST:
            some = some[np.argsort(-eps2[some], kind="stable")[:WORST]]
        for t in some.tolist():
            i, j = couples[t].tolist()
            worst.append((float(eps2[t]), -int(part["round"][t]), int(part["row"][t]), i, j))
        worst = heapq.nlargest(WORST, worst)
        if "selection_probability" in part:
            bins.add(part["selection_probability"], part["best_arm_probability"])
            kept.add(at, window, part["selection_probability"])
    length = np.diff(edges)
    rows = [mean_interval(*args) for args in zip(length, *sums[:2], strict=True)]
    exact = audit.summary.selection == "full"
    sides = ("value", "value", "value") if exact else ("value", "lower", "upper")
    data: dict[str, Any] = {
        "start": ("window", edges[:-1] + first),
        "stop": ("window", edges[1:] + first),
        **{
            name: ("window", np.array([getattr(row, side) for row in rows]))
            for name, side in zip(_names("regret"), sides, strict=True)
        },
        "smallest_eps2": ("window", largest),
        "violating_share": ("window", np.where(np.isnan(largest), np.nan, sums[2] / length)),
        **kept.regret(),
        **_pairs(pairs, needed, audit.summary.arms),
        **_rounds(worst, audit.summary.arms),
    }
    found = bins.gathered()
    if found.shape[1]:
        data |= {
            "n_chances": ("bin", found[0]),
            "chance": ("bin", found[1] / found[0]),
            "p_best": ("bin", found[2] / found[0]),
        }
        gap = float(np.abs(found[2] - found[1]).sum() / 2 / n)
        return xr.Dataset(data, attrs={"exact": exact, "reliability_gap": gap})
    return xr.Dataset(data, attrs={"exact": exact})


def _names(stem: str) -> tuple[str, str, str]:
    return stem, f"{stem}_lower", f"{stem}_upper"


def _pairs(
    counts: Counter[tuple[int, int]], needed: dict[tuple[int, int], float], arms: tuple[str, ...]
) -> dict[str, Any]:
    """Return the pairs that were the worst of violating rounds, the most frequent first."""
    shown = counts.most_common(_MOST_PAIRS)
    return {
        "pair_arm": ("pair", np.array([arms[i] for (i, _), _ in shown], dtype=object)),
        "pair_arm_other": ("pair", np.array([arms[j] for (_, j), _ in shown], dtype=object)),
        "pair_rounds": ("pair", np.array([n for _, n in shown], dtype=np.int64)),
        "pair_eps2": ("pair", np.array([needed[pair] for pair, _ in shown])),
    }


def _rounds(worst: list[tuple[float, int, int, int, int]], arms: tuple[str, ...]) -> dict[str, Any]:
    """Return the worst of the violating rounds, the worst first."""
    worst = sorted(worst, reverse=True)
    return {
        "worst_round": ("worst", np.array([-t for _, t, *_ in worst], dtype=np.int64)),
        "worst_row": ("worst", np.array([row for _, _, row, *_ in worst], dtype=np.int64)),
        "worst_eps2": ("worst", np.array([x for x, *_ in worst], dtype=np.float64)),
        "worst_arm": ("worst", np.array([arms[i] for *_, i, _ in worst], dtype=object)),
        "worst_arm_other": ("worst", np.array([arms[j] for *_, j in worst], dtype=object)),
    }


class _Kept:
    """Chances of some rounds of each window, to be held against draws of the true rewards.

    Only where P* of a draw is the same in all rounds: every arm on offer, rewards that stay.
    """

    def __init__(self, audit: Record, edges: NDArray[np.int64]) -> None:
        stays = audit.model in ("conjugate", "truth") and audit.context_model is None
        self.best = audit.objective.p_best if stays and audit.objective is not None else None
        if self.best is not None:
            places = np.linspace(0, len(self.best) - 1, min(_DRAWS, len(self.best)))
            self.best = self.best[places.round().astype(int)]
        self.every = np.maximum(np.diff(edges) // _ROUNDS, 1)
        if self.best is not None and len(self.best) == 1:  # the true rewards are known
            self.every[:] = 1
        self.edges = edges
        self.total = np.zeros((len(edges) - 1, 0 if self.best is None else len(self.best)))
        self.n = np.zeros(len(edges) - 1)

    def add(
        self, at: NDArray[np.int64], window: NDArray[np.int64], chances: NDArray[np.float64]
    ) -> None:
        if self.best is None:
            return
        if np.isnan(chances).any():
            self.best = None
            return
        some = np.flatnonzero((at - self.edges[window]) % self.every[window] == 0)
        for t in some.tolist():
            self.total[window[t]] += np.maximum(self.best - chances[t], 0).sum(axis=1)
            self.n[window[t]] += 1

    def regret(self) -> dict[str, Any]:
        """Return the regret of each window under the true rewards: mean, and 95 % of the draws."""
        if self.best is None or not self.n.all():
            return {}
        draws = self.total / self.n[:, None]
        low, high = np.array([interval(row) for row in draws]).T
        values = (draws.mean(axis=1), low, high)
        return {
            name: ("window", value)
            for name, value in zip(_names("regret_objective"), values, strict=True)
        }
