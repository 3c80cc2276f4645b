r"""Duels with ties: Bradley-Terry with a third outcome between equals.

    log_worth_i ~ Normal(0, prior_sd), then centred          i = 1..k     dims ("item",)
    log_tie ~ Normal(0, tie_sd)                              tie = exp(log_tie), Davidson's nu
    order_effect ~ Normal(0, order_sd)            advantage of being shown first, log-odds
    gap_c = log_worth_left(c) - log_worth_right(c) + first_c order_effect     dims ("cell",)
    P(left) : P(right) : P(tie) = exp(gap_c / 2) : exp(-gap_c / 2) : tie
    outcomes_c ~ Multinomial(n_c, P)                               dims ("cell", "outcome")

The gap is the log-odds of left against right given that there is a winner.

Prior rationale. prior_sd as in bradley_terry. tie_sd = 1.5: two equals tie with probability
nu / (2 + nu), whose prior median is 1/3 and central 95 % (0.026, 0.904).

Contract. Observed: outcome counts per cell (one pair in one presentation), sufficient. Read
downstream: ``log_worth``; ``log_tie`` where ties are predicted. Use when ties occur. Its log-worths
are not on the scale of Bradley-Terry with half wins: do not compare the two.

References: Davidson (1970), JASA 65, 317-328; Davidson and Beaver (1977), Biometrics 33, 693-702.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesfair.comparisons import Comparisons

READS = ("log_worth",)
PRIOR = (
    "log_worth ~ Normal(0, {prior_sd:g}) each, centred; log_tie ~ Normal(0, {tie_sd:g}); "
    "order_effect ~ Normal(0, {order_sd:g}); coefficients ~ Normal(0, {coefficient_sd:g}) per "
    "standard deviation"
)


def build(
    comparisons: Comparisons,
    *,
    prior_sd: float = 1.0,
    tie_sd: float = 1.5,
    order_effect: bool | None = None,
    order_sd: float = 1.0,
    coefficient_sd: float = 1.0,
) -> pm.Model:
    """Return the unsampled model; ``order_effect`` None: if the data say who was shown first."""
    ordered = bool(comparisons.first.any()) if order_effect is None else order_effect
    cells = comparisons.duel_counts(by_first=ordered)
    names = [
        f"{comparisons.items[i]} | {comparisons.items[j]}"
        for i, j in zip(cells.left, cells.right, strict=True)
    ]
    x, scale = comparisons.standard_covariates()
    coords = {
        "item": comparisons.items,
        "covariate": comparisons.covariate_names,
        "cell": names,
        "outcome": ("left", "right", "tie"),
    }
    with pm.Model(coords=coords) as model:
        if len(scale):
            deviation = pm.ZeroSumNormal("deviation", sigma=prior_sd, dims="item")
            slope = pm.Normal("coefficient", 0, coefficient_sd / scale, dims="covariate")
            worths = deviation + pm.math.dot(x * scale, slope)
            log_worth = pm.Deterministic("log_worth", worths, dims="item")
        else:
            log_worth = pm.ZeroSumNormal("log_worth", sigma=prior_sd, dims="item")
        pm.Deterministic("worth", pm.math.softmax(log_worth), dims="item")
        log_tie = pm.Normal("log_tie", 0, tie_sd)
        pm.Deterministic("tie", pm.math.exp(log_tie))
        gap = log_worth[cells.left] - log_worth[cells.right]
        if ordered:
            gap = gap + pm.Normal("order_effect", 0, order_sd) * cells.first
        log_odds = pt.stack([gap / 2, -gap / 2, log_tie + pt.zeros_like(gap)], axis=1)
        log_p = log_odds - pm.math.logsumexp(log_odds, axis=1, keepdims=True)
        counts = np.stack([cells.wins_left, cells.wins_right, cells.ties], axis=1)
        observed = pm.Data("counts", counts, dims=("cell", "outcome"))
        if np.array_equal(counts, np.round(counts)):
            pm.Multinomial(
                "outcomes",
                n=observed.sum(axis=1),
                p=pm.math.exp(log_p),
                observed=observed,
                dims=("cell", "outcome"),
            )
        else:
            pm.Potential("outcomes", (observed * log_p).sum())
    return model
