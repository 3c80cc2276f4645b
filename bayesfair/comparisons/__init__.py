"""Comparisons of items: duels, choices and rankings, validated once and collapsed at once."""

from __future__ import annotations

from bayesfair.comparisons.connectivity import Connectivity
from bayesfair.comparisons.data import Comparisons
from bayesfair.comparisons.log import DuelLog, one_law
from bayesfair.comparisons.outcomes import OUTCOMES
from bayesfair.comparisons.sources import Origin
from bayesfair.comparisons.worths import known_worths
from bayesfair.kernels.orders.duels import DuelCounts

__all__ = [
    "OUTCOMES",
    "Comparisons",
    "Connectivity",
    "DuelCounts",
    "DuelLog",
    "Origin",
    "known_worths",
    "one_law",
]
