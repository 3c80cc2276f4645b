"""Plots: results in, Axes out; matplotlib is imported when a plot is drawn."""

from bayesfair.plots.audits import plot_cumulative_regret, plot_frontier, plot_selection
from bayesfair.plots.base import rank_figure_size
from bayesfair.plots.fits import (
    plot_gaps,
    plot_influence,
    plot_predicted_wins,
    plot_rank_probability,
    plot_ranks,
    plot_win_matrix,
)
from bayesfair.plots.rounds import plot_pairs, plot_regret, plot_reliability, plot_violations
from bayesfair.plots.several import (
    plot_groups,
    plot_prior_sensitivity,
    plot_rewards,
    plot_rules,
    plot_shares,
    plot_tradeoff,
    plot_value,
)

__all__ = [
    "plot_cumulative_regret",
    "plot_frontier",
    "plot_gaps",
    "plot_groups",
    "plot_influence",
    "plot_pairs",
    "plot_predicted_wins",
    "plot_prior_sensitivity",
    "plot_rank_probability",
    "plot_ranks",
    "plot_regret",
    "plot_reliability",
    "plot_rewards",
    "plot_rules",
    "plot_selection",
    "plot_shares",
    "plot_tradeoff",
    "plot_value",
    "plot_violations",
    "plot_win_matrix",
    "rank_figure_size",
]
