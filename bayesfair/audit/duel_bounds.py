"""What an audit of duels computes: gaps between probabilities, bounds, regret, beliefs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.kernels.races import race_total_variation

__all__ = [
    "frontier_of", "gaps", "interval", "needed_of", "regret_of",
    "regret_per_draw", "runs", "shares", "smallest", "verdict_of", "violations", "worst_of",
    "worst_pair",
]  # fmt: skip

FloatArray = NDArray[np.float64]


def runs(selection: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the first round of each run of equal rows, and the lengths of the runs."""
    same = (selection[1:] == selection[:-1]) | (np.isnan(selection[1:]) & np.isnan(selection[:-1]))
    start = np.append(0, 1 + np.flatnonzero(~same.all(axis=1)))
    return start, np.diff(np.append(start, len(selection))).astype(np.float64)


def gaps(rows: FloatArray) -> FloatArray:
    """Return the largest |pi(i) - pi(j)| over rows in which both are on offer, ``(k, k)``."""
    k = rows.shape[1]
    table = np.zeros((k, k))
    step = max(1, (1 << 22) // (k * k))
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step]
        found = np.abs(part[:, :, None] - part[:, None, :])
        table = np.fmax(table, np.fmax.reduce(found, axis=0, initial=0.0))
    return table


def smallest(gap: FloatArray, log_worth: FloatArray, eps1: FloatArray) -> FloatArray:
    """Return max over pairs of gap - eps1 D, cut at 0, for each draw and eps1: ``(n, E)``."""
    i, j = np.triu_indices(gap.shape[0], 1)
    g = gap[i, j]
    result = np.zeros((len(log_worth), len(eps1)))
    keep = g > 0
    i, j, g = i[keep], j[keep], g[keep]
    if not g.size:
        return result
    step = max(1, (1 << 22) // len(g))
    for begin in range(0, len(log_worth), step):
        part = log_worth[begin : begin + step]
        divergence = race_total_variation(part[:, i] - part[:, j])
        for e, slope in enumerate(eps1):
            result[begin : begin + step, e] = (g - slope * divergence).max(axis=1)
    return np.maximum(result, 0.0)


def shares(log_worth: FloatArray, on: NDArray[np.bool_]) -> FloatArray:
    """Return worths among the items on offer, ``(n, sum(on))``."""
    part = log_worth[:, on]
    worth = np.exp(part - part.max(axis=1, keepdims=True))
    return np.asarray(worth / worth.sum(axis=1, keepdims=True))


def regret_per_draw(
    rows: FloatArray, length: FloatArray, log_worth: FloatArray
) -> tuple[FloatArray, Any]:
    """Return the total regret per draw, and the P* mass of each item averaged over rounds.

    The sum over rounds of max(p - pi, 0) is convex and piecewise linear in p: one sort per item and
    set of items on offer, then a search per draw.
    """
    total = np.zeros(len(log_worth))
    mass = np.zeros(rows.shape[1])
    on_offer, which = np.unique(~np.isnan(rows), axis=0, return_inverse=True)
    which = which.ravel()
    for s, on in enumerate(on_offer):
        at = which == s
        share = shares(log_worth, on)
        mass[on] += share.mean(axis=0) * length[at].sum()
        for column, item in enumerate(np.flatnonzero(on)):
            pi, weight = rows[at, item], length[at]
            order = np.argsort(pi)
            pi, weight = pi[order], weight[order]
            below = np.concatenate([[0.0], np.cumsum(weight)])
            area = np.concatenate([[0.0], np.cumsum(weight * pi)])
            p = share[:, column]
            n = np.searchsorted(pi, p, side="right")
            total += p * below[n] - area[n]
    return np.maximum(total, 0.0), mass / length.sum()


def violations(rows: FloatArray, bound: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the largest |pi(i) - pi(j)| - bound of each row, and where: i k + j, the first one.

    Rows with fewer than two items on offer give 0.
    """
    k = rows.shape[1]
    top, place = np.zeros(len(rows)), np.zeros(len(rows), np.int64)
    bound = bound + np.where(np.eye(k, dtype=bool), np.inf, 0.0)
    step = max(1, (1 << 22) // (k * k))
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step]
        excess = (np.abs(part[:, :, None] - part[:, None, :]) - bound).reshape(len(part), -1)
        excess = np.where(np.isnan(excess), -np.inf, excess)
        at = excess.argmax(axis=1)
        place[begin : begin + step] = at
        top[begin : begin + step] = np.maximum(excess[np.arange(len(part)), at], 0.0)
    return top, place


def interval(values: FloatArray) -> dict[str, float]:
    """Return mean and equal-tailed 95 % interval of draws."""
    low, high = np.quantile(values, [0.025, 0.975])
    return {"mean": float(values.mean()), "lower": float(low), "upper": float(high)}


def verdict_of(fair_low: float, fair_high: float, criterion: Criterion) -> str:
    """Return the verdict if the probability of a fair log lies between two limits."""
    if fair_low >= 1 - criterion.delta:
        return "fair"
    return "unfair" if fair_high <= criterion.delta else "undetermined"


def worst_pair(gap: FloatArray, worth: FloatArray, eps1: float) -> tuple[int, int]:
    """Return the pair with the largest excess at one set of log-worths."""
    excess = gap - eps1 * race_total_variation(worth[:, None] - worth)
    np.fill_diagonal(excess, -np.inf)
    i, j = divmod(int(np.argmax(excess)), len(worth))
    return i, j


def worst_of(
    items: tuple[str, ...], gap: FloatArray, shown: FloatArray, worth: FloatArray, eps1: float
) -> dict[str, Any]:
    """Return the pair whose `gap` is furthest above its bound, with its entry of `shown`."""
    i, j = worst_pair(gap, worth, eps1)
    return {"item": items[i], "item_other": items[j], "gap": float(shown[i, j])}


def needed_of(
    least: FloatArray, needed: FloatArray, most: FloatArray, column: int
) -> dict[str, float]:
    """Return mean and 95 % limits of the smallest eps2 at one eps1, from draws of its limits."""
    return {
        "mean": float(needed[:, column].mean()),
        "lower": float(np.quantile(least[:, column], 0.025)),
        "upper": float(np.quantile(most[:, column], 0.975)),
    }


def frontier_of(
    eps1: FloatArray, subjective: FloatArray, least: FloatArray, needed: FloatArray,
    most: FloatArray,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the frontier: what the log needs at each eps1, believed and under the truth."""
    return [
        {
            "eps1": float(e),
            "subjective": float(subjective[n]),
            "objective": needed_of(least, needed, most, n),
        }
        for n, e in enumerate(eps1)
    ]


def regret_of(total: Any, mean: Any, lower: Any, upper: Any, exact: bool) -> dict[str, Any]:
    """Return the keys of a regret; exact ones are their own interval."""
    if exact:
        lower = upper = mean
    return {"regret_total": total, "regret_per_round": mean, "lower": lower, "upper": upper,
            "exact": exact}  # fmt: skip
