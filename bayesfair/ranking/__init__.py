"""What a fit to comparisons says about the order of the items, and how well it fits."""

from __future__ import annotations

from bayesfair.ranking.consistency import pl_consistency, predicted_wins
from bayesfair.ranking.probability import rank_probability, win_probability
from bayesfair.ranking.quasi_variances import quasi_standard_errors
from bayesfair.ranking.summary import fit_summary
from bayesfair.ranking.table import rank_table

__all__ = [
    "fit_summary",
    "pl_consistency",
    "predicted_wins",
    "quasi_standard_errors",
    "rank_probability",
    "rank_table",
    "win_probability",
]
