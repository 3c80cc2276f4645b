"""The numbers of an audit of duels as JSON-ready values under fixed keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesfair.audit.criterion import Criterion
from bayesfair.audit.duels.judge import Believed, Truly, worst_pair
from bayesfair.audit.duels.law import Windows

__all__ = ["believed_numbers", "frontier_numbers", "interval", "regret_of", "true_numbers"]

FloatArray = NDArray[np.float64]


def believed_numbers(
    found: Believed, law: Windows, items: tuple[str, ...], criterion: Criterion
) -> dict[str, Any]:
    """Return the keys of the question under the beliefs of each round."""
    at, allowed = criterion.grid_index, criterion.allowed
    low, high = float(found.low[at]), float(found.high[at])
    verdict = "unfair" if low > allowed else "fair" if high <= allowed else "undetermined"
    over = np.flatnonzero(found.over)
    excess, t, i, j = found.worst
    return {
        "verdict": verdict,
        "smallest_eps2": low,
        "smallest_eps2_upper": high,
        "worst": {"round": t, "item": items[i], "item_other": items[j]}
        if excess > criterion.tolerance
        else None,
        "first_violating_round": int(law.start[over[0]]) if over.size else None,
        "last_violating_round": int(law.stop[over[-1]]) - 1 if over.size else None,
        "n_violating_rounds": int(law.length[over].sum()),
        "n_violating_windows": None if law.logged else int(over.size),
    }


def true_numbers(
    found: Truly, law: Windows, items: tuple[str, ...], worth: FloatArray, criterion: Criterion
) -> dict[str, Any]:
    """Return the keys of the question under the true worths; `worth`: their mean, ``(k,)``."""
    at, allowed = criterion.grid_index, criterion.allowed
    low = float((found.most[:, at] <= allowed).mean())
    high = float((found.least[:, at] <= allowed).mean())
    i, j = worst_pair(found.gap, worth, criterion.eps1)
    violates = found.first >= 0
    return {
        "verdict": _between(low, high, criterion),
        "probability_fair": low if law.logged else None,
        "probability_fair_lower": low,
        "probability_fair_upper": high,
        "smallest_eps2": _needed(found, at),
        "worst": {"item": items[i], "item_other": items[j], "gap": float(found.shown[i, j])},
        "first_violating_round": _spread(found.first[violates]),
        "last_violating_round": _spread(found.last[violates]),
        "n_violating_rounds": {**_of(found.n), "exact": True},
        "n_violating_windows": None if law.logged else _of(found.n_windows),
    }


def frontier_numbers(believed: Believed, true: Truly, criterion: Criterion) -> list[dict[str, Any]]:
    """Return what the log needs at each eps1, believed and under the truth."""
    return [
        {"eps1": float(e), "subjective": float(believed.low[n]), "objective": _needed(true, n)}
        for n, e in enumerate(criterion.grid)
    ]


def regret_of(mean: float, lower: Any, upper: Any, *, n: int, exact: bool) -> dict[str, Any]:
    """Return the keys of a regret per round over `n` rounds; exact ones are their own interval."""
    if exact:
        lower = upper = mean
    return {"regret_total": mean * n, "regret_per_round": mean, "lower": lower, "upper": upper,
            "exact": exact}  # fmt: skip


def interval(values: NDArray[Any]) -> tuple[float, float]:
    """Return the equal-tailed 95 % interval of draws."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _between(fair_low: float, fair_high: float, criterion: Criterion) -> str:
    """Return the verdict if the probability of a fair log lies between two limits."""
    if criterion.verdict_of(fair_low) == "fair":
        return "fair"
    return "unfair" if criterion.verdict_of(fair_high) == "unfair" else "undetermined"


def _needed(found: Truly, column: int) -> dict[str, float]:
    """Return mean and 95 % limits of the smallest eps2 at one eps1, from draws of its limits."""
    return {
        "mean": float(found.plug[:, column].mean()),
        "lower": float(np.quantile(found.least[:, column], 0.025)),
        "upper": float(np.quantile(found.most[:, column], 0.975)),
    }


def _spread(values: NDArray[Any]) -> dict[str, float] | None:
    """Return mean and 95 % interval over the draws in which there is a value."""
    return _of(values) if values.size else None


def _of(values: NDArray[Any]) -> dict[str, float]:
    low, high = interval(values)
    return {"mean": float(values.mean()), "lower": low, "upper": high}
