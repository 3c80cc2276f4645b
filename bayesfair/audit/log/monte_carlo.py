"""Logged probabilities that are shares of draws: what their error does to verdict and regret."""

from __future__ import annotations

import math
from typing import Any

from bayesfair.audit.criterion import COMPARISONS
from bayesfair.audit.log.intervals import Estimate
from bayesfair.audit.log.summary import Summary
from bayesfair.base.notices import Notice

__all__ = ["monte_carlo_findings", "monte_carlo_numbers", "with_monte_carlo"]


def regret_error(selection: str, n_rounds: int, n_arms: int, n_draws: int) -> tuple[float, float]:
    """Return by how much the regret per round may be too large, and too small, at 95 %.

    The error of a round is in the mean at most b = sqrt((k - 1)/n)/2 in total variation. The
    regret of a whole rule is convex in it: on average it is too large, by at most b. That of the
    chosen arm's probability is off by at most 2b either way. A draw moves the mean over T rounds by
    at most 1/(nT), so that it lies within sqrt(ln 40/(2nT)) of its expectation (McDiarmid); with
    the chosen arm's probability alone that is part of the interval already.

    Examples
    --------
    >>> [round(x, 4) for x in regret_error("full", 1000, 2, 100)]
    [0.0543, 0.0043]
    >>> [round(x, 4) for x in regret_error("chosen", 1000, 2, 100)]
    [0.1, 0.1]
    """
    bias = math.sqrt((n_arms - 1) / n_draws) / 2
    if selection == "chosen":
        return 2 * bias, 2 * bias
    spread = math.sqrt(math.log(40) / (2 * n_draws * max(n_rounds, 1)))
    return bias + spread, spread


def with_monte_carlo(found: Estimate | None, summary: Summary) -> Estimate | None:
    """Return a regret per round whose interval allows for the error of the probabilities."""
    n_draws = summary.criterion.propensity_draws
    if found is None or n_draws is None:
        return found
    over, under = regret_error(
        summary.selection, summary.sums.n_rounds, summary.most_offered, n_draws
    )
    return Estimate(found.value, max(found.lower - over, 0.0), min(found.upper + under, 1.0), False)


def missed(summary: Summary) -> float:
    """Return the probability that a comparison of two arms is off by more than the band."""
    k = summary.most_offered
    return min(1.0, 0.05 * summary.sums.n_rounds * k * (k - 1) / 2 / COMPARISONS)


def monte_carlo_numbers(
    summary: Summary, probability_fair: tuple[float, float] | None
) -> dict[str, Any]:
    """Return what the error of the probabilities is taken to be, for JSON."""
    criterion, full = summary.criterion, summary.selection == "full"
    needed = float(summary.pairs.frontier[criterion.grid_index])
    limits = [max(needed - criterion.band, 0.0), needed + criterion.band]
    return {
        "draws": criterion.propensity_draws,
        "band": criterion.band if full else None,
        "probability_beyond": missed(summary) if full else None,
        "smallest_eps2": limits if full else None,
        "probability_fair": None if probability_fair is None else list(probability_fair),
    }


def monte_carlo_findings(summary: Summary) -> list[Notice]:
    """Say what error the logged probabilities were taken to have."""
    n, band = summary.criterion.propensity_draws, summary.criterion.band
    if n is None:
        return []
    text = f"The logged probabilities are taken as shares of {n} draws (propensity_draws=)"
    if summary.selection == "full":
        text += (
            f": differences of two may be off by {band:.3g} (in a round of this log with "
            f"probability {missed(summary):.1g} at most); rounds are counted that violate beyond "
            "that, and a verdict that hangs on it is undetermined"
        )
    return [Notice(
        f"{text}. The interval of the regret allows for their error.",
        kind="monte_carlo", column="propensity_draws", value=band, n=n,
    )]  # fmt: skip
